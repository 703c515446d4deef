//! The programs of `cargo bench -- blocks`, and their gradients.

use crate::stages::{Program, program, spec};
use block::Block;
use tinyspec::{Function, Spec, Tensor, grad};

#[path = "../../benches/blocks/block.rs"]
#[allow(dead_code)]
pub mod block;
#[path = "../../benches/blocks/families/mod.rs"]
mod families;

/// The forward pass of each block, and the gradients of its training step.
pub fn programs() -> impl Iterator<Item = Program> {
    families::all()
        .into_iter()
        .flat_map(|block| {
            let forward = traced(&block, block.name.clone(), |inputs| (block.ours)(inputs));
            let train = (!block.train.is_empty()).then(|| {
                traced(&block, format!("{}/train", block.name), |inputs| {
                    let loss = (block.ours)(inputs)[0].sum(.., false);
                    let named = block.inputs.iter().zip(inputs);
                    let wanted = named.filter(|((name, _), _)| block.train.contains(&name.as_str()));
                    let wanted: Vec<&Tensor> = wanted.map(|(_, input)| input).collect();
                    grad(&loss, &wanted).unwrap_or_else(|error| panic!("{}: {error}", block.name))
                })
            });
            [Some(forward), train]
        })
        .flatten()
}

fn traced(block: &Block, name: String, body: impl FnOnce(&[Tensor]) -> Vec<Tensor>) -> Program {
    let shape = |shape: &[usize]| shape.iter().map(|&size| size as i64).collect::<Vec<_>>();
    let specs: Vec<Spec> = block.inputs.iter().map(|(_, input)| spec(input.dtype, &shape(&input.shape))).collect();
    let function = Function::trace(&specs, body).unwrap_or_else(|error| panic!("{name}: {error}"));
    program(name, &function).unwrap_or_else(|| panic!("{}: its calls cannot be inlined", block.name))
}
