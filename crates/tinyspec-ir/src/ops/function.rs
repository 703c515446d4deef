//! Functions whose gradients are formulas.

use crate::derive::common_device;
use crate::dim::Name;
use crate::function::OwnGradient;
use crate::{Arg, Builder, ContentHash, DType, Dim, Graph, NodeId, Op, Props, Result, Shape};
use std::hash::Hash;

/// Results from inputs.
pub(super) type Body<'a> = &'a dyn Fn(&mut dyn Builder, &[NodeId]) -> Result<Vec<NodeId>>;
/// Gradients from inputs and a cotangent for each float result.
pub(super) type Gradient<'a> = &'a dyn Fn(&mut dyn Builder, &[NodeId], &[NodeId]) -> Result<Vec<NodeId>>;

/// The results of `body` for float inputs, with the gradients of `gradient`. `what` identifies the function.
pub(super) fn with_gradient(
    b: &mut dyn Builder,
    what: impl Hash,
    inputs: &[NodeId],
    body: Body,
    gradient: Gradient,
) -> Result<Vec<NodeId>> {
    let shapes: Vec<_> = inputs.iter().map(|&input| (b.props(input).dtype, b.props(input).shape.clone())).collect();
    let key = ContentHash::of(&(what, &shapes));
    // A number comes to every device by itself.
    let values: Vec<&Props> =
        inputs.iter().map(|&input| b.props(input)).filter(|props| !props.shape.is_empty()).collect();
    common_device(Op::Function, &values)?;
    let mut names: Vec<Name> = vec![];
    for (_, shape) in &shapes {
        for name in shape.iter().flat_map(Dim::names) {
            if names.iter().all(|other| other.slot != name.slot) {
                names.push(name);
            }
        }
    }
    let mut make = || OwnGradient::of(&shapes, &names, body, gradient);
    let mut arguments = inputs.to_vec();
    for name in &names {
        arguments.push(b.dim(&Dim::named(name.slot, name.min, name.max))?);
    }
    let function = b.function(key, &mut make, &arguments)?;
    // Behind the results a graph shows the gradients.
    let is_result = |element: &&Props| element.dtype != DType::Void;
    let count = b.props(function).elements.iter().flat_map(|elements| elements.iter()).filter(is_result).count();
    (0..count as u32).map(|number| b.add(Op::GetTuple, &[function], Arg::Number(number))).collect()
}

impl OwnGradient {
    fn of(inputs: &[(DType, Shape)], names: &[Name], body: Body, gradient: Gradient) -> Result<OwnGradient> {
        let slots = |first: usize, slot: u32| {
            let position = names.iter().position(|name| name.slot == slot)?;
            Some(Dim::named((first + position) as u32, names[position].min, names[position].max))
        };
        let param = |graph: &mut Graph, slot: usize, dtype: DType, shape: &Shape| -> Result<NodeId> {
            let shape = graph.shape(shape)?;
            graph.add(Op::Param, &[shape], Arg::Param { slot: slot as u32, dtype, device: None, addrspace: None })
        };
        let params = |graph: &mut Graph, first: usize| -> Result<Vec<NodeId>> {
            let all = inputs.iter().enumerate().map(|(slot, (dtype, shape))| {
                let shape: Shape = shape.iter().map(|dim| dim.substitute(&|slot| slots(first, slot))).collect();
                param(graph, slot, *dtype, &shape)
            });
            all.collect()
        };
        let mut forward = Graph::new();
        let of_inputs = params(&mut forward, inputs.len())?;
        let outputs = body(&mut forward, &of_inputs)?;
        // Cotangents have the shapes of the results, over the same dims in other slots.
        let floats: Vec<NodeId> = outputs.iter().copied().filter(|&output| forward.dtype(output).is_float()).collect();
        let first = inputs.len() + floats.len();
        let mut backward = Graph::new();
        let of_inputs = params(&mut backward, first)?;
        let mut of_results = vec![];
        for (slot, &output) in (inputs.len()..).zip(&floats) {
            let moved = |slot: u32| {
                let name = names.get((slot as usize).checked_sub(inputs.len())?)?;
                slots(first, name.slot)
            };
            let props = forward.props(output);
            let shape: Shape = props.shape.iter().map(|dim| dim.substitute(&moved)).collect();
            of_results.push(param(&mut backward, slot, props.dtype, &shape)?);
        }
        let gradients = gradient(&mut backward, &of_inputs, &of_results)?;
        Ok(OwnGradient { body: forward, outputs, backward, gradients })
    }
}
