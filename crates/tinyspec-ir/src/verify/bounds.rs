//! Bounds checks of accesses: by min_max, or else by searching for an iteration in which an access with an open gate is
//! out of bounds. Small iteration spaces are searched exhaustively; for large ones, the ends of the loops and a sample
//! are tried, so nothing valid is refused.

use super::access::open_ranges;
use super::arithmetic::{Arithmetic, Dice};
use super::conditions::Conditions;
use super::refuse;
use crate::{Builder, Graph, Interval, NodeId, Op, Result};
use smallvec::SmallVec;

/// The number of iterations to try.
const TRIALS: u64 = 1024;

/// Checks the loops and accesses of a kernel whose nodes are `live`.
///
/// # Errors
/// Names a loop with a negative trip count, or an access and an index that is out of bounds.
pub(super) fn bounds(stage: &str, graph: &Graph, root: NodeId, live: &[NodeId]) -> Result<()> {
    let mut known = None;
    for &node in live {
        if let (Op::Range, Some(trips @ ..0)) =
            (graph.op(node), graph.sources(node).first().and_then(|&bound| graph.as_int(bound)))
        {
            return refuse(stage, graph, node, format!("a loop of {trips} iterations"));
        }
        if matches!(graph.op(node), Op::Load | Op::Store | Op::AtomicAdd)
            && let Some(places) = places(graph, graph.source(node, 0))
            && !places.iter().all(|place| place.is_inside(graph))
        {
            let (open, conditions) =
                known.get_or_insert_with(|| (open_ranges(graph, root), Conditions::new(graph, root)));
            let around = open.get(&node).map(Vec::as_slice).unwrap_or_default();
            let gates = conditions.gates(graph, node);
            if let Some(why) = Search::new(graph, gates, &places, around).and_then(|mut search| search.run()) {
                return refuse(stage, graph, node, why);
            }
        }
    }
    Ok(())
}

/// An index, and the size of its axis.
struct BoundedIndex {
    index: NodeId,
    room: i64,
}

impl BoundedIndex {
    /// Whether every value of the index is in bounds.
    fn is_inside(&self, graph: &Graph) -> bool {
        matches!(graph.props(self.index).interval, Interval::Int(low, high) if low >= 0 && high < self.room as i128)
    }
}

/// The indices of a scalar or a run of a buffer.
fn places(graph: &Graph, address: NodeId) -> Option<SmallVec<[BoundedIndex; 1]>> {
    let sources = graph.sources(address);
    let sizes = |node: NodeId| graph.props(node).shape.iter().map(|dim| dim.as_const()).collect::<Option<Vec<i64>>>();
    let dims = sizes(*sources.first()?)?;
    let (indices, lengths): (&[NodeId], Vec<i64>) = match graph.op(address) {
        Op::Index => (&sources[1..], vec![1; dims.len()]),
        Op::Shrink if graph.op(sources[1]) == Op::Stack => (graph.sources(sources[1]), sizes(address)?),
        _ => return None,
    };
    let rooms = dims.iter().zip(lengths).map(|(&size, length)| size.saturating_sub(length).saturating_add(1));
    Some(indices.iter().zip(rooms).map(|(&index, room)| BoundedIndex { index, room }).collect())
}

/// The arithmetic of an access.
struct Search<'a> {
    arithmetic: Arithmetic<'a>,
    places: &'a [BoundedIndex],
    gates: SmallVec<[NodeId; 2]>,
}

impl<'a> Search<'a> {
    /// `None` if it cannot be evaluated.
    fn new(
        graph: &'a Graph,
        gates: SmallVec<[NodeId; 2]>,
        places: &'a [BoundedIndex],
        around: &[NodeId],
    ) -> Option<Search<'a>> {
        let roots = places.iter().map(|place| place.index).chain(gates.iter().copied()).chain(around.iter().copied());
        Some(Search { arithmetic: Arithmetic::new(graph, roots)?, places, gates })
    }

    /// An index at which the access is out of bounds, as text.
    fn run(&mut self) -> Option<String> {
        let counts: SmallVec<[u64; 8]> = self.arithmetic.counters.iter().map(|counter| counter.count).collect();
        let all = counts.iter().try_fold(1u64, |all, &count| all.checked_mul(count));
        let all = all.filter(|&all| all <= TRIALS);
        let mut dice = Dice::new();
        for trial in 0..all.unwrap_or(TRIALS) {
            let mut rest = trial;
            for (counter, &count) in counts.iter().enumerate() {
                let choice = match all {
                    Some(_) => {
                        let choice = rest % count.max(1);
                        rest /= count.max(1);
                        choice
                    }
                    None => dice.choose(count),
                };
                self.arithmetic.set(counter, choice);
            }
            if let Some(index) = self.leaves()? {
                return Some(format!("leaves its buffer at index {index}"));
            }
        }
        None
    }

    /// The index that is out of bounds in this iteration, if there is one; the outer `None` if the arithmetic has no
    /// value.
    fn leaves(&mut self) -> Option<Option<i128>> {
        let happens = self.arithmetic.run()?;
        if !happens || self.gates.iter().any(|&gate| self.arithmetic.value(gate) == Some(0)) {
            return Some(None);
        }
        let mut indices = self.places.iter().map(|place| (self.arithmetic.value(place.index), place.room));
        let outside = indices.find(|&(at, room)| at.is_some_and(|at| at < 0 || at >= room as i128));
        Some(outside.and_then(|(at, _)| at))
    }
}
