//! The programs of `cargo bench -- blocks`, and their gradients.

use crate::stages::{Program, program};

#[path = "../../benches/blocks/block.rs"]
#[allow(dead_code)]
pub mod block;
#[path = "../../benches/blocks/families/mod.rs"]
mod families;
#[path = "../../benches/blocks/traced.rs"]
mod traced;

/// The forward pass of each block, and the gradients of its training step.
pub fn programs() -> impl Iterator<Item = Program> {
    let functions = |block| traced::functions(&block).unwrap_or_else(|error| panic!("{}: {error}", block.name));
    families::all().into_iter().flat_map(functions).map(|(name, function)| {
        program(name.clone(), &function).unwrap_or_else(|| panic!("{name}: its calls cannot be inlined"))
    })
}
