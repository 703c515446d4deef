//! Long chains beside each other. A processor sees some sixty instructions ahead: where a loop has two chains of that
//! length, one after the other, each instruction waits for the one before, and little of the second chain fills the time.
//! Alternating, they wait half as long.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use tinyspec_ir::{Arg, Graph, NodeId, Op};

/// Values that a chain is made of, at least.
const LONG: usize = 16;

/// The body of a loop, with chains that end in an effect each and are alike in pairs.
pub(super) fn beside(graph: &Graph, body: Vec<NodeId>) -> Vec<NodeId> {
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
    let mut next = 0;
    while let Some(&chain) = chains.get(next) {
        match chains.get(next + 1).and_then(|other| alternate(graph, chain, other)) {
            Some(both) => {
                all.extend(both);
                next += 2;
            }
            None => {
                all.extend_from_slice(chain);
                next += 1;
            }
        }
    }
    all
}

fn is_store(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.op(node), Op::Store | Op::AtomicAdd)
}

/// Two chains in turn, if the second is made of the ops of the first and needs nothing before it is there. What both use
/// stands in the first.
fn alternate(graph: &Graph, first: &[NodeId], second: &[NodeId]) -> Option<Vec<NodeId>> {
    let is_computed = |node: &&NodeId| graph.op(**node).is_elementwise() || graph.op(**node) == Op::Ins;
    let computed = second.iter().filter(is_computed).count();
    if computed < LONG || second.len() > first.len() {
        return None;
    }
    let kind = |node: NodeId| (graph.op(node), graph.dtype(node));
    // From the end, as what is only in the first is mostly at its beginning.
    let mut pairs: SmallVec<[(NodeId, Option<NodeId>); 64]> = SmallVec::new();
    let mut others = second.iter().rev().copied().peekable();
    for &node in first.iter().rev() {
        pairs.push((node, others.next_if(|&other| kind(other) == kind(node))));
    }
    let mut both = Vec::with_capacity(first.len() + second.len());
    for (node, other) in pairs.into_iter().rev() {
        both.push(node);
        both.extend(other);
    }
    let is_whole = others.peek().is_none();
    (is_whole && !meet(graph, first, second) && is_ordered(graph, &both)).then_some(both)
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
