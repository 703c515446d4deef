//! `0 <= i < n` as one comparison of unsigned numbers.
//!
//! Places that data name are gated so. Beside the instructions this saves the bytes that two comparisons leave in registers:
//! each waits for what its register held before, so that one trip of a loop waits for the last.

use rustc_hash::FxHashMap;
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{Arg, Builder, Const, DType, Graph, NodeId, Op, Result};

/// The kernel with one comparison for each such pair of scalars.
pub(super) fn unsigned(graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
    let mut map = FxHashMap::default();
    for node in graph.reachable(&[sink]) {
        if let Some((place, limit)) = within(graph, node) {
            let dtype = if graph.dtype(place) == DType::I32 { DType::U32 } else { DType::U64 };
            let place = graph.add(Op::Cast, &[place], Arg::DType(dtype))?;
            let limit = match graph.as_int(limit) {
                Some(number) => graph.constant(Const::int(dtype, number)),
                None => graph.add(Op::Cast, &[limit], Arg::DType(dtype))?,
            };
            map.insert(node, graph.alu(Op::CmpLt, &[place, limit])?);
        }
    }
    if map.is_empty() { Ok(sink) } else { Ok(substitute(graph, &[sink], &map)?[0]) }
}

/// The place and its limit, where a gate asks for no more than whether the one is inside the other.
fn within(graph: &Graph, node: NodeId) -> Option<(NodeId, NodeId)> {
    let (Op::And, &[a, b]) = (graph.op(node), graph.sources(node)) else { return None };
    let compared = |node: NodeId| match (graph.op(node), graph.sources(node)) {
        (Op::CmpLt, &[a, b]) => {
            let is_scalar = graph.props(node).shape.is_empty();
            (is_scalar && matches!(graph.dtype(a), DType::I32 | DType::I64)).then_some((a, b))
        }
        _ => None,
    };
    let (a, b) = (compared(a)?, compared(b)?);
    [(a, b), (b, a)].into_iter().find_map(|((least, place), (same, limit))| {
        let is_counted = graph.props(limit).interval.int().is_some_and(|(low, _)| low >= 0);
        (graph.as_int(least) == Some(-1) && place == same && is_counted).then_some((place, limit))
    })
}
