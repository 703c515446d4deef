//! Accesses inside of their buffers: by min_max, else by looking for an iteration in which one leaves its buffer though its
//! gate is true. Few iterations are all tried; of many the ends of the loops and a sample, so nothing sound is refused.

use super::access::open_ranges;
use super::arithmetic::{Arithmetic, Dice};
use super::conditions::Conditions;
use super::refuse;
use crate::{Builder, Graph, Interval, NodeId, Op, Result};
use smallvec::SmallVec;

/// So many iterations are tried.
const TRIALS: u64 = 1024;

/// Checks the loops and accesses of a kernel whose nodes are `live`.
///
/// # Errors
/// Names a loop of less than no iterations, or an access and the index at which it leaves its buffer.
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

/// The arithmetic of an access.
struct Search<'a> {
    arithmetic: Arithmetic<'a>,
    places: &'a [Place],
    gates: SmallVec<[NodeId; 2]>,
}

impl<'a> Search<'a> {
    /// Nothing where it cannot be tried.
    fn new(
        graph: &'a Graph,
        gates: SmallVec<[NodeId; 2]>,
        places: &'a [Place],
        around: &[NodeId],
    ) -> Option<Search<'a>> {
        let roots = places.iter().map(|place| place.index).chain(gates.iter().copied()).chain(around.iter().copied());
        Some(Search { arithmetic: Arithmetic::new(graph, roots)?, places, gates })
    }

    /// The index at which the access leaves its buffer, in words.
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

    /// The index outside in this iteration, if there is one; nothing where the arithmetic has no value.
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
