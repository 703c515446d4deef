//! Accesses inside of their buffers: by min_max, else by looking for an iteration in which one leaves its buffer though its
//! gate is true. Few iterations are all tried; of many the ends of the loops and a sample, so nothing sound is refused.

use super::access::open_ranges;
use super::refuse;
use crate::eval::eval_op;
use crate::{Builder, Const, Graph, Interval, NodeId, Op, Result};
use smallvec::SmallVec;

/// So many iterations are tried.
const TRIALS: u64 = 1024;

/// Checks the accesses of a kernel whose nodes are `live`.
///
/// # Errors
/// Names an access and the index at which it leaves its buffer.
pub(super) fn bounds(stage: &str, graph: &Graph, root: NodeId, live: &[NodeId]) -> Result<()> {
    let mut open = None;
    for &node in live {
        if matches!(graph.op(node), Op::Load | Op::Store | Op::AtomicAdd)
            && let Some(places) = places(graph, graph.source(node, 0))
            && !places.iter().all(|place| place.is_inside(graph))
        {
            let open = open.get_or_insert_with(|| open_ranges(graph, root));
            let around = open.get(&node).map(Vec::as_slice).unwrap_or_default();
            if let Some(why) = Search::new(graph, node, &places, around).and_then(|mut search| search.run()) {
                return refuse(stage, graph, node, why);
            }
        }
    }
    Ok(())
}

/// An index, and how many of its values an axis has room for.
struct Place {
    index: NodeId,
    room: i64,
}

impl Place {
    /// For every value of the index.
    fn is_inside(&self, graph: &Graph) -> bool {
        matches!(graph.props(self.index).interval, Interval::Int(low, high) if low >= 0 && high < self.room as i128)
    }
}

/// The indices of a scalar or a run of a buffer.
fn places(graph: &Graph, address: NodeId) -> Option<SmallVec<[Place; 1]>> {
    let sources = graph.sources(address);
    let sizes = |node: NodeId| graph.props(node).shape.iter().map(|dim| dim.as_const()).collect::<Option<Vec<i64>>>();
    let dims = sizes(*sources.first()?)?;
    let (indices, lengths): (&[NodeId], Vec<i64>) = match graph.op(address) {
        Op::Index => (&sources[1..], vec![1; dims.len()]),
        Op::Shrink if graph.op(sources[1]) == Op::Stack => (graph.sources(sources[1]), sizes(address)?),
        _ => return None,
    };
    let rooms = dims.iter().zip(lengths).map(|(&size, length)| size.saturating_sub(length).saturating_add(1));
    Some(indices.iter().zip(rooms).map(|(&index, room)| Place { index, room }).collect())
}

/// A loop's counter: positions of it and of its bound among the nodes, and how many values it may take.
struct Counter {
    position: usize,
    bound: usize,
    count: u64,
}

/// The arithmetic of an access, and its values in one iteration.
struct Search<'a> {
    graph: &'a Graph,
    nodes: Vec<NodeId>,
    values: Vec<Const>,
    counters: Vec<Counter>,
    places: Vec<(usize, i64)>,
    gate: Option<usize>,
}

impl<'a> Search<'a> {
    /// Nothing for accesses that never happen, for those of vectors, and where data decides: what is in memory may have
    /// bounds that a kernel by itself does not know.
    fn new(graph: &'a Graph, access: NodeId, places: &[Place], around: &[NodeId]) -> Option<Search<'a>> {
        let gate = graph.sources(access).get(2).copied();
        let mut seen = rustc_hash::FxHashSet::default();
        let mut pending: Vec<NodeId> =
            places.iter().map(|place| place.index).chain(gate).chain(around.iter().copied()).collect();
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
        let position = |node: NodeId| nodes.binary_search(&node).unwrap_or(0);
        let mut counters = Vec::new();
        for (at, &node) in nodes.iter().enumerate() {
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
                    counters.push(Counter { position: at, bound: position(bound), count });
                }
                _ => return None,
            }
        }
        let value = |&node: &NodeId| graph.as_const(node).unwrap_or(Const::int(graph.dtype(node), 0));
        let values = nodes.iter().map(value).collect();
        let places = places.iter().map(|place| (position(place.index), place.room)).collect();
        let gate = gate.map(position);
        Some(Search { graph, nodes, values, counters, places, gate })
    }

    /// The index at which the access leaves its buffer, in words.
    fn run(&mut self) -> Option<String> {
        let all = self.counters.iter().try_fold(1u64, |all, counter| all.checked_mul(counter.count));
        let all = all.filter(|&all| all <= TRIALS);
        let mut state = 1u64;
        for trial in 0..all.unwrap_or(TRIALS) {
            let mut rest = trial;
            for counter in &self.counters {
                let count = counter.count.max(1);
                let choice = match all {
                    Some(_) => {
                        let choice = rest % count;
                        rest /= count;
                        choice
                    }
                    // The first and the last value as often as all others.
                    None => {
                        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        match state >> 62 {
                            0 => 0,
                            1 => count - 1,
                            _ => (state >> 30) % count,
                        }
                    }
                };
                let dtype = self.graph.dtype(self.nodes[counter.position]);
                self.values[counter.position] = Const::int(dtype, choice as i128);
            }
            if let Some(index) = self.leaves()? {
                return Some(format!("leaves its buffer at index {index}"));
            }
        }
        None
    }

    /// The index outside in this iteration, if there is one; nothing where the arithmetic has no value.
    fn leaves(&mut self) -> Option<Option<i128>> {
        for (at, &node) in self.nodes.iter().enumerate() {
            if self.graph.op(node).is_elementwise() {
                let operand = |source: &NodeId| self.nodes.binary_search(source).ok().map(|at| self.values[at]);
                let operands: SmallVec<[Const; 3]> =
                    self.graph.sources(node).iter().map(operand).collect::<Option<_>>()?;
                self.values[at] = eval_op(self.graph.op(node), self.graph.dtype(node), &operands).ok()?;
            }
        }
        let value = |at: usize| self.values[at].as_int();
        let happens = self.counters.iter().all(|counter| value(counter.position) < value(counter.bound));
        if !happens || self.gate.is_some_and(|gate| self.values[gate].bits == 0) {
            return Some(None);
        }
        let index = |&(place, _): &(usize, i64)| value(place);
        let outside = self.places.iter().find(|place| index(place).is_some_and(|at| at < 0 || at >= place.1 as i128));
        Some(outside.and_then(index))
    }
}
