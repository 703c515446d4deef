//! Sums that decide which term of a maximum is the greatest, as its gradient asks.
//!
//! The gradient of a maximum compares it with its terms. A sum below them that each kernel computes for itself may be rounded in two
//! ways, and then no term equals the maximum. Such sums are computed once.

use tinyspec_ir::{Arg, Graph, NodeId, Op};

/// The float sums and products that the terms of a compared maximum are made of, without another one in between.
pub(super) fn sums_below_compared_maxima(graph: &Graph, live: &[NodeId]) -> Vec<NodeId> {
    let mut is_compared = vec![false; graph.len()];
    for &node in live.iter().filter(|&&node| graph.op(node) == Op::CmpNe) {
        let sides = graph.sources(node);
        if sides.iter().any(|&side| is_maximum(graph, without_views(graph, side))) {
            sides.iter().for_each(|side| is_compared[side.index()] = true);
        }
    }
    let mut sums = vec![];
    for &node in live.iter().rev().filter(|node| graph.dtype(**node).is_float()) {
        if !is_compared[node.index()] {
            continue;
        }
        match graph.arg(node) {
            Arg::Reduce { op: Op::Add | Op::Mul, .. } => sums.push(node),
            _ => graph.sources(node).iter().for_each(|source| is_compared[source.index()] = true),
        }
    }
    sums
}

fn is_maximum(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.arg(node), Arg::Reduce { op: Op::Max, .. }) && graph.dtype(node).is_float()
}

fn without_views(graph: &Graph, mut node: NodeId) -> NodeId {
    while graph.op(node).is_view() {
        node = graph.source(node, 0);
    }
    node
}
