//! Dear values that a kernel computes twice: in a loop that reduces them, and again in a later one. A softmax needs its
//! exponentials for their sum, and then to be divided by it.

use super::kernel::{Kernel, Reduction};
use crate::lower::select::decompose::Sizes;
use smallvec::SmallVec;
use tinyspec_backends::Target;
use tinyspec_ir::{Builder, Graph, NodeId, Op, Result};

/// A value that the loop of a Reduce leaves in LOCAL memory for another loop.
#[derive(Clone, Copy, Debug)]
pub struct Repeat {
    /// Computed in the loop of a Reduce over `from`.
    pub value: NodeId,
    /// The same in the loop over `to`.
    pub again: NodeId,
    /// The Range of the Reduce.
    pub from: NodeId,
    /// The Range of the other loop.
    pub to: NodeId,
}

/// Instructions from which on an op is dearer than storing and loading what it gives.
const DEAR: usize = 8;

/// The repeats of a kernel that are worth a buffer, which a core's caches must hold beside all else.
pub(super) fn find(graph: &mut Graph, kernel: &Kernel, target: &Target) -> Result<Vec<Repeat>> {
    let sizes = Sizes::of(target);
    let dear: Vec<NodeId> = kernel.order.iter().copied().filter(|&node| sizes.size(graph, node) >= DEAR).collect();
    let mut repeats: Vec<Repeat> = Vec::new();
    if dear.len() < 2 {
        return Ok(repeats);
    }
    let bound = |graph: &Graph, range: NodeId| graph.as_int(graph.source(range, 0));
    for reduction in &kernel.reductions {
        let &[from] = &reduction.ranges[..] else { continue };
        let bytes = bound(graph, from).map(|trips| trips * graph.dtype(reduction.node).size() as i128);
        if bytes.is_none_or(|bytes| bytes > target.cache_bytes[1] as i128 / 4) {
            continue;
        }
        let inside = kernel.live.bit(from);
        let below = graph.reachable(&[graph.source(reduction.node, 0)]);
        let below: Vec<NodeId> = below.into_iter().filter(|&node| kernel.live.of(node) & inside != 0).collect();
        if !below.iter().any(|node| dear.contains(node)) {
            continue;
        }
        for &to in &kernel.live.ranges {
            if to == from || bound(graph, to) != bound(graph, from) || reduction.outer & kernel.live.bit(to) != 0 {
                continue;
            }
            let Some((value, again)) = repeated(graph, kernel, &below, (from, to), &dear)? else { continue };
            let chained = |repeat: &Repeat| [repeat.value, repeat.again].contains(&again) || repeat.again == value;
            // Nothing in the loop that stores may need what is loaded: all that it reduces is there only at its end.
            if !repeats.iter().any(chained) && !needed(graph, kernel, from, &repeats).contains(&again) {
                repeats.push(Repeat { value, again, from, to });
            }
        }
    }
    Ok(repeats)
}

/// All that the loop over `range` needs: what its Reduces are made of, and what the loops of those and the loops that leave
/// them values are made of.
fn needed(graph: &Graph, kernel: &Kernel, range: NodeId, repeats: &[Repeat]) -> Vec<NodeId> {
    let mut loops = vec![range];
    loop {
        let over = |reduction: &&Reduction| reduction.ranges.iter().any(|range| loops.contains(range));
        let roots: Vec<NodeId> = kernel.reductions.iter().filter(over).map(|reduction| reduction.node).collect();
        let needed = graph.reachable(&roots);
        let below = kernel.reductions.iter().filter(|reduction| needed.contains(&reduction.node));
        let kept = repeats.iter().filter(|repeat| needed.contains(&repeat.again)).map(|repeat| repeat.from);
        let mut more: Vec<NodeId> = below.flat_map(|reduction| reduction.ranges.iter().copied()).chain(kept).collect();
        more.retain(|range| !loops.contains(range));
        if more.is_empty() {
            return needed;
        }
        loops.extend(more);
    }
}

/// The last of the values `below` that is there once more with another Range in the place of its own, and is dear or
/// made of what is.
fn repeated(
    graph: &mut Graph,
    kernel: &Kernel,
    below: &[NodeId],
    (from, to): (NodeId, NodeId),
    dear: &[NodeId],
) -> Result<Option<(NodeId, NodeId)>> {
    let known = graph.len();
    let mut images: rustc_hash::FxHashMap<NodeId, NodeId> = std::iter::once((from, to)).collect();
    let mut made_of_dear: Vec<NodeId> = Vec::new();
    let mut found = None;
    for &node in below.iter().filter(|&&node| node != from) {
        let sources: SmallVec<[NodeId; 4]> =
            graph.sources(node).iter().map(|source| images.get(source).copied().unwrap_or(*source)).collect();
        let arg = graph.arg(node).clone();
        let image = graph.add(graph.op(node), &sources, arg)?;
        images.insert(node, image);
        if dear.contains(&node) || graph.sources(node).iter().any(|source| made_of_dear.contains(source)) {
            made_of_dear.push(node);
            let is_value = graph.op(node).is_elementwise() && graph.dtype(node).size() > 1;
            if is_value && image.index() < known && kernel.order.contains(&image) {
                found = Some((node, image));
            }
        }
    }
    Ok(found.filter(|(value, _)| graph.op(*value) != Op::Range))
}
