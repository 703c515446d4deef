//! Gates of reads and writes: those that min_max decides are removed (SEMANTICS, "Indexing is memory-safe").

use crate::{AddrSpace, Arg, Builder, DType, Graph, NodeId, Op};
use smallvec::SmallVec;

rules! {
    /// Gated reads and writes.
    GATES (Exact, "gates", g, node) {
        load_open: (Load address alternative 1) => with_sources(g, node, &[address])?;
        load_shut: (Load address alternative 0) => alternative;
        store_open: (Store address value 1) => with_sources(g, node, &[address, value])?;
        state_gated: (After buffer) if is_gated_state(g, node) => selected(g, node)?;
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

/// Whether it is the state of a whole tensor after stores, at least one of which has a gate. Registers and scratch
/// belong to kernels.
fn is_gated_state(graph: &Graph, node: NodeId) -> bool {
    let [buffer, effects @ ..] = graph.sources(node) else { return false };
    let is_whole = |&effect: &NodeId| graph.op(effect) == Op::Store && graph.source(effect, 0) == *buffer;
    !matches!(graph.props(*buffer).addrspace, Some(AddrSpace::Local | AddrSpace::Reg))
        && effects.iter().all(is_whole)
        && effects.iter().any(|&effect| graph.sources(effect).len() > 2)
}

/// The state after one store without a gate, whose value is selected: a later store sees what an earlier one has written.
fn selected(graph: &mut Graph, node: NodeId) -> Option<NodeId> {
    let sources: SmallVec<[NodeId; 4]> = graph.sources(node).into();
    let (&buffer, effects) = sources.split_first()?;
    let mut state = buffer;
    for &effect in effects {
        state = match *graph.sources(effect) {
            [_, value, gate] => graph.alu(Op::Where, &[gate, value, state]).ok()?,
            [_, value] => value,
            _ => return None,
        };
    }
    let store = graph.add(Op::Store, &[buffer, state], Arg::None).ok()?;
    graph.add(Op::After, &[buffer, store], Arg::None).ok()
}
