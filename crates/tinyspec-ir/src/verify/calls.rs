//! Which buffers the Calls of a schedule or of a command buffer access, and whether they fit the kernels.

use super::refuse;
use crate::commands;
use crate::custom_function;
use crate::{Arg, Builder, DType, Dim, Graph, NodeId, Op, Result};
use rustc_hash::{FxHashMap, FxHashSet};

/// An access of a Call to a buffer.
#[derive(Clone, Copy)]
pub(super) struct Touch {
    /// Its number.
    pub call: usize,
    pub writes: bool,
    /// The first element, and the one after the last.
    pub part: (i64, i64),
}

impl Touch {
    pub fn meets(&self, other: &Touch) -> bool {
        self.part.0 < other.part.1 && other.part.0 < self.part.1
    }
}

/// The accesses to each buffer, in the order of the Calls.
#[derive(Default)]
pub(super) struct Touched(pub FxHashMap<NodeId, Vec<Touch>>);

impl Touched {
    /// # Errors
    /// Names a Call whose arguments are not the buffers that its kernel takes.
    pub fn of(stage: &str, graph: &Graph, calls: &[NodeId]) -> Result<Touched> {
        let mut kernels: FxHashMap<NodeId, Kernel> = FxHashMap::default();
        let mut touched = Touched::default();
        for (number, &call) in calls.iter().enumerate() {
            let Some(&body) = graph.sources(call).first().filter(|_| graph.op(call) == Op::Call) else {
                return refuse(stage, graph, call, "is not a Call");
            };
            if let Some(function) = custom_function::of_call(graph, call) {
                for (slot, &buffer) in buffers(graph, call).iter().enumerate() {
                    let Some(leaf) = leaf(graph, buffer) else {
                        return refuse(stage, graph, call, "its argument is not a buffer");
                    };
                    let part = part(graph, buffer);
                    // An updated buffer is also read.
                    let accesses: &[bool] = match slot {
                        _ if slot < function.made => &[true],
                        _ if slot < function.written() => &[false, true],
                        _ => &[false],
                    };
                    let touch = |&writes: &bool| Touch { call: number, writes, part };
                    touched.0.entry(leaf).or_default().extend(accesses.iter().map(touch));
                }
                if overlaps(graph, buffers(graph, call), function.written()) {
                    return refuse(stage, graph, call, "a buffer that it writes is also another of its buffers");
                }
                continue;
            }
            if graph.op(body) == Op::CustomFunction
                && graph.sources(body).first().is_none_or(|&of| is_scalar(graph, of))
            {
                return refuse(
                    stage,
                    graph,
                    call,
                    "it is no custom function: `made`, `updated` and the buffers differ",
                );
            }
            let dims = dims(graph, call);
            let kernel = kernels.entry(body).or_insert_with(|| Kernel::of(graph, body));
            let buffers = buffers(graph, call);
            for (slot, &buffer) in buffers.iter().enumerate() {
                let Some(leaf) = leaf(graph, buffer) else {
                    return refuse(stage, graph, call, "its argument is not a buffer");
                };
                if let Some((param, is_written)) = kernel.params.get(&(slot as u32)) {
                    let count =
                        graph.props(*param).element_count().substitute(&|slot| dims.get(slot as usize)?.clone());
                    let fits = graph.dtype(*param) == graph.dtype(leaf) && count == graph.props(buffer).element_count();
                    if !fits {
                        return refuse(
                            stage,
                            graph,
                            call,
                            format!("its buffer {slot} does not fit the kernel's Param"),
                        );
                    }
                    let touch = Touch { call: number, writes: *is_written, part: part(graph, buffer) };
                    touched.0.entry(leaf).or_default().push(touch);
                }
            }
            if kernel.params.keys().any(|&slot| slot as usize >= buffers.len()) {
                return refuse(stage, graph, call, "the kernel has more buffers");
            }
        }
        Ok(touched)
    }

    pub fn to(&self, buffer: NodeId) -> &[Touch] {
        self.0.get(&buffer).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Whether one of the first `written` buffers shares elements with another buffer.
fn overlaps(graph: &Graph, buffers: &[NodeId], written: usize) -> bool {
    let place = |buffer: NodeId| (commands::base(graph, buffer), part(graph, buffer));
    let meet = |a: NodeId, b: NodeId| {
        let ((a, (first, last)), (b, (start, end))) = (place(a), place(b));
        a == b && first < end && start < last
    };
    (0..written).any(|number| {
        let others = buffers.iter().enumerate().filter(|&(other, _)| other != number);
        others.into_iter().any(|(_, &other)| meet(buffers[number], other))
    })
}

/// Whether a node is a number, as none of the bodies of a kernel is.
fn is_scalar(graph: &Graph, node: NodeId) -> bool {
    graph.op(node) == Op::Const
}

/// The buffers among the arguments of a Call.
pub(super) fn buffers(graph: &Graph, call: NodeId) -> &[NodeId] {
    &graph.sources(call)[1..graph.sources(call).len() - dims(graph, call).len()]
}

/// The last arguments of a Call: the values of its kernel's named dims.
fn dims(graph: &Graph, call: NodeId) -> Vec<Option<Dim>> {
    let is_dim = |node: &&NodeId| graph.dtype(**node) == DType::Index && graph.props(**node).shape.is_empty();
    let sources = &graph.sources(call)[1..];
    let count = sources.iter().rev().take_while(is_dim).count();
    let value = |&node: &NodeId| graph.props(node).value.as_deref().and_then(|value| value.first().cloned());
    sources[sources.len() - count..].iter().map(value).collect()
}

/// Whether each slot is written.
struct Kernel {
    params: FxHashMap<u32, (NodeId, bool)>,
}

impl Kernel {
    fn of(graph: &Graph, body: NodeId) -> Kernel {
        let mut params = FxHashMap::default();
        let live = graph.reachable(&[body]);
        let mut written: FxHashSet<NodeId> = FxHashSet::default();
        for &node in &live {
            if matches!(graph.op(node), Op::Store | Op::AtomicAdd) {
                written.extend(graph.memory(graph.source(node, 0)));
            }
        }
        for &node in &live {
            if let (Op::Param, Arg::Param { slot, dtype, .. }) = (graph.op(node), graph.arg(node))
                && *dtype != DType::Index
            {
                params.insert(*slot, (node, written.contains(&node)));
            }
        }
        Kernel { params }
    }
}

/// The buffer behind a state or a part.
pub(super) fn leaf(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let base = commands::base(graph, node);
    matches!(graph.op(base), Op::Param | Op::Buffer | Op::Binary).then_some(base)
}

/// The elements of a buffer that an argument covers.
pub(super) fn part(graph: &Graph, argument: NodeId) -> (i64, i64) {
    let start = commands::offset(graph, argument).unwrap_or(0);
    let length = graph.props(argument).element_count().as_const().unwrap_or(i64::MAX);
    (start, start.saturating_add(length))
}
