//! Barriers: data passed between members of a workgroup must be protected by one.

use super::order::accesses;
use super::refuse;
use crate::{Arg, AxisType, Graph, NodeId, Op, Result};
use rustc_hash::FxHashMap;

/// The greatest depth to which indices are compared.
const DEPTH: u32 = 64;

/// Checks a kernel with the loops that its author wrote. After Optimize, members wait at the ends of LOCAL loops.
///
/// # Errors
/// Names an access that follows one of another member to the same memory in a LOCAL loop, without a Barrier in between.
pub fn barriers(graph: &Graph, sink: NodeId) -> Result<()> {
    let live = graph.reachable(&[sink]);
    let accesses = accesses(graph, &live);
    for first in &accesses {
        // Which nodes depend on the access: at all, through a Barrier, and from outside its LOCAL loop.
        let (mut below, mut behind, mut closed) =
            (vec![false; graph.len()], vec![false; graph.len()], vec![false; graph.len()]);
        for &node in &live {
            let sources = graph.sources(node);
            let any = |set: &[bool]| sources.iter().any(|source| set[source.index()]);
            let (from, through, out) = (any(&below), any(&behind), any(&closed));
            below[node.index()] = from || node == first.node;
            behind[node.index()] = if graph.op(node) == Op::Barrier { from } else { through };
            let ends_local = graph.op(node) == Op::End && is_local(graph, sources[1]);
            closed[node.index()] = if ends_local { from } else { out };
        }
        for second in accesses.iter().filter(|second| second.memory == first.memory && second.node > first.node) {
            let at = second.node.index();
            let is_open = closed[at] && !behind[at] && (first.writes || second.writes);
            if is_open && !are_one_cell(graph, first.node, second.node) {
                let why = format!("follows %{} of a LOCAL loop without a Barrier between", first.node.0);
                return refuse("verify barriers", graph, second.node, why);
            }
        }
    }
    Ok(())
}

fn is_local(graph: &Graph, range: NodeId) -> bool {
    matches!(graph.arg(range), Arg::Range { axis: AxisType::Local | AxisType::Warp, .. })
}

/// Whether two accesses of one member are to the same element, in loops of the same size.
fn are_one_cell(graph: &Graph, first: NodeId, second: NodeId) -> bool {
    let (first, second) = (graph.source(first, 0), graph.source(second, 0));
    let (left, right) = (graph.sources(first), graph.sources(second));
    let mut members = FxHashMap::default();
    graph.op(first) == Op::Index
        && graph.op(second) == Op::Index
        && left.len() == right.len()
        && left[1..].iter().zip(&right[1..]).all(|(&left, &right)| same(graph, left, right, &mut members, DEPTH))
}

fn same(graph: &Graph, left: NodeId, right: NodeId, members: &mut FxHashMap<NodeId, NodeId>, depth: u32) -> bool {
    if is_local(graph, left) && is_local(graph, right) {
        return graph.source(left, 0) == graph.source(right, 0) && *members.entry(left).or_insert(right) == right;
    }
    let (below, other) = (graph.sources(left), graph.sources(right));
    depth > 0
        && graph.op(left) == graph.op(right)
        && graph.arg(left) == graph.arg(right)
        && below.len() == other.len()
        && below.iter().zip(other).all(|(&left, &right)| same(graph, left, right, members, depth - 1))
}
