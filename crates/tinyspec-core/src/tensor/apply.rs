//! Applies methods to tensors: builds lazy nodes, and adds the caller's line to errors.

use super::Tensor;
use crate::lazy::LazyBuilder;
use std::panic::Location;
use tinyspec_ir::{Error, NodeId, Result};

/// The result of `build` on lazy nodes; the first error among the inputs, or that of `build`, becomes the tensor.
pub(crate) fn apply(
    location: &'static Location<'static>,
    inputs: &[&Tensor],
    build: impl FnOnce(&mut LazyBuilder, &[NodeId]) -> Result<NodeId>,
) -> Tensor {
    match apply_many(location, inputs, |builder, nodes| Ok(vec![build(builder, nodes)?])) {
        Ok(mut tensors) => tensors.pop().unwrap_or_else(|| unreachable!("one result was built")),
        Err(error) => Tensor::failed(error),
    }
}

/// As [`apply`], for several results.
pub(crate) fn apply_many(
    location: &'static Location<'static>,
    inputs: &[&Tensor],
    build: impl FnOnce(&mut LazyBuilder, &[NodeId]) -> Result<Vec<NodeId>>,
) -> crate::Result<Vec<Tensor>> {
    let mut builder = LazyBuilder::new(location);
    let mut nodes = Vec::with_capacity(inputs.len());
    for input in inputs {
        nodes.push(builder.import(input.node()?.clone()));
    }
    let located = |error: Error| crate::Error::from(error.at(location));
    builder.place_numbers().map_err(located)?;
    let results = build(&mut builder, &nodes).map_err(located)?;
    Ok(results.into_iter().map(|node| Tensor::from_node(builder.node(node))).collect())
}
