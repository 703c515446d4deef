//! A program that ran, as gradients see it.

use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::OnceLock;
use tinyspec_ir::{Arg, DType, Graph, NodeId, Op};

/// A program with a separate node for each tensor that it may have met, even if equal. Its runs share it.
pub(crate) struct Program {
    pub graph: Graph,
    /// One per root.
    pub outputs: Vec<NodeId>,
    /// One per entry of the walk.
    pub entries: Vec<NodeId>,
    /// Nodes that may be tensors of the program, and their entries of the walk.
    pub tensors: Vec<(NodeId, u32)>,
    /// Which outputs a gradient flows through, computed on demand.
    flowing: OnceLock<Vec<bool>>,
    /// The slots of the inputs that gradients of some output flow to, computed on demand.
    reached: OnceLock<FxHashSet<u32>>,
}

impl Program {
    pub fn new(graph: Graph, outputs: Vec<NodeId>, entries: Vec<NodeId>) -> Program {
        let floats = entries.iter().copied().zip(0..).filter(|&(node, _)| graph.dtype(node).is_float());
        let mut tensors: Vec<(NodeId, u32)> = floats.collect();
        tensors.sort_unstable();
        Program { graph, outputs, entries, tensors, flowing: OnceLock::new(), reached: OnceLock::new() }
    }

    /// Its approximate size in bytes.
    pub fn bytes(&self) -> usize {
        self.graph.bytes() + 5 * self.outputs.len() + 4 * self.entries.len() + 8 * self.tensors.len()
    }

    /// The entry of the walk that a node is.
    pub fn entry(&self, node: NodeId) -> Option<usize> {
        let place = self.tensors.binary_search_by_key(&node, |&(node, _)| node).ok()?;
        Some(self.tensors[place].1 as usize)
    }

    /// Whether an output derives from something that may have a gradient.
    pub fn flows(&self, output: usize) -> bool {
        let flowing = self.flowing.get_or_init(|| {
            let graph = &self.graph;
            let mut is_tensor = vec![false; graph.len()];
            for &(node, _) in &self.tensors {
                is_tensor[node.index()] = graph.op(node) != Op::Const;
            }
            // By node: something below it, and something at or below it.
            let (mut flows, mut holds) = (vec![false; graph.len()], vec![false; graph.len()]);
            for node in graph.nodes() {
                // The Params of a body are its own.
                let below = &graph.sources(node)[usize::from(graph.op(node) == Op::Function)..];
                let is_data = graph.op(node) == Op::Param && graph.dtype(node).is_float();
                flows[node.index()] = is_data || !self.ends(node) && below.iter().any(|source| holds[source.index()]);
                holds[node.index()] = flows[node.index()] || is_tensor[node.index()];
            }
            self.outputs.iter().map(|output| flows[output.index()]).collect()
        });
        flowing.get(output).copied().unwrap_or_default()
    }

    /// Whether gradients of some output flow to the input of this slot.
    pub fn reaches(&self, slot: u32) -> bool {
        let reached = self.reached.get_or_init(|| {
            let flowing = self.flowing(&self.outputs, &FxHashMap::default());
            flowing.into_iter().filter_map(|node| self.slot(node)).collect()
        });
        reached.contains(&slot)
    }

    /// The slot of a Param.
    pub fn slot(&self, node: NodeId) -> Option<u32> {
        match self.graph.arg(node) {
            Arg::Param { slot, .. } => Some(*slot),
            _ => None,
        }
    }

    /// The nodes that gradients of `outputs` flow through, down to `known` ones.
    pub fn flowing(&self, outputs: &[NodeId], known: &FxHashMap<NodeId, NodeId>) -> FxHashSet<NodeId> {
        let stop = |node| known.contains_key(&node) || self.ends(node);
        self.graph.reachable_until(outputs, stop).into_iter().collect()
    }

    /// Whether no gradient goes on to the sources of a node.
    pub fn ends(&self, node: NodeId) -> bool {
        ends_gradients(self.graph.op(node), self.graph.dtype(node))
    }
}

/// Whether no gradient goes on to the sources of a node. A kernel without a gradient does not count, so that a gradient
/// is refused whether its result was read or not.
pub(crate) fn ends_gradients(op: Op, dtype: DType) -> bool {
    op == Op::Detach || dtype.is_int() || dtype == DType::Bool
}
