//! Reduces that need each other's result cannot share a loop: each gets Ranges of its own.

use crate::lower::live::{Live, RangeSet};
use smallvec::SmallVec;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// Gives a Reduce new Ranges where its value contains a Reduce over the same ones.
pub(super) fn separate(graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
    let order = graph.reachable(&[sink]);
    let live = Live::new(graph, &order)?;
    // Ranges that a Reduce or End below a node has closed.
    let mut closed: Vec<RangeSet> = vec![0; graph.len()];
    let mut conflicts: Vec<(NodeId, RangeSet)> = Vec::new();
    for &node in &order {
        let below = graph.sources(node).iter().fold(0, |set, source| set | closed[source.index()]);
        let own = match graph.op(node) {
            Op::Reduce => graph.sources(node)[1..].iter().fold(0, |set, &range| set | live.bit(range)),
            _ => 0,
        };
        if below & own != 0 {
            conflicts.push((node, below & own));
        }
        closed[node.index()] = below | own;
    }
    if conflicts.is_empty() {
        return Ok(sink);
    }
    let ids = live.ranges.iter().filter_map(|&range| match graph.arg(range) {
        Arg::Range { id, .. } => Some(*id),
        _ => None,
    });
    let mut next = ids.max().map_or(0, |id| id + 1);
    let mut new: Vec<NodeId> = (0..graph.len() as u32).map(NodeId).collect();
    for &node in &order {
        let mut map = None;
        if let Some(&(_, shared)) = conflicts.iter().find(|conflict| conflict.0 == node) {
            map = Some(renamed(graph, &live, &order, node, shared, &new, &mut next)?);
        }
        let map = map.as_ref().unwrap_or(&new);
        let sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|source| map[source.index()]).collect();
        let arg = graph.arg(node).clone();
        new[node.index()] = graph.add(graph.op(node), &sources, arg)?;
    }
    Ok(new[sink.index()])
}

/// The nodes below `reduce` inside the loops of `shared`, with those Ranges replaced by new ones.
fn renamed(
    graph: &mut Graph,
    live: &Live,
    order: &[NodeId],
    reduce: NodeId,
    shared: RangeSet,
    new: &[NodeId],
    next: &mut u32,
) -> Result<Vec<NodeId>> {
    let mut map = new.to_vec();
    for &node in order.iter().take_while(|&&node| node < reduce) {
        if live.of(node) & shared == 0 {
            continue;
        }
        let mut arg = graph.arg(node).clone();
        if let Arg::Range { id, .. } = &mut arg
            && live.bit(node) & shared != 0
        {
            *id = *next;
            *next += 1;
        }
        let sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|source| map[source.index()]).collect();
        map[node.index()] = graph.add(graph.op(node), &sources, arg)?;
    }
    Ok(map)
}
