//! Values that two loops of a kernel compute: one that reduces them, and a later one. A softmax needs its exponentials for their
//! sum, and then to be divided by it. A schedule may keep them in LOCAL memory ([`Stage::Value`](super::transforms::Stage)).

use super::kernel::{Kernel, Reduction};
use crate::lower::select::decompose::Sizes;
use smallvec::SmallVec;
use tinyspec_backends::Target;
use tinyspec_ir::{Builder, Graph, NodeId, Op, Result};

/// A value that the loop of a Reduce can leave in LOCAL memory for another loop.
#[derive(Clone, Copy, Debug)]
pub struct Recomputed {
    /// Computed in the loop of a Reduce over `from`.
    pub value: NodeId,
    /// The same in the loop over `to`.
    pub again: NodeId,
    /// The Range of the Reduce.
    pub from: NodeId,
    /// The Range of the other loop.
    pub to: NodeId,
    /// The repeats, one bit each, whose `again` the loop over `from` needs: kept values must not need each other in a circle.
    pub(super) needs: u64,
    /// The repeats, one bit each, that this one overlaps: they replace one and the same value, or one replaces what the other
    /// keeps.
    pub(super) overlaps: u64,
}

/// Instructions from which on an op is expensive: it takes longer than storing its result and loading it.
const EXPENSIVE: usize = 8;

/// The expensive values that two loops compute, at most one for each bit of a set.
pub(super) fn find(graph: &mut Graph, kernel: &Kernel, target: &Target) -> Result<Vec<Recomputed>> {
    let sizes = Sizes::of(target);
    let is_expensive = |&node: &NodeId| sizes.size(graph, node) >= EXPENSIVE;
    let expensive: Vec<NodeId> = kernel.order.iter().copied().filter(is_expensive).collect();
    let mut repeats: Vec<Recomputed> = Vec::new();
    // The members of a workgroup share LOCAL memory, and would need a part of it each.
    if expensive.len() < 2 || target.workgroups.is_some() {
        return Ok(repeats);
    }
    let bound = |graph: &Graph, range: NodeId| graph.as_int(graph.source(range, 0));
    for reduction in &kernel.reductions {
        let &[from] = &reduction.ranges[..] else { continue };
        if bound(graph, from).is_none() {
            continue;
        }
        let inside = kernel.live.bit(from);
        let below = graph.reachable(&[graph.source(reduction.node, 0)]);
        let below: Vec<NodeId> = below.into_iter().filter(|&node| kernel.live.of(node) & inside != 0).collect();
        if !below.iter().any(|node| expensive.contains(node)) {
            continue;
        }
        for &to in &kernel.live.ranges {
            if to == from || bound(graph, to) != bound(graph, from) || reduction.outer & kernel.live.bit(to) != 0 {
                continue;
            }
            if let Some((value, again)) = repeated(graph, kernel, &below, (from, to), &expensive)? {
                repeats.push(Recomputed { value, again, from, to, needs: 0, overlaps: 0 });
            }
        }
    }
    repeats.truncate(u64::BITS as usize);
    relate(graph, kernel, &mut repeats);
    Ok(repeats)
}

/// Fills in which repeats need and overlap which.
fn relate(graph: &Graph, kernel: &Kernel, repeats: &mut [Recomputed]) {
    let set = |repeats: &[Recomputed], contains: &dyn Fn(&Recomputed) -> bool| {
        let members = repeats.iter().enumerate().filter(|(_, repeat)| contains(repeat));
        members.fold(0, |set, (number, _)| set | 1 << number)
    };
    for number in 0..repeats.len() {
        let Recomputed { value, again, from, .. } = repeats[number];
        let needed = needed(graph, kernel, from);
        let overlaps = |other: &Recomputed| [other.value, other.again].contains(&again) || other.again == value;
        let (needs, overlaps) = (set(repeats, &|other| needed.contains(&other.again)), set(repeats, &overlaps));
        repeats[number].needs = needs;
        repeats[number].overlaps = overlaps & !(1 << number);
    }
}

/// All nodes that the loop over `range` needs: those below its Reduces, and those that the loops among these need.
fn needed(graph: &Graph, kernel: &Kernel, range: NodeId) -> Vec<NodeId> {
    let mut loops = vec![range];
    loop {
        let over = |reduction: &&Reduction| reduction.ranges.iter().any(|range| loops.contains(range));
        let roots: Vec<NodeId> = kernel.reductions.iter().filter(over).map(|reduction| reduction.node).collect();
        let needed = graph.reachable(&roots);
        let below = kernel.reductions.iter().filter(|reduction| needed.contains(&reduction.node));
        let mut more: Vec<NodeId> = below.flat_map(|reduction| reduction.ranges.iter().copied()).collect();
        more.retain(|range| !loops.contains(range));
        if more.is_empty() {
            return needed;
        }
        loops.extend(more);
    }
}

/// The last of the values `below` that occurs again with another Range in place of its own, and is expensive or computed from
/// an expensive value.
fn repeated(
    graph: &mut Graph,
    kernel: &Kernel,
    below: &[NodeId],
    (from, to): (NodeId, NodeId),
    expensive: &[NodeId],
) -> Result<Option<(NodeId, NodeId)>> {
    let known = graph.len();
    let mut images: rustc_hash::FxHashMap<NodeId, NodeId> = std::iter::once((from, to)).collect();
    let mut made_of_expensive: Vec<NodeId> = Vec::new();
    let mut found = None;
    for &node in below.iter().filter(|&&node| node != from) {
        let sources: SmallVec<[NodeId; 4]> =
            graph.sources(node).iter().map(|source| images.get(source).copied().unwrap_or(*source)).collect();
        let arg = graph.arg(node).clone();
        let image = graph.add(graph.op(node), &sources, arg)?;
        images.insert(node, image);
        if expensive.contains(&node) || graph.sources(node).iter().any(|source| made_of_expensive.contains(source)) {
            made_of_expensive.push(node);
            let is_value = graph.op(node).is_elementwise() && graph.dtype(node).size() > 1;
            if is_value && image.index() < known && kernel.order.contains(&image) {
                found = Some((node, image));
            }
        }
    }
    Ok(found.filter(|(value, _)| graph.op(*value) != Op::Range))
}
