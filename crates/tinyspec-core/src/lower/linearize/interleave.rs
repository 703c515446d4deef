//! Interleaves long dependence chains. A processor's scheduler looks some sixty instructions ahead: if a loop has
//! chains of that length one after the other, each instruction waits for the previous one, and little of the next chain
//! overlaps. Two interleaved chains hide half of the latency, and four three quarters; as many are interleaved as the
//! registers of every machine hold.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op};

/// The least number of values in a chain.
const LONG: usize = 16;
/// The most chains that are interleaved.
const MOST: usize = 4;
/// The most values of all chains that may be live at once. The smallest machines have registers for 13 of them;
/// spilling the few with the longest live ranges costs less than unhidden latency.
const VALUES: usize = 20;

/// The body of a loop, with isomorphic chains, each ending in an effect, interleaved.
pub(super) fn interleave(graph: &Graph, body: Vec<NodeId>) -> Vec<NodeId> {
    // Effects that become conditional blocks are left alone.
    let is_other = |node: &NodeId| {
        matches!(graph.op(*node), Op::End | Op::Barrier | Op::Call | Op::Custom)
            || is_store(graph, *node) && graph.sources(*node).len() > 2
    };
    if body.len() < 2 * LONG || body.iter().any(is_other) {
        return body;
    }
    let chains: Vec<&[NodeId]> = body.split_inclusive(|&node| is_store(graph, node)).collect();
    let mut all = Vec::with_capacity(body.len());
    let mut rest = &chains[..];
    while let Some((&chain, others)) = rest.split_first() {
        let most = others.first().map_or(1, |other| (VALUES / alive(graph, other).max(1)).clamp(2, MOST));
        let mut counts = [MOST, 2].into_iter().filter(|&count| count <= most.min(rest.len()));
        let found = counts.find_map(|count| Some((count, take_turns(graph, &rest[..count])?)));
        let (count, merged) = found.unwrap_or_else(|| (1, chain.to_vec()));
        all.extend(merged);
        rest = &rest[count..];
    }
    all
}

fn is_store(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.op(node), Op::Store | Op::AtomicAdd)
}

/// Whether this is a step of a chain. Other nodes, such as address arithmetic, go before the step that needs them.
fn is_step(graph: &Graph, node: NodeId) -> bool {
    is_store(graph, node) || graph.op(node) == Op::Load || is_computed(graph, node)
}

fn is_computed(graph: &Graph, node: NodeId) -> bool {
    (graph.op(node).is_elementwise() || graph.op(node) == Op::Ins)
        && (graph.dtype(node).is_float() || !graph.props(node).shape.is_empty())
}

/// The most values of a chain that are live at once.
fn alive(graph: &Graph, chain: &[NodeId]) -> usize {
    let mut last_uses: FxHashMap<NodeId, usize> = FxHashMap::default();
    for (position, &node) in chain.iter().enumerate() {
        for &source in graph.sources(node) {
            last_uses.insert(source, position);
        }
    }
    let mut ends = vec![0usize; chain.len()];
    let (mut alive, mut most) = (0, 0);
    for (position, node) in chain.iter().enumerate() {
        alive -= ends[position];
        if let Some(&last) = last_uses.get(node).filter(|_| is_computed(graph, *node) || graph.op(*node) == Op::Load) {
            alive += 1;
            ends[last] += 1;
        }
        most = most.max(alive);
    }
    most
}

/// Interleaves chains if all have the same steps as the first and every operand still precedes its uses. Shared values
/// are in the first chain.
fn take_turns(graph: &Graph, chains: &[&[NodeId]]) -> Option<Vec<NodeId>> {
    let (&first, others) = chains.split_first()?;
    let is_long = |chain: &&[NodeId]| chain.iter().filter(|&&node| is_computed(graph, node)).count() >= LONG;
    let meets = |(number, chain): (usize, &&[NodeId])| chains[..number].iter().any(|before| meet(graph, before, chain));
    if !others.iter().all(is_long) || chains.iter().enumerate().any(meets) {
        return None;
    }
    let kind = |step: &[NodeId]| step.last().map(|&node| (graph.op(node), graph.dtype(node)));
    let steps = |chain: &[NodeId]| -> Vec<Vec<NodeId>> {
        chain.split_inclusive(|&node| is_step(graph, node)).map(<[NodeId]>::to_vec).collect()
    };
    // From the end, since values that only the first chain has are mostly at its beginning.
    let mut turns: Vec<Vec<Vec<NodeId>>> = steps(first).into_iter().rev().map(|step| vec![step]).collect();
    for other in others {
        let mut rest = steps(other).into_iter().rev().peekable();
        for turn in &mut turns {
            turn.extend(rest.next_if(|step| kind(step) == kind(&turn[0])));
        }
        if rest.peek().is_some() {
            return None;
        }
    }
    let all: Vec<NodeId> = turns.into_iter().rev().flatten().flatten().collect();
    is_ordered(graph, &all).then_some(all)
}

/// Whether the second chain reads a buffer that the first writes.
fn meet(graph: &Graph, first: &[NodeId], second: &[NodeId]) -> bool {
    let memory = |node: NodeId| buffer(graph, graph.source(node, 0));
    let stores = first.iter().filter(|&&node| is_store(graph, node));
    let written: SmallVec<[Option<NodeId>; 2]> = stores.map(|&node| memory(node)).collect();
    let reads = |node: &&NodeId| graph.op(**node) == Op::Load;
    second.iter().filter(reads).any(|&load| written.contains(&None) || written.contains(&memory(load)))
}

/// The buffer that an address is in.
fn buffer(graph: &Graph, mut place: NodeId) -> Option<NodeId> {
    while matches!(graph.op(place), Op::After | Op::Index | Op::Shrink) {
        place = graph.source(place, 0);
    }
    matches!(graph.arg(place), Arg::Param { .. } | Arg::Buffer { .. }).then_some(place)
}

/// Whether every node comes after its sources that are in the list.
fn is_ordered(graph: &Graph, list: &[NodeId]) -> bool {
    let mut waiting: FxHashSet<NodeId> = list.iter().copied().collect();
    list.iter().all(|node| {
        waiting.remove(node);
        graph.sources(*node).iter().all(|source| !waiting.contains(source))
    })
}
