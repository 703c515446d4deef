//! The instructions of a new sequence, as a pass makes them of those of the old one.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// A sequence that grows at its end.
#[derive(Default)]
pub(super) struct Instructions {
    list: Vec<NodeId>,
    listed: FxHashSet<NodeId>,
    /// What old instructions have become.
    new: FxHashMap<NodeId, NodeId>,
}

impl Instructions {
    /// What an old node has become.
    pub fn now(&self, node: NodeId) -> NodeId {
        self.new.get(&node).copied().unwrap_or(node)
    }

    /// Does a node stand in the sequence?
    pub fn contains(&self, node: NodeId) -> bool {
        self.listed.contains(&node)
    }

    /// A new instruction, unless it is there already. Constants and shapes are written where they are used.
    pub fn push(&mut self, graph: &mut Graph, op: Op, sources: &[NodeId], arg: Arg) -> Result<NodeId> {
        let node = graph.add(op, sources, arg)?;
        if self.listed.insert(node) {
            self.list.push(node);
        }
        Ok(node)
    }

    /// An old instruction, over what its sources have become.
    pub fn copy(&mut self, graph: &mut Graph, node: NodeId) -> Result<NodeId> {
        let sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|&source| self.now(source)).collect();
        let (op, arg) = (graph.op(node), graph.arg(node).clone());
        self.copy_as(graph, node, op, &sources, arg)
    }

    /// What an old instruction becomes.
    pub fn copy_as(&mut self, graph: &mut Graph, node: NodeId, op: Op, sources: &[NodeId], arg: Arg) -> Result<NodeId> {
        let new = self.push(graph, op, sources, arg)?;
        if new != node {
            let locations: SmallVec<[_; 1]> = graph.locations(node).into();
            locations.into_iter().for_each(|location| graph.locate(new, location));
            self.new.insert(node, new);
        }
        Ok(new)
    }

    /// The sequence as a node.
    pub fn linear(self, graph: &mut Graph) -> Result<NodeId> {
        graph.add(Op::Linear, &self.list, Arg::None)
    }
}
