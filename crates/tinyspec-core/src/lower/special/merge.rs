//! Merges Barriers, so that threads wait once for data from several parts of a kernel.

use crate::lower::live::{Live, RangeSet};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// Merges Barriers that are in the same loops and have the same number of Barriers and loops before them.
pub(super) fn merge(graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
    let order = graph.reachable(&[sink]);
    let live = Live::new(graph, &order)?;
    let levels = levels(graph, &order);
    let mut alike: FxHashMap<(RangeSet, u32), Vec<NodeId>> = FxHashMap::default();
    for &node in order.iter().filter(|&&node| graph.op(node) == Op::Barrier) {
        alike.entry((live.of(node), levels[node.index()])).or_default().push(node);
    }
    alike.retain(|_, barriers| barriers.len() > 1);
    if alike.is_empty() {
        return Ok(sink);
    }
    // Level by level, so that everything a merged Barrier waits for precedes it.
    let mut by_level: Vec<NodeId> = order.clone();
    by_level.sort_by_key(|node| (levels[node.index()], graph.op(*node) != Op::Barrier));
    let mut new: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let mut pending: Vec<NodeId> = by_level;
    pending.reverse();
    while let Some(&node) = pending.last() {
        if new.contains_key(&node) {
            pending.pop();
            continue;
        }
        let all: SmallVec<[NodeId; 4]> = match alike.get(&(live.of(node), levels[node.index()])) {
            Some(barriers) if graph.op(node) == Op::Barrier => SmallVec::from_slice(barriers),
            _ => SmallVec::from_iter([node]),
        };
        let missing = |source: &NodeId| !new.contains_key(source);
        let needed: Vec<NodeId> = all.iter().flat_map(|&node| graph.sources(node)).copied().filter(missing).collect();
        if !needed.is_empty() {
            pending.extend(needed);
            continue;
        }
        let mut sources: SmallVec<[NodeId; 4]> =
            all.iter().flat_map(|&node| graph.sources(node)).map(|source| new[source]).collect();
        if all.len() > 1 {
            sources.sort_unstable();
            sources.dedup();
        }
        let arg: Arg = graph.arg(node).clone();
        let made = graph.add(graph.op(node), &sources, arg)?;
        all.into_iter().for_each(|node| {
            new.insert(node, made);
        });
    }
    Ok(new[&sink])
}

/// For each node, the number of Barriers and loops that must finish before it. Loops over the same Ranges are one, at
/// the level of the last of them.
fn levels(graph: &Graph, order: &[NodeId]) -> Vec<u32> {
    let mut levels: Vec<u32> = vec![0; graph.len()];
    let mut of_loop: FxHashMap<SmallVec<[NodeId; 4]>, u32> = FxHashMap::default();
    // Each sweep except the last finds the final level of at least one loop, so as many sweeps as nodes suffice.
    for _ in 0..=order.len() {
        let mut changed = false;
        for &node in order {
            let below = graph.sources(node).iter().map(|source| levels[source.index()]).max().unwrap_or(0);
            let level = match graph.op(node) {
                Op::Barrier => below + 1,
                Op::Reduce | Op::End => {
                    let ranges: SmallVec<[NodeId; 4]> = graph.sources(node)[1..].into();
                    let level = of_loop.entry(ranges).or_insert(0);
                    *level = (*level).max(below + 1);
                    *level
                }
                _ => below,
            };
            changed |= std::mem::replace(&mut levels[node.index()], level) != level;
        }
        if !changed {
            break;
        }
    }
    levels
}
