//! Gates of reads and writes: those that min_max decides are removed (SEMANTICS, "Indexing is memory-safe").

use crate::{Builder, DType, Graph, NodeId, Op};

rules! {
    /// Gated reads and writes.
    GATES (Exact, "gates", g, node) {
        load_open: (Load address alternative 1) => with_sources(g, node, &[address])?;
        load_shut: (Load address alternative 0) => alternative;
        store_open: (Store address value 1) => with_sources(g, node, &[address, value])?;
        where_gate: (Where gate (Load address alternative condition) other) if gate == condition && is_gate(g, gate) && other == alternative
            => g.source(node, 1);
    }
}

fn is_gate(graph: &Graph, node: NodeId) -> bool {
    graph.dtype(node) == DType::Bool
}

/// The node with other sources.
fn with_sources(graph: &mut Graph, node: NodeId, sources: &[NodeId]) -> Option<NodeId> {
    let (op, arg) = (graph.op(node), graph.arg(node).clone());
    debug_assert!(matches!(op, Op::Load | Op::Store));
    graph.add(op, sources, arg).ok()
}
