//! Gradients, graph to graph: one sweep from the outputs back, one rule per op.
//!
//! The gradient of a Function is a Function. A Detach stops the gradient, and integers have none.

mod function;
mod rules;
mod scan;
mod total;

use crate::custom_function;
use crate::dim::show;
use crate::ops::{movement, reduce};
use crate::{Builder, DType, Error, ErrorKind, Graph, NodeId, Op, Result};
use function::Functions;
use total::Cotangents;

/// The gradient of `sum_j sum(output_j * cotangent_j)` for each wanted node; `None` if no output depends on it.
///
/// # Errors
/// When a wanted node is not a float, when a cotangent does not have its output's shape and dtype, or when an op on the
/// way has no gradient.
pub fn gradient_or_none(
    graph: &mut Graph,
    outputs: &[(NodeId, NodeId)],
    wanted: &[NodeId],
) -> Result<Vec<Option<NodeId>>> {
    for &node in wanted {
        let dtype = graph.dtype(node);
        if !dtype.is_float() {
            return Err(Error::new(ErrorKind::Gradient, "gradient", format!("a tensor of {dtype} has no gradient"))
                .help("only floats do; cast it before it is used"));
        }
    }
    let known = graph.len();
    let mut connected = vec![false; known];
    for node in wanted {
        connected[node.index()] = true;
    }
    let roots: Vec<NodeId> = outputs.iter().map(|(output, _)| *output).collect();
    let live = graph.reachable_outside_bodies(&roots);
    for &node in &live {
        if graph.op(node) != Op::Detach && graph.sources(node).iter().any(|source| connected[source.index()]) {
            connected[node.index()] = true;
        }
    }
    let results = custom_function::results(graph, &live);
    let mut functions = Functions::default();
    let mut cotangents = Cotangents::new(known);
    for &(output, cotangent) in outputs {
        let (have, want) = (graph.props(cotangent), graph.props(output));
        if have.dtype != want.dtype || have.shape != want.shape {
            let (have, want) =
                (format!("{} {}", have.dtype, show(&have.shape)), format!("{} {}", want.dtype, show(&want.shape)));
            return Err(Error::new(ErrorKind::Shape, "gradient", format!("a cotangent is {have}, its output {want}")));
        }
        cotangents.add(output, cotangent);
    }
    for &node in live.iter().rev() {
        // A wanted node may be a leaf, or the end of its path.
        if !graph.sources(node).iter().any(|source| connected[source.index()]) {
            continue;
        }
        if graph.op(node) == Op::Function {
            functions.differentiate(graph, node, &connected, &mut cotangents)?;
            continue;
        }
        if let Some(function) = custom_function::of_call(graph, node) {
            let gradient_of = |graph: &mut Graph, node| cotangents.of(graph, node);
            let found = results.get(&node).map_or(&[][..], Vec::as_slice);
            for (argument, gradient) in custom_function::differentiate(graph, node, &function, found, gradient_of)? {
                if connected[argument.index()] {
                    cotangents.add(argument, gradient);
                }
            }
            continue;
        }
        let Some(cotangent) = cotangents.of(graph, node)? else { continue };
        if graph.op(node) == Op::GetTuple && graph.op(graph.source(node, 0)) == Op::Function {
            // Handled at its Function.
            continue;
        }
        for (source, contribution) in rules::apply(graph, node, cotangent, &connected, wanted)? {
            let contribution = unbroadcast(graph, contribution, source)?;
            cotangents.add(source, contribution);
        }
    }
    wanted.iter().map(|&node| cotangents.of(graph, node)).collect()
}

/// Like [`gradient_or_none`], but a wanted node that no output depends on is an error.
///
/// # Errors
/// As [`gradient_or_none`], and for an unconnected node: the error says which one, by position and place.
pub fn gradient(graph: &mut Graph, outputs: &[(NodeId, NodeId)], wanted: &[NodeId]) -> Result<Vec<NodeId>> {
    let found = gradient_or_none(graph, outputs, wanted)?;
    let mut gradients = Vec::with_capacity(found.len());
    for (position, (gradient, &node)) in found.into_iter().zip(wanted).enumerate() {
        gradients.push(gradient.ok_or_else(|| {
            let props = graph.props(node);
            let message = format!(
                "the loss does not depend on number {position} of the tensors asked for, {} {}",
                props.dtype,
                show(&props.shape)
            );
            let error = Error::new(ErrorKind::Gradient, "gradient", message)
                .help("leave it out, or use the lenient form, which gives zeros");
            match graph.locations(node).first() {
                Some(place) => error.at(place.clone()),
                None => error,
            }
        })?);
    }
    Ok(gradients)
}

/// Sums over the axes along which `source` was broadcast.
fn unbroadcast(graph: &mut Graph, contribution: NodeId, source: NodeId) -> Result<NodeId> {
    let (from, to) = (graph.props(contribution).shape.clone(), graph.props(source).shape.clone());
    if from == to {
        return Ok(contribution);
    }
    let lead = from.len().saturating_sub(to.len());
    // A contribution may itself be smaller than its source, when it does not vary along an axis.
    let axes: Vec<i64> = (0..from.len())
        .filter(|&axis| axis < lead || (to[axis - lead].is(1) && !from[axis].is(1)))
        .map(|axis| axis as i64)
        .collect();
    let summed = if axes.is_empty() {
        contribution
    } else {
        let dtype = graph.dtype(contribution);
        let summed = reduce::sum(graph, contribution, Some(&axes), true)?;
        crate::ops::cast(graph, summed, dtype)?
    };
    let shape = graph.props(summed).shape[lead..].to_vec();
    let reshaped = movement::reshape(graph, summed, &shape)?;
    movement::expand(graph, reshaped, &to)
}

/// A constant of ones with the shape of `node`: the cotangent of a plain loss.
///
/// # Errors
/// When `node` is not a float.
pub fn ones_like(graph: &mut Graph, node: NodeId) -> Result<NodeId> {
    let (shape, dtype) = (graph.props(node).shape.clone(), graph.dtype(node));
    if dtype == DType::Void || !dtype.is_float() {
        return Err(Error::new(ErrorKind::Gradient, "gradient", format!("a loss of {dtype} has no gradient")));
    }
    crate::ops::creation::ones(graph, &shape, dtype)
}
