//! From a schedule to a [command buffer](tinyspec_ir::commands): the order of its Calls becomes a Linear.

use crate::Result;
use crate::lower::rangeify::{HandWritten, KernelCall, Schedule};
use rustc_hash::FxHashMap;
use tinyspec_ir::{Arg, Builder, DType, Graph, NodeId, Op, Shape};
use tinyspec_ir::{commands, custom_function};

/// The command buffer of a schedule that computes `roots` of `tensors`, in the schedule's graph: its Tuple. Params and results have
/// the shapes that they have in `tensors`.
///
/// # Errors
/// When a node cannot be made, which would be a mistake of the schedule.
pub(super) fn of_schedule(schedule: &mut Schedule, tensors: &Graph, roots: &[NodeId]) -> Result<NodeId> {
    let Schedule { graph, calls, outputs, .. } = schedule;
    let mut buffers = Buffers { tensors, params: params(tensors, roots), new: FxHashMap::default() };
    let mut linear = Vec::with_capacity(calls.len());
    for call in calls.iter() {
        let mut sources = graph.sources(call.node).to_vec();
        if let Some(hand_written) = call.hand_written.as_ref().filter(|_| !is_custom(graph, call.kernel)) {
            sources[0] = graph.add(Op::CustomFunction, &sources[..1], Arg::Text(hand_written.name.as_str().into()))?;
        }
        for (number, argument) in sources[1..].iter_mut().enumerate() {
            *argument = buffers.buffer(graph, *argument)?;
            if let Some((dtype, shape)) = call.told.get(number) {
                *argument = described(graph, *argument, *dtype, shape)?;
            }
        }
        linear.push(graph.add(Op::Call, &sources, Arg::None)?);
    }
    let linear = graph.add(Op::Linear, &linear, Arg::None)?;
    let mut results = Vec::with_capacity(outputs.len());
    for (&output, &root) in outputs.iter().zip(roots) {
        let buffer = buffers.buffer(graph, output)?;
        let after = graph.add(Op::After, &[buffer, linear], Arg::None)?;
        results.push(reshaped(graph, after, &tensors.props(root).shape)?);
    }
    Ok(graph.add(Op::Tuple, &results, Arg::None)?)
}

/// The Calls of a command buffer.
///
/// # Errors
/// When it is not a command buffer.
pub(super) fn calls(graph: &Graph, root: NodeId) -> Result<Vec<KernelCall>> {
    let call = |&node: &NodeId| {
        let body = graph.source(node, 0);
        let hand_written = match graph.arg(body) {
            Arg::Text(name) if graph.op(body) == Op::CustomFunction => Some(HandWritten {
                name: name.to_string(),
                buffers: (1..graph.sources(node).len()).map(|number| format!("buffer {}", number - 1)).collect(),
            }),
            _ => None,
        };
        let is_kernel = hand_written.is_some() && !is_custom(graph, body);
        let kernel = if is_kernel { graph.source(body, 0) } else { body };
        let outputs = commands::outputs(graph, kernel);
        let (locations, reduces) = (graph.locations(node).to_vec(), Vec::new());
        KernelCall { node, kernel, outputs, locations, reduces, hand_written, told: vec![], definition: None }
    };
    Ok(graph.sources(commands::linear(graph, root)?).iter().map(call).collect())
}

/// Whether a body is a custom function, so that there is no kernel.
pub(super) fn is_custom(graph: &Graph, body: NodeId) -> bool {
    custom_function::of(graph, body).is_some()
}

/// The Params of a tensor graph, by slot.
fn params(tensors: &Graph, roots: &[NodeId]) -> FxHashMap<u32, NodeId> {
    let slot = |node| match *tensors.arg(node) {
        Arg::Param { slot, addrspace: Some(_), .. } => Some((slot, node)),
        _ => None,
    };
    tensors.reachable_outside_bodies(roots).into_iter().filter_map(slot).collect()
}

/// The buffers of a schedule, as Calls of a Linear take them.
struct Buffers<'g> {
    tensors: &'g Graph,
    /// The Params of the tensor graph, by slot.
    params: FxHashMap<u32, NodeId>,
    new: FxHashMap<NodeId, NodeId>,
}

impl Buffers<'_> {
    /// Without the states that it passes through, and, if it is a Param, in the tensor's shape.
    fn buffer(&mut self, graph: &mut Graph, node: NodeId) -> Result<NodeId> {
        if let Some(&known) = self.new.get(&node) {
            return Ok(known);
        }
        let new = match *graph.arg(node) {
            Arg::Param { slot, .. } => match self.params.get(&slot) {
                Some(&param) if graph.op(node) == Op::Param => {
                    graph.import(self.tensors, &[param], |_, _| Ok(None))?[0]
                }
                _ => node,
            },
            _ if graph.op(node) == Op::After => self.buffer(graph, graph.source(node, 0))?,
            _ if graph.op(node) == Op::Shrink => {
                let [whole, offset, size] = [0, 1, 2].map(|source| graph.source(node, source));
                let shape = graph.props(whole).shape.clone();
                let whole = self.buffer(graph, whole)?;
                let whole = reshaped(graph, whole, &shape)?;
                graph.add(Op::Shrink, &[whole, offset, size], Arg::None)?
            }
            _ => node,
        };
        self.new.insert(node, new);
        Ok(new)
    }
}

/// A buffer with the dtype and shape of the tensor that it holds: bools are stored as bytes.
fn described(graph: &mut Graph, buffer: NodeId, dtype: DType, shape: &Shape) -> Result<NodeId> {
    let mut buffer = buffer;
    if graph.dtype(buffer) != dtype {
        buffer = graph.add(Op::Bitcast, &[buffer], Arg::DType(dtype))?;
    }
    reshaped(graph, buffer, shape)
}

fn reshaped(graph: &mut Graph, node: NodeId, shape: &Shape) -> Result<NodeId> {
    if graph.props(node).shape == *shape {
        return Ok(node);
    }
    let shape = graph.shape(shape)?;
    Ok(graph.add(Op::Reshape, &[node, shape], Arg::None)?)
}
