//! Gates of reads and writes: those that min_max decides are removed (SEMANTICS, "Indexing is memory-safe").

use crate::ops::movement;
use crate::views::{self, View};
use crate::{AddrSpace, Arg, Builder, Const, DType, Graph, NodeId, Op};

rules! {
    /// Gated reads and writes.
    GATES (Exact, "gates", g, node) {
        load_open: (Load address alternative 1) => with_sources(g, node, &[address])?;
        load_shut: (Load address alternative 0) => alternative;
        store_open: (Store address value 1) => with_sources(g, node, &[address, value])?;
        partial_state: (After buffer) if is_partial_state(g, node) => selected(g, node)?;
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

/// Whether it is the state of a tensor after stores that leave some of it, under a gate or through a view, or that repeat
/// what they store. Registers and scratch belong to kernels.
fn is_partial_state(graph: &Graph, node: NodeId) -> bool {
    let [buffer, effects @ ..] = graph.sources(node) else { return false };
    let shape = |node: NodeId| &graph.props(node).shape;
    let is_plain = |&effect: &NodeId| match *graph.sources(effect) {
        [target, value] => graph.op(effect) == Op::Store && target == *buffer && shape(value) == shape(target),
        _ => false,
    };
    !matches!(graph.props(*buffer).addrspace, Some(AddrSpace::Local | AddrSpace::Reg)) && !effects.iter().all(is_plain)
}

/// The state after one plain store, whose value is selected: a later store sees what an earlier one has written.
fn selected(graph: &mut Graph, node: NodeId) -> Option<NodeId> {
    let stores = views::stores(graph, node)?;
    let seen = View::of(graph, graph.source(node, 0)).ok()?;
    let mut state = seen.base;
    // Before the first store a Buffer holds nothing: zeros, as interpreters have it.
    if graph.op(state) == Op::Buffer {
        let zero = graph.constant(Const::int(graph.dtype(state), 0));
        let shape = graph.props(state).shape.clone();
        state = movement::expand(graph, zero, &shape).ok()?;
    }
    for store in stores {
        let view = View::of(graph, graph.source(store, 0)).ok()?;
        state = view.state(graph, seen.base, state);
        let value = match *graph.sources(store) {
            [_, value, gate] => {
                let old = view.read(graph, state).ok()?;
                graph.alu(Op::Where, &[gate, value, old]).ok()?
            }
            [_, value] => value,
            _ => return None,
        };
        state = view.written(graph, state, value).ok()?;
    }
    let store = graph.add(Op::Store, &[seen.base, state], Arg::None).ok()?;
    let after = graph.add(Op::After, &[seen.base, store], Arg::None).ok()?;
    seen.read(graph, after).ok()
}
