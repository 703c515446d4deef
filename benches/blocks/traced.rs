//! Blocks as Functions.

use crate::blocks::block::Block;
use tinyspec::{Dim, Function, Result, Spec, Tensor, grad};

/// The forward pass of a block and, where it has one, the gradients of its training step, each with its name.
///
/// # Errors
/// When a block cannot be traced.
pub fn functions(block: &Block) -> Result<Vec<(String, Function)>> {
    let mut functions = vec![(block.name.clone(), traced(block, |inputs| Ok((block.ours)(inputs)))?)];
    if !block.train.is_empty() {
        let train = traced(block, |inputs| {
            let loss = (block.ours)(inputs)[0].sum(.., false);
            let named = block.inputs.iter().zip(inputs);
            let wanted = named.filter(|((name, _), _)| block.train.contains(&name.as_str()));
            let wanted: Vec<&Tensor> = wanted.map(|(_, input)| input).collect();
            grad(&loss, &wanted)
        })?;
        functions.push((format!("{}/train", block.name), train));
    }
    Ok(functions)
}

fn traced(block: &Block, body: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>) -> Result<Function> {
    let dims = |shape: &[usize]| shape.iter().map(|&size| Dim::from(size as i64)).collect::<Vec<Dim>>();
    let specs: Vec<Spec> =
        block.inputs.iter().map(|(_, input)| Spec::new(input.dtype, dims(&input.shape).as_slice())).collect();
    let mut failure = Ok(());
    let function = Function::trace(&specs, |inputs| {
        body(inputs).unwrap_or_else(|error| {
            failure = Err(error);
            Vec::new()
        })
    });
    failure.and(function)
}
