//! Sums that decide which term of a maximum is the greatest, as its gradient asks, or the program itself.
//!
//! A comparison of a maximum or minimum with its terms expects one of them to be equal and none to be beyond. A sum below them that
//! each kernel computes for itself may be rounded in two ways, and then none is equal. Such sums are computed once.

use tinyspec_ir::masks::repeated;
use tinyspec_ir::{Arg, Const, Graph, NodeId, Op};

/// Nodes between a comparison and a maximum that are looked at, at most.
const NEAR: usize = 32;

/// The float sums and products that the terms of a compared maximum are made of, without another one in between.
pub(super) fn sums_below_compared_maxima(graph: &Graph, live: &[NodeId]) -> Vec<NodeId> {
    let mut is_compared = vec![false; graph.len()];
    for &node in live.iter().filter(|&&node| matches!(graph.op(node), Op::CmpNe | Op::CmpLt)) {
        let sides = graph.sources(node);
        if sides.iter().any(|&side| has_maximum(graph, side)) {
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

/// Whether a float is made of a maximum by what keeps it exact: a view, a sign, a choice, a difference from data. (A share of it, or what
/// lies a little below, is a threshold, which no term is expected to be equal to.)
fn has_maximum(graph: &Graph, side: NodeId) -> bool {
    let mut open = vec![side];
    let mut met = 0;
    while let Some(node) = open.pop().filter(|_| met < NEAR) {
        met += 1;
        match (graph.op(node), graph.arg(node)) {
            _ if !graph.dtype(node).is_float() => {}
            (_, Arg::Reduce { op: Op::Max, .. }) => return true,
            (op, _) if op.is_view() => open.push(graph.source(node, 0)),
            (Op::Mul, _) if number(graph, graph.source(node, 1)).is_none_or(|number| number.abs() != 1.0) => {}
            (Op::Add, _) if number(graph, graph.source(node, 1)).is_some() => {}
            (Op::Add | Op::Mul | Op::Max | Op::Where | Op::Cast, _) => open.extend(graph.sources(node)),
            _ => {}
        }
    }
    false
}

fn number(graph: &Graph, node: NodeId) -> Option<f64> {
    graph.as_const(repeated(graph, node)).and_then(Const::as_float)
}
