//! Helpers for loops around effects, and for named dims.

use tinyspec_ir::{Arg, Builder, DType, Graph, NodeId, Op, Result};

/// Closes `loops` around `effect`, the last of them innermost.
pub(crate) fn closed(graph: &mut Graph, effect: NodeId, loops: &[NodeId]) -> Result<NodeId> {
    loops.iter().rev().try_fold(effect, |effect, &range| graph.add(Op::End, &[effect, range], Arg::None))
}

/// Several effects as one.
pub(crate) fn grouped(graph: &mut Graph, effects: &[NodeId]) -> Result<NodeId> {
    match *effects {
        [effect] => Ok(effect),
        _ => graph.add(Op::Group, effects, Arg::None),
    }
}

/// Whether the kernel contains named dims.
pub(crate) fn has_dims(graph: &Graph, sink: NodeId) -> bool {
    let is_dim = |node: &NodeId| graph.op(*node) == Op::Param && graph.dtype(*node) == DType::Index;
    graph.reachable(&[sink]).iter().any(is_dim)
}
