//! Evaluates index arithmetic in sample iterations of the loops, on one thread.

use crate::eval::eval_op;
use crate::{Builder, Const, Graph, Interval, NodeId, Op};
use smallvec::SmallVec;

/// A loop variable, or an index of the launch.
pub(super) struct Counter {
    /// The Range or Special.
    pub node: NodeId,
    /// The number of its values.
    pub count: u64,
    /// Its position among the nodes, and that of its bound.
    position: usize,
    bound: usize,
}

/// Nodes that depend on counters alone.
pub(super) struct Arithmetic<'a> {
    graph: &'a Graph,
    nodes: Vec<NodeId>,
    values: Vec<Const>,
    pub counters: Vec<Counter>,
}

impl<'a> Arithmetic<'a> {
    /// `None` for what never happens, for vectors, and if data are involved: values in memory may have bounds that the
    /// kernel does not state.
    pub fn new(graph: &'a Graph, roots: impl Iterator<Item = NodeId>) -> Option<Arithmetic<'a>> {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut pending: Vec<NodeId> = roots.collect();
        while let Some(node) = pending.pop() {
            if !graph.props(node).shape.is_empty() {
                return None;
            }
            if seen.insert(node)
                && (graph.op(node).is_elementwise() || matches!(graph.op(node), Op::Range | Op::Special))
            {
                pending.extend(graph.sources(node));
            }
        }
        let mut nodes: Vec<NodeId> = seen.into_iter().collect();
        nodes.sort_unstable();
        let place = |node: NodeId| nodes.binary_search(&node).unwrap_or(0);
        let mut counters = Vec::new();
        for (position, &node) in nodes.iter().enumerate() {
            match graph.op(node) {
                Op::Const => {}
                op if op.is_elementwise() => {}
                Op::Range | Op::Special => {
                    let Interval::Int(_, last) = graph.props(node).interval else { return None };
                    let bound = graph.source(node, 0);
                    if graph.as_int(bound) == Some(0) {
                        return None;
                    }
                    let count = u64::try_from(last.saturating_add(1)).ok()?;
                    counters.push(Counter { node, count, position, bound: place(bound) });
                }
                _ => return None,
            }
        }
        let value = |&node: &NodeId| graph.as_const(node).unwrap_or(Const::int(graph.dtype(node), 0));
        let values = nodes.iter().map(value).collect();
        Some(Arithmetic { graph, nodes, values, counters })
    }

    /// Sets a counter.
    pub fn set(&mut self, counter: usize, value: u64) {
        let node = self.counters[counter].node;
        self.values[self.counters[counter].position] = Const::int(self.graph.dtype(node), value as i128);
    }

    /// Computes all nodes; false if there is no such iteration, `None` if the arithmetic has no value.
    pub fn run(&mut self) -> Option<bool> {
        for (at, &node) in self.nodes.iter().enumerate() {
            if self.graph.op(node).is_elementwise() {
                let operand = |source: &NodeId| self.nodes.binary_search(source).ok().map(|at| self.values[at]);
                let operands: SmallVec<[Const; 3]> =
                    self.graph.sources(node).iter().map(operand).collect::<Option<_>>()?;
                self.values[at] = eval_op(self.graph.op(node), self.graph.dtype(node), &operands).ok()?;
            }
        }
        let value = |at: usize| self.values[at].as_int();
        Some(self.counters.iter().all(|counter| value(counter.position) < value(counter.bound)))
    }

    /// The value of one of the nodes, once computed.
    pub fn value(&self, node: NodeId) -> Option<i128> {
        self.nodes.binary_search(&node).ok().and_then(|at| self.values[at].as_int())
    }
}

/// Random values of counters, in which the first and the last one are as frequent as all others together.
pub(super) struct Dice(u64);

impl Dice {
    pub fn new() -> Dice {
        Dice(1)
    }

    /// A number below `count`.
    pub fn choose(&mut self, count: u64) -> u64 {
        let count = count.max(1);
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        match self.0 >> 62 {
            0 => 0,
            1 => count - 1,
            _ => (self.0 >> 30) % count,
        }
    }
}

/// The elements of an access: the first one, and their number.
pub(super) fn run(graph: &Graph, access: NodeId) -> Option<(NodeId, i128)> {
    let address = graph.source(access, 0);
    match (graph.op(address), graph.sources(address)) {
        (Op::Index, &[_, index]) => Some((index, 1)),
        (Op::Shrink, &[_, offset, _]) if graph.op(offset) == Op::Stack => {
            Some((*graph.sources(offset).first()?, graph.props(address).shape.first()?.as_const()?.into()))
        }
        _ => None,
    }
}
