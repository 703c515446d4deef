//! Reads that must not be hoisted out of their loops. The variable of a Range with at most one trip is 0, so the index
//! of a read need not depend on it; but without the trip, the buffer may have no such element.

use crate::lower::live::{Live, RangeSet};
use rustc_hash::FxHashMap;
use tinyspec_ir::{AddrSpace, Builder, DType, Graph, Interval, NodeId, Op};

/// For such reads, and values computed from them, the loops that they must stay in besides those that they depend on.
pub(super) fn required_loops(graph: &Graph, live: &Live, order: &[NodeId]) -> FxHashMap<NodeId, RangeSet> {
    let mut required = FxHashMap::default();
    let may_be_empty = |range: NodeId| match graph.props(graph.source(range, 0)).interval {
        Interval::Int(least, _) => least < 1,
        _ => true,
    };
    let empty = live.ranges.iter().filter(|&&range| may_be_empty(range)).fold(0, |set, &range| set | live.bit(range));
    if empty == 0 {
        return required;
    }
    let mut is_guarded = vec![false; graph.len()];
    for &node in order {
        let is_value = graph.dtype(node) != DType::Void && graph.op(node) != Op::Range;
        is_guarded[node.index()] = (graph.op(node) == Op::Load && !is_always_inside(graph, node))
            || (is_value && graph.sources(node).iter().any(|source| is_guarded[source.index()]));
    }
    // Loops that contain all users of a node.
    let mut around = vec![RangeSet::MAX; graph.len()];
    for &node in order.iter().rev() {
        let mut loops = live.of(node);
        if is_guarded[node.index()] {
            loops |= around[node.index()] & empty;
            required.insert(node, loops);
        }
        // A bound is needed before its loop begins.
        loops &= !live.bit(node);
        for source in graph.sources(node) {
            around[source.index()] &= loops;
        }
    }
    required
}

/// Whether the element that is read exists whatever the named dims are.
fn is_always_inside(graph: &Graph, load: NodeId) -> bool {
    let address = graph.source(load, 0);
    if graph.props(address).addrspace != Some(AddrSpace::Global) {
        return true;
    }
    let (index, count) = match (graph.op(address), graph.sources(address)) {
        (Op::Index, &[_, index]) => (index, 1),
        (Op::Shrink, &[_, offset, _]) if graph.op(offset) == Op::Stack && graph.sources(offset).len() == 1 => {
            (graph.source(offset, 0), graph.props(address).element_count().bounds().1)
        }
        _ => return false,
    };
    let least = graph.props(graph.source(address, 0)).element_count().bounds().0;
    matches!(graph.props(index).interval, Interval::Int(low, high) if low >= 0 && high + count as i128 <= least as i128)
}
