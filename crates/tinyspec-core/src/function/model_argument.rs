//! A model as an argument of an embedded function.

use super::EmbeddedFunction;
use crate::Error;
use crate::nn::{Model, Name};
use crate::tensor::Tensor;
use std::cell::OnceCell;
use std::panic::Location;
use tinyspec_ir::ErrorKind;
use tinyspec_ir::signature::Input;

/// Appends the tensors of the model that is passed as `name`. The graph was traced for the tensors that the model's type declares:
/// the first one that is missing or unexpected is replaced by an error.
#[doc(hidden)]
#[track_caller]
pub fn push_model<'a, M: Model>(
    function: &EmbeddedFunction,
    arguments: &mut Vec<&'a Tensor>,
    name: &str,
    model: &'a M,
    wrong: &'a OnceCell<Tensor>,
) {
    let location = Location::caller();
    let expected = function.get().map_or(&[][..], |function| &function.signature().inputs);
    let refuse = |message: String| {
        let error = tinyspec_ir::Error::new(ErrorKind::Arity, function.name(), message).help(
            "a #[function] knows a model by its type: an `Option` has a value unless its field is `#[model(none)]`, \
             and a `Vec` has `#[model(len = …)]` elements; another choice is another struct",
        );
        wrong.get_or_init(|| Tensor::failed(Error::Graph(error.at(location))))
    };
    model.visit(Name::ROOT, &mut |path, _, tensor| {
        let missing = match expected.get(arguments.len()) {
            Some(input) if !path.is_inside(name, &input.name) => Some(&input.name),
            _ => None,
        };
        arguments.push(match missing {
            None if arguments.len() < expected.len() || expected.is_empty() => tensor,
            Some(missing) if expected.iter().any(|input| path.is_inside(name, &input.name)) => {
                refuse(format!("`{missing}` is missing: the function was made for a model that has it"))
            }
            _ => refuse(format!("`{}` is unknown: the function was made for a model without it", path.inside(name))),
        });
    });
    let is_of_model = |input: &&Input| input.name.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', '[']));
    if let Some(missing) = expected.get(arguments.len()).filter(is_of_model) {
        arguments.push(refuse(format!("`{}` is missing: the function was made for a model that has it", missing.name)));
    }
}
