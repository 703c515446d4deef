//! Long chains beside each other. A processor sees some sixty instructions ahead: where a loop has chains of that
//! length, one after the other, each instruction waits for the one before, and little of the next chain fills the time.
//! Taking turns, two wait half as long, and four a quarter; as many do as the registers of every machine hold.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op};

/// Values that a chain is made of, at least.
const LONG: usize = 16;
/// Chains that take turns, at most.
const MOST: usize = 4;
/// Values of all chains that may be alive at once. The smallest machines have registers for 13 of them; the few that wait
/// longest go to the stack, which costs less than chains that wait for themselves.
const VALUES: usize = 20;

/// The body of a loop, in which chains that end in an effect each and are alike take turns.
pub(super) fn interleave(graph: &Graph, body: Vec<NodeId>) -> Vec<NodeId> {
    // What conditions are put around stays as it is.
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

/// Is this a step of a chain? What is not, such as the arithmetic of places, stands before the step that it is for.
fn is_step(graph: &Graph, node: NodeId) -> bool {
    is_store(graph, node) || graph.op(node) == Op::Load || is_computed(graph, node)
}

fn is_computed(graph: &Graph, node: NodeId) -> bool {
    (graph.op(node).is_elementwise() || graph.op(node) == Op::Ins)
        && (graph.dtype(node).is_float() || !graph.props(node).shape.is_empty())
}

/// How many values of a chain are waiting for their last use, at most.
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

/// Chains in turns, if all are made of the steps of the first and need nothing before it is there. What they share stands
/// in the first.
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
    // From the end, as what is only in the first is mostly at its beginning.
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

/// Does the second chain read a buffer that the first writes?
fn meet(graph: &Graph, first: &[NodeId], second: &[NodeId]) -> bool {
    let memory = |node: NodeId| buffer(graph, graph.source(node, 0));
    let stores = first.iter().filter(|&&node| is_store(graph, node));
    let written: SmallVec<[Option<NodeId>; 2]> = stores.map(|&node| memory(node)).collect();
    let reads = |node: &&NodeId| graph.op(**node) == Op::Load;
    second.iter().filter(reads).any(|&load| written.contains(&None) || written.contains(&memory(load)))
}

/// The buffer that a place is in.
fn buffer(graph: &Graph, mut place: NodeId) -> Option<NodeId> {
    while matches!(graph.op(place), Op::After | Op::Index | Op::Shrink) {
        place = graph.source(place, 0);
    }
    matches!(graph.arg(place), Arg::Param { .. } | Arg::Buffer { .. }).then_some(place)
}

/// Every node comes after those of its sources that are in the list.
fn is_ordered(graph: &Graph, list: &[NodeId]) -> bool {
    let mut waiting: FxHashSet<NodeId> = list.iter().copied().collect();
    list.iter().all(|node| {
        waiting.remove(node);
        graph.sources(*node).iter().all(|source| !waiting.contains(source))
    })
}
