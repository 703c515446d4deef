//! The conditions of an access: its own gate, and in a Linear those of the enclosing Ifs.

use crate::address::behind_after;
use crate::{Graph, NodeId, Op};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Conditions of the instructions of a Linear; empty for any other form.
pub(super) struct Conditions(FxHashMap<NodeId, SmallVec<[NodeId; 1]>>);

impl Conditions {
    pub(super) fn new(graph: &Graph, root: NodeId) -> Conditions {
        let mut around = FxHashMap::default();
        let has_any = |&node: &NodeId| graph.op(node) == Op::If;
        if graph.op(root) != Op::Linear || !graph.sources(root).iter().any(has_any) {
            return Conditions(around);
        }
        let mut open: SmallVec<[NodeId; 1]> = SmallVec::new();
        for &node in graph.sources(root) {
            match graph.op(node) {
                Op::If => open.push(behind_after(graph, graph.source(node, 0))),
                Op::Endif => drop(open.pop()),
                _ if !open.is_empty() => drop(around.insert(node, open.clone())),
                _ => {}
            }
        }
        Conditions(around)
    }

    /// The conditions of the Ifs around a node.
    pub(super) fn around(&self, node: NodeId) -> &[NodeId] {
        self.0.get(&node).map(SmallVec::as_slice).unwrap_or_default()
    }

    /// The gates of a Load, Store or AtomicAdd.
    pub(super) fn gates(&self, graph: &Graph, access: NodeId) -> SmallVec<[NodeId; 2]> {
        let own = graph.sources(access).get(2).copied();
        own.into_iter().chain(self.around(access).iter().copied()).collect()
    }
}
