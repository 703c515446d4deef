//! Stacks of many tensors that lie in one buffer from the start: the kernel of each writes its part. One kernel that looks
//! for the part of each element would compare it with all of them.

use super::split::replaced;
use super::walk::{is_leaf, named};
use rustc_hash::{FxHashMap, FxHashSet};
use tinyspec_ir::dim::static_shape;
use tinyspec_ir::{Arg, Builder, Dim, Graph, NodeId, Op, Result, Shape};

/// Tensors from which on a stack is put together this way.
const MANY: usize = 16;
/// Elements of each for which a kernel of its own is worth its while.
const LARGE: i64 = 64;
/// What lies in a part is aligned as in a buffer of its own.
const ALIGNMENT: i64 = 64;

/// The graph with such stacks over views of their own of what they stack, and its outputs; `None` where there are none.
///
/// # Errors
/// None for graphs that are verified.
pub fn parted(graph: &Graph, outputs: &[NodeId]) -> Result<Option<(Graph, Vec<NodeId>)>> {
    let live = graph.reachable_outside_bodies(outputs);
    if !live.iter().any(|&node| is_large(graph, node)) {
        return Ok(None);
    }
    let replace = |result: &mut Graph, node: NodeId, new: &[NodeId]| {
        if !is_large(graph, node) {
            return Ok(None);
        }
        let mut parts = Vec::with_capacity(graph.sources(node).len());
        for source in graph.sources(node) {
            let mut dims: Shape = graph.props(*source).shape.clone();
            dims.insert(0, Dim::from(1));
            let dims = result.shape(&dims)?;
            parts.push(result.add(Op::Reshape, &[new[source.index()], dims], Arg::None)?);
        }
        let stacked = result.alu(Op::Stack, &parts)?;
        let dims = result.shape(&graph.props(node).shape)?;
        result.add(Op::Reshape, &[stacked, dims], Arg::None).map(Some)
    };
    replaced(graph, outputs, &live, replace).map(Some)
}

fn is_large(graph: &Graph, node: NodeId) -> bool {
    let sources = graph.sources(node);
    if graph.op(node) != Op::Stack || sources.len() < MANY || !is_part(graph, sources[0]) {
        return false;
    }
    let different: FxHashSet<NodeId> = sources.iter().map(|&source| named(graph, source).0).collect();
    different.len() == sources.len() && different.iter().all(|&source| graph.op(source) != Op::Const)
}

fn is_part(graph: &Graph, node: NodeId) -> bool {
    let count = static_shape(&graph.props(node).shape).map(|dims| dims.iter().product::<i64>());
    count.is_some_and(|count| count >= LARGE && count * graph.dtype(node).size() as i64 % ALIGNMENT == 0)
}

/// Stacks whose parts are stored where they lie in it, and the parts.
#[derive(Default)]
pub(super) struct Assembled {
    stacks: FxHashMap<NodeId, Vec<NodeId>>,
    /// The stack of each part, and its number.
    parts: FxHashMap<NodeId, (NodeId, usize)>,
}

impl Assembled {
    /// Those that [`parted`] has left. What is an output has memory of its own.
    pub(super) fn find(graph: &Graph, live: &[NodeId], outputs: &[NodeId]) -> Assembled {
        let mut assembled = Assembled::default();
        for &node in live {
            let sources = graph.sources(node);
            let is_new = |source: &NodeId| {
                graph.op(*source) == Op::Reshape
                    && graph.props(*source).shape.first().is_some_and(|dim| dim.is(1))
                    && !outputs.contains(source)
                    && !assembled.parts.contains_key(source)
                    && !is_leaf(graph, *source)
            };
            if is_large(graph, node) && sources.iter().all(is_new) {
                assembled.parts.extend(sources.iter().enumerate().map(|(number, &part)| (part, (node, number))));
                assembled.stacks.insert(node, sources.to_vec());
            }
        }
        assembled
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
