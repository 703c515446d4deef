//! Every method of the table in a `#[function]` of its own name: what is embedded is what a trace at run time gives.

use tinyspec::function::EmbeddedFunction;
use tinyspec::ir::ops::METHODS;

fn all_functions() -> impl Iterator<Item = &'static &'static EmbeddedFunction> {
    crate::elementwise_methods::FUNCTIONS
        .iter()
        .chain(crate::axis_methods::FUNCTIONS)
        .chain(crate::layer_methods::FUNCTIONS)
        .chain(crate::composed_methods::FUNCTIONS)
        .chain(crate::linear_algebra::FUNCTIONS)
        .chain(crate::neighbours::FUNCTIONS)
}

/// Rows that a function refuses: they draw random numbers.
const REFUSED: &[&str] = &["uniform", "randn"];

#[test]
fn every_method_has_a_function() {
    let source = [
        include_str!("elementwise_methods.rs"),
        include_str!("axis_methods.rs"),
        include_str!("layer_methods.rs"),
        include_str!("composed_methods.rs"),
        include_str!("linear_algebra.rs"),
        include_str!("neighbours.rs"),
    ]
    .concat();
    for row in METHODS.iter().filter(|row| !REFUSED.contains(&row.name)) {
        let name = row.name;
        assert!(all_functions().any(|function| function.name() == name), "no #[function] here uses `{name}`");
        let is_used = [format!(".{name}("), format!("Tensor::{name}(")].iter().any(|call| source.contains(call));
        assert!(is_used, "the #[function] `{name}` does not use the method");
    }
}

#[test]
fn embedded_and_traced_graphs_are_equal() {
    for function in all_functions() {
        crate::same_graph(function);
    }
}
