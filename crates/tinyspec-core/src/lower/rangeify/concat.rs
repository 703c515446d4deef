//! Stacks of many tensors are concatenated in place: the kernel of each part writes it straight into the stack's buffer. A single
//! kernel would have to select the source of each element among all of them. A part is one tensor, or a stack of several if each
//! is too small for a kernel of its own.

use super::split_reduce::replaced;
use super::walk::{is_leaf, named};
use rustc_hash::{FxHashMap, FxHashSet};
use tinyspec_ir::dim::static_shape;
use tinyspec_ir::{Arg, Builder, DType, Dim, Graph, NodeId, Op, Result, Shape};

/// The least number of tensors for which a stack is concatenated in place, and the number of small tensors that form one part.
const MANY: usize = 16;
/// Elements of each for which a kernel of its own is worth its while.
const LARGE: i64 = 64;
/// What lies in a part is aligned as in a buffer of its own.
const ALIGNMENT: usize = 64;

/// The graph with such stacks over views of their own of what they stack, and its outputs; `None` where there are none.
///
/// # Errors
/// None for graphs that are verified.
pub fn parted(graph: &Graph, outputs: &[NodeId]) -> Result<Option<(Graph, Vec<NodeId>)>> {
    let live = graph.reachable_outside_bodies(outputs);
    if !live.iter().any(|&node| tensors_of_part(graph, node).is_some()) {
        return Ok(None);
    }
    let replace = |result: &mut Graph, node: NodeId, new: &[NodeId]| {
        let Some(count) = tensors_of_part(graph, node) else { return Ok(None) };
        let sources: Vec<NodeId> = graph.sources(node).iter().map(|source| new[source.index()]).collect();
        let mut parts = Vec::with_capacity(sources.len().div_ceil(count));
        for tensors in sources.chunks(count) {
            let part = if count == 1 { tensors[0] } else { group(result, tensors, count)? };
            let mut dims: Shape = result.props(part).shape.clone();
            dims.insert(0, Dim::from(1));
            let dims = result.shape(&dims)?;
            parts.push(result.add(Op::Reshape, &[part, dims], Arg::None)?);
        }
        let stacked = result.alu(Op::Stack, &parts)?;
        let mut dims = graph.props(node).shape.clone();
        dims[0] = Dim::from((parts.len() * count) as i64);
        let all = result.shape(&dims)?;
        let all = result.add(Op::Reshape, &[stacked, all], Arg::None)?;
        if dims == graph.props(node).shape {
            return Ok(Some(all));
        }
        let offsets = result.shape(&Shape::from_elem(Dim::from(0), dims.len()))?;
        let dims = result.shape(&graph.props(node).shape)?;
        result.add(Op::Shrink, &[all, offsets, dims], Arg::None).map(Some)
    };
    replaced(graph, outputs, &live, replace).map(Some)
}

/// A stack of `count` tensors, padded with repetitions of the last one.
fn group(graph: &mut Graph, tensors: &[NodeId], count: usize) -> Result<NodeId> {
    let last = tensors.last().into_iter().cycle();
    let tensors: Vec<NodeId> = tensors.iter().chain(last).take(count).copied().collect();
    graph.alu(Op::Stack, &tensors)
}

/// The number of tensors in each part of a stack; `None` if the stack is not divided.
fn tensors_of_part(graph: &Graph, node: NodeId) -> Option<usize> {
    if is_large(graph, node) && are_different(graph, node) {
        return Some(1);
    }
    let sources = graph.sources(node);
    let is_computed = graph.op(node) == Op::Stack
        && graph.dtype(node) != DType::Index
        && sources.iter().any(|&source| graph.op(source) != Op::Const);
    let bytes = bytes(graph, *sources.first().filter(|_| is_computed)?)?;
    let count = (MANY..=MANY * ALIGNMENT).step_by(MANY).find(|count| (count * bytes).is_multiple_of(ALIGNMENT))?;
    (sources.len() >= 2 * count).then_some(count)
}

/// Many tensors, each worth a kernel.
fn is_large(graph: &Graph, node: NodeId) -> bool {
    let sources = graph.sources(node);
    graph.op(node) == Op::Stack
        && sources.len() >= MANY
        && count(graph, sources[0]).is_some_and(|count| count >= LARGE)
        && is_aligned(graph, sources[0])
}

/// Whether all parts of a stack are stacks of many tensors themselves.
fn has_groups(graph: &Graph, node: NodeId) -> bool {
    let is_group = |&source: &NodeId| {
        let below = (graph.op(source) == Op::Reshape).then(|| graph.source(source, 0));
        below.is_some_and(|below| graph.op(below) == Op::Stack && graph.sources(below).len() >= MANY)
    };
    let sources = graph.sources(node);
    let is_aligned = sources.first().is_some_and(|&source| is_aligned(graph, source));
    graph.op(node) == Op::Stack && is_aligned && sources.iter().all(is_group)
}

/// Whether all parts are distinct and none is a constant.
fn are_different(graph: &Graph, node: NodeId) -> bool {
    let sources = graph.sources(node);
    let different: FxHashSet<NodeId> = sources.iter().map(|&source| named(graph, source).0).collect();
    different.len() == sources.len() && different.iter().all(|&source| graph.op(source) != Op::Const)
}

/// The number of elements of a tensor.
fn count(graph: &Graph, node: NodeId) -> Option<i64> {
    static_shape(&graph.props(node).shape).map(|dims| dims.iter().product())
}

fn bytes(graph: &Graph, node: NodeId) -> Option<usize> {
    usize::try_from(count(graph, node)?).ok()?.checked_mul(graph.dtype(node).size()).filter(|&bytes| bytes > 0)
}

fn is_aligned(graph: &Graph, part: NodeId) -> bool {
    bytes(graph, part).is_some_and(|bytes| bytes.is_multiple_of(ALIGNMENT))
}

/// Stacks whose parts are stored where they lie in it, and the parts.
#[derive(Default)]
pub(super) struct Concats {
    stacks: FxHashMap<NodeId, Vec<NodeId>>,
    /// The stack of each part, and its number.
    parts: FxHashMap<NodeId, (NodeId, usize)>,
}

impl Concats {
    /// Those that [`parted`] has left. What is an output has memory of its own.
    pub(super) fn find(graph: &Graph, live: &[NodeId], outputs: &[NodeId]) -> Concats {
        let mut concats = Concats::default();
        for &node in live {
            let sources = graph.sources(node);
            let is_new = |source: &NodeId| {
                graph.op(*source) == Op::Reshape
                    && graph.props(*source).shape.first().is_some_and(|dim| dim.is(1))
                    && !outputs.contains(source)
                    && !concats.parts.contains_key(source)
                    && !is_leaf(graph, *source)
            };
            let has_parts = (is_large(graph, node) || has_groups(graph, node)) && are_different(graph, node);
            if has_parts && sources.iter().all(is_new) {
                concats.parts.extend(sources.iter().enumerate().map(|(number, &part)| (part, (node, number))));
                concats.stacks.insert(node, sources.to_vec());
            }
        }
        concats
    }

    /// The parts of a stack.
    pub(super) fn parts(&self, stack: NodeId) -> Option<&[NodeId]> {
        self.stacks.get(&stack).map(Vec::as_slice)
    }

    /// The stack that a tensor is part of, and the number of the part.
    pub(super) fn part(&self, node: NodeId) -> Option<(NodeId, usize)> {
        self.parts.get(&node).copied()
    }

    /// All stacks.
    pub(super) fn stacks(&self) -> impl Iterator<Item = NodeId> {
        self.stacks.keys().copied()
    }
}
