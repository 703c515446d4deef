//! Builds the new instruction sequence of a pass from the old one.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tinyspec_ir::{Arg, Builder, DType, Graph, NodeId, Op, Result, instructions};

/// An instruction sequence that is appended to.
#[derive(Default)]
pub(in super::super) struct Instructions {
    list: Vec<NodeId>,
    listed: FxHashSet<NodeId>,
    /// The replacements of old nodes.
    new: FxHashMap<NodeId, NodeId>,
    /// Old effects that were left out.
    dropped: FxHashSet<NodeId>,
    /// Positions at which the open loops and blocks begin.
    open: Vec<usize>,
    /// Nodes of closed loops and blocks: their values are out of scope.
    closed: FxHashSet<NodeId>,
    /// The last End or Endif.
    end: Option<NodeId>,
}

/// A snapshot of the replacements.
#[derive(Clone)]
pub(in super::super) struct Replacements(FxHashMap<NodeId, NodeId>, FxHashSet<NodeId>);

impl Instructions {
    /// The replacement of an old node, or the node itself.
    pub fn now(&self, node: NodeId) -> NodeId {
        self.new.get(&node).copied().unwrap_or(node)
    }

    /// Whether the sequence contains a node.
    pub fn contains(&self, node: NodeId) -> bool {
        self.listed.contains(&node)
    }

    /// The value of a condition inside the open blocks, if one of them tests it or its negation.
    pub fn outcome(&self, graph: &Graph, condition: NodeId) -> Option<bool> {
        let blocks = self.open.iter().map(|&start| self.list[start]).filter(|&node| graph.op(node) == Op::If);
        let mut tested = blocks.map(|block| instructions::condition(graph, block));
        tested.find_map(|tested| match tested == condition {
            true => Some(true),
            false => (instructions::negated(graph, tested) == Some(condition)).then_some(false),
        })
    }

    /// Replaces an old node in the instructions that follow.
    pub fn replace(&mut self, node: NodeId, new: NodeId) {
        self.new.insert(node, new);
        self.dropped.remove(&node);
    }

    /// Leaves out an old effect, and the dependences on it.
    pub fn drop(&mut self, node: NodeId) {
        self.dropped.insert(node);
    }

    /// Whether an old effect was left out.
    pub fn is_dropped(&self, node: NodeId) -> bool {
        self.dropped.contains(&node)
    }

    /// A snapshot for [`Instructions::restore`].
    pub fn replacements(&self) -> Replacements {
        Replacements(self.new.clone(), self.dropped.clone())
    }

    /// Forgets the replacements made since the snapshot.
    pub fn restore(&mut self, Replacements(new, dropped): Replacements) {
        (self.new, self.dropped) = (new, dropped);
    }

    /// Appends an instruction unless its value is in scope already.
    pub fn push(&mut self, graph: &mut Graph, op: Op, sources: &[NodeId], arg: Arg) -> Result<NodeId> {
        let mut node = graph.add(op, sources, arg)?;
        // If its value is out of scope, the instruction is emitted again, as another node that depends on the end of
        // that scope.
        if let (true, Some(end), [first, rest @ ..]) = (self.closed.contains(&node), self.end, sources) {
            let (first, arg) = (self.push(graph, Op::After, &[*first, end], Arg::None)?, graph.arg(node).clone());
            node = graph.add(op, &[&[first], rest].concat(), arg)?;
        }
        self.append(op, node);
        Ok(node)
    }

    /// Appends a node unless its value is in scope already.
    fn append(&mut self, op: Op, node: NodeId) {
        if !self.listed.insert(node) {
            return;
        }
        if matches!(op, Op::End | Op::Endif) {
            let start = self.open.pop().unwrap_or(self.list.len());
            self.closed.extend(&self.list[start..]);
            self.end = Some(node);
        }
        if matches!(op, Op::Range | Op::If) {
            self.open.push(self.list.len());
        }
        self.list.push(node);
    }

    /// Appends an old instruction over the replacements of its sources.
    pub fn copy(&mut self, graph: &mut Graph, node: NodeId) -> Result<NodeId> {
        let op = graph.op(node);
        // Most instructions do not change.
        let is_same = |source: &NodeId| self.now(*source) == *source && !self.dropped.contains(source);
        if graph.sources(node).iter().all(is_same) && !self.closed.contains(&node) {
            self.append(op, node);
            return Ok(node);
        }
        let arg = graph.arg(node).clone();
        let waits = matches!(op, Op::After | Op::Group | Op::End | Op::Sink) && !self.dropped.is_empty();
        let old = graph.sources(node).iter();
        let kept = old.filter(|source| !waits || !self.dropped.contains(source));
        let sources: SmallVec<[NodeId; 4]> = kept.map(|&source| self.now(source)).collect();
        let is_whole = sources.len() == graph.sources(node).len();
        match (op, &sources[..]) {
            _ if is_whole => self.copy_as(graph, node, op, &sources, arg),
            (Op::After, &[value]) => {
                self.new.insert(node, value);
                Ok(value)
            }
            (Op::Group, []) => {
                self.dropped.insert(node);
                Ok(node)
            }
            _ => self.copy_as(graph, node, op, &sources, arg),
        }
    }

    /// Appends old instructions over the replacements of their sources.
    pub fn copy_all(&mut self, graph: &mut Graph, nodes: &[NodeId]) -> Result<()> {
        nodes.iter().try_for_each(|&node| self.copy(graph, node).map(drop))
    }

    /// Replaces all effects among old nodes by one.
    pub fn replace_effects(&mut self, graph: &Graph, nodes: &[NodeId], by: NodeId) {
        for &node in nodes.iter().filter(|&&node| graph.dtype(node) == DType::Void) {
            self.replace(node, by);
        }
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
