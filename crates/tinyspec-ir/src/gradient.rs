//! Gradients, graph to graph: one sweep from the outputs back, one rule per op.
//!
//! Functions must be inlined first, unless they have a gradient of their own. A Detach stops the gradient, and integers
//! have none.

mod rules;
mod scan;
mod total;

use crate::custom_function;
use crate::dim::show;
use crate::function;
use crate::ops::{movement, reduce};
use crate::signature::NamedDim;
use crate::{Arg, Builder, DType, Dim, Error, ErrorKind, Graph, NodeId, Op, Result};
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
            own_gradient(graph, node, &connected, &mut cotangents)?;
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

/// A Function with its own gradient is opaque.
fn own_gradient(graph: &mut Graph, function: NodeId, connected: &[bool], cotangents: &mut Cotangents) -> Result<()> {
    let Some(gradients) = function::own_gradient(graph, function) else {
        return Err(Error::new(ErrorKind::Gradient, "function", "inline Functions before taking a gradient"));
    };
    let mut passed: Vec<Option<NodeId>> = vec![];
    let elements = function::function_values(graph, function);
    for (number, &element) in (0u32..).zip(&elements) {
        let get = graph.add(Op::GetTuple, &[function], Arg::Number(number))?;
        if graph.dtype(element).is_float() {
            passed.push(cotangents.of(graph, get)?);
        }
    }
    if passed.iter().all(Option::is_none) {
        return Ok(());
    }
    let arguments: Vec<NodeId> = graph.sources(function)[1..].to_vec();
    let (inputs, dims): (Vec<NodeId>, Vec<NodeId>) =
        arguments.into_iter().partition(|&argument| graph.dtype(argument) != DType::Index);
    let mut all = inputs.clone();
    let shapes = graph.props(function).elements.clone().unwrap_or_default();
    let floats = shapes.iter().filter(|props| props.dtype.is_float());
    for (cotangent, props) in passed.into_iter().zip(floats.cloned().collect::<Vec<_>>()) {
        all.push(match cotangent {
            Some(cotangent) => cotangent,
            None => crate::ops::creation::zeros(graph, &props.shape, props.dtype)?,
        });
    }
    all.extend(&dims);
    let floats: Vec<NodeId> = inputs.into_iter().filter(|&input| graph.dtype(input).is_float()).collect();
    // An index stands for the absence of a gradient.
    let is_asked =
        |(input, gradient): &(NodeId, NodeId)| connected[input.index()] && graph.dtype(*gradient) != DType::Index;
    let (inputs, gradients): (Vec<NodeId>, Vec<NodeId>) = floats.into_iter().zip(gradients).filter(is_asked).unzip();
    if gradients.is_empty() {
        return Ok(());
    }
    let contributions = if is_ranged(graph, &gradients, &dims) {
        let tuple = graph.add(Op::Tuple, &gradients, Arg::None)?;
        let call = graph.add(Op::Function, &[&[tuple], &all[..]].concat(), Arg::None)?;
        let numbers = 0..gradients.len() as u32;
        numbers.map(|number| graph.add(Op::GetTuple, &[call], Arg::Number(number))).collect::<Result<_>>()?
    } else {
        let mut body = Graph::new();
        let gradients = body.import(graph, &gradients, |_, _| Ok(None))?;
        function::inline(graph, &body, &gradients, &all)?
    };
    for (input, contribution) in inputs.into_iter().zip(contributions) {
        cotangents.add(input, contribution);
    }
    Ok(())
}

/// Whether the gradient is compiled once for all sizes of a dim with bounds: then it is called like the function.
fn is_ranged(graph: &Graph, gradients: &[NodeId], dims: &[NodeId]) -> bool {
    let has_bounds = |&node: &NodeId| {
        let value = graph.props(node).value.as_deref().filter(|_| graph.op(node) == Op::Param);
        value.is_some_and(|value| value.iter().flat_map(Dim::names).any(|name| name.max < NamedDim::MAX))
    };
    dims.iter().all(|&dim| graph.as_int(dim).is_some()) && graph.reachable(gradients).iter().any(has_bounds)
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
