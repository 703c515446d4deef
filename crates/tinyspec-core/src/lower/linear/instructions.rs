//! Builds the new instruction sequence of a pass from the old one.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// An instruction sequence that is appended to.
#[derive(Default)]
pub(super) struct Instructions {
    list: Vec<NodeId>,
    listed: FxHashSet<NodeId>,
    /// The replacements of old nodes.
    new: FxHashMap<NodeId, NodeId>,
}

impl Instructions {
    /// The replacement of an old node, or the node itself.
    pub fn now(&self, node: NodeId) -> NodeId {
        self.new.get(&node).copied().unwrap_or(node)
    }

    /// Whether the sequence contains a node.
    pub fn contains(&self, node: NodeId) -> bool {
        self.listed.contains(&node)
    }

    /// Appends an instruction unless the sequence contains it already.
    pub fn push(&mut self, graph: &mut Graph, op: Op, sources: &[NodeId], arg: Arg) -> Result<NodeId> {
        let node = graph.add(op, sources, arg)?;
        if self.listed.insert(node) {
            self.list.push(node);
        }
        Ok(node)
    }

    /// Appends an old instruction over the replacements of its sources.
    pub fn copy(&mut self, graph: &mut Graph, node: NodeId) -> Result<NodeId> {
        let sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|&source| self.now(source)).collect();
        let (op, arg) = (graph.op(node), graph.arg(node).clone());
        self.copy_as(graph, node, op, &sources, arg)
    }

    /// Appends the replacement of an old instruction.
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
