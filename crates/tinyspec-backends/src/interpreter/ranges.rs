//! Evaluates kernels in graph form, and schedules of them, so that each lowering stage can be compared with the
//! previous one. It accepts every form between Rangeify and Linearize, with tiles, vectors and threads.

mod access;
mod kernel;

pub use kernel::run_kernel;

use super::array::{Array, element_count, value_error};
use rustc_hash::FxHashMap;
use tinyspec_ir::address::behind_after;
use tinyspec_ir::{Arg, Const, Error, ErrorKind, Graph, NodeId, Op, Result};

/// Runs a schedule, `Sink(After(buffer, Call(kernel, buffers…)), …)`, and returns the flat contents of each source of
/// the Sink. `params` are the schedule's Params by slot.
///
/// Each `After` is a separate state, so an order that overwrites a value too early gives wrong results.
///
/// # Errors
/// When a Param has no array that fits, or for what [`run_kernel`] refuses.
pub fn run_schedule(graph: &Graph, sink: NodeId, params: &[Array]) -> Result<Vec<Array>> {
    run_schedule_by(graph, sink, params, &mut |kernel, buffers| run_kernel(graph, kernel, buffers))
}

/// Executes a Call of a kernel on its buffers; returns the slots that it writes.
pub type RunCall<'a> = dyn FnMut(NodeId, &mut [Array]) -> Result<Vec<usize>> + 'a;

/// As [`run_schedule`], with Calls run by `run`.
///
/// # Errors
/// When a Param has no array that fits, or for what `run` refuses.
pub fn run_schedule_by(graph: &Graph, sink: NodeId, params: &[Array], run: &mut RunCall) -> Result<Vec<Array>> {
    let mut states: FxHashMap<NodeId, Array> = FxHashMap::default();
    let mut written: FxHashMap<(NodeId, NodeId), Array> = FxHashMap::default();
    for node in graph.reachable_outside_bodies(&[sink]) {
        let sources = graph.sources(node);
        match (graph.op(node), graph.arg(node)) {
            (Op::Param, Arg::Param { slot, .. }) => {
                let Some(array) = params.get(*slot as usize) else {
                    return Err(value_error("param", format!("no array for slot {slot}")));
                };
                let count = length(graph, node)?;
                if array.dtype() != graph.dtype(node) || array.lanes().len() != count {
                    let message = format!(
                        "slot {slot} has {count} of {}, found {:?} of {}",
                        graph.dtype(node),
                        array.shape(),
                        array.dtype()
                    );
                    return Err(value_error("param", message));
                }
                states.insert(node, array.reshaped(&[count])?);
            }
            (Op::Buffer, _) => {
                states.insert(node, unwritten(graph, node)?);
            }
            (Op::Call, _) => {
                let mut buffers = Vec::new();
                for buffer in &sources[1..] {
                    let state = states.get(buffer).cloned();
                    buffers.push(state.ok_or_else(|| refuse(graph, *buffer, "is not a buffer of a schedule"))?);
                }
                for slot in run(sources[0], &mut buffers)? {
                    if let (Some(buffer), Some(&source)) = (buffers.get(slot), sources.get(slot + 1)) {
                        written.insert((node, behind_after(graph, source)), buffer.clone());
                    }
                }
            }
            (Op::After, _) => {
                let buffer = behind_after(graph, node);
                let by_call = sources[1..].iter().rev().find_map(|&call| written.get(&(call, buffer)));
                let state = by_call.or_else(|| states.get(&sources[0])).cloned();
                states.insert(node, state.ok_or_else(|| refuse(graph, node, "is not a buffer of a schedule"))?);
            }
            _ => {}
        }
    }
    let result = |node: &NodeId| states.get(node).cloned().ok_or_else(|| refuse(graph, *node, "is not a buffer"));
    graph.sources(sink).iter().map(result).collect()
}

fn refuse(graph: &Graph, node: NodeId, reason: &str) -> Error {
    Error::new(ErrorKind::Unsupported, graph.op(node).name(), reason)
}

/// The static shape of a node.
fn shape(graph: &Graph, node: NodeId) -> Result<Vec<usize>> {
    let shape = &tinyspec_ir::Builder::props(graph, node).shape;
    let dims: Option<Vec<usize>> = shape.iter().map(|dim| usize::try_from(dim.as_const()?).ok()).collect();
    dims.ok_or_else(|| refuse(graph, node, "has a shape that is not known"))
}

fn length(graph: &Graph, node: NodeId) -> Result<usize> {
    element_count(&shape(graph, node)?)
}

/// An unwritten buffer, which is poisoned.
fn unwritten(graph: &Graph, node: NodeId) -> Result<Array> {
    let dtype = graph.dtype(node);
    let value = match dtype.int_range() {
        Some((_, greatest)) => Const::int(dtype, greatest),
        None => Const::float(dtype, f64::NAN),
    };
    Array::filled(&[length(graph, node)?], value)
}
