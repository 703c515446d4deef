//! Windows that are as long everywhere: `Σr [a <= r <= a + c] · x(r)`, such as one over neighbours, takes `c + 1` trips from a
//! on, not all that r has.

use super::windows::solved;
use crate::lower::fold::{both, less};
use crate::lower::live;
use crate::lower::replace::replace;
use crate::lower::sum::Sum;
use crate::lower::terms::{Relation, Sums, Terms, under};
use smallvec::SmallVec;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// The trips of a Range that conditions leave.
struct Band {
    first: Sum,
    trips: i64,
    /// The positions of the two conditions.
    said: [usize; 2],
}

impl Band {
    /// The narrowest; none that leaves more than half of the trips.
    fn of(graph: &Graph, terms: &Terms, range: NodeId, trips: i64) -> Option<Band> {
        let (mut lows, mut highs): (SmallVec<[_; 2]>, SmallVec<[_; 2]>) = (SmallVec::new(), SmallVec::new());
        for (position, condition) in terms.conditions.iter().enumerate() {
            let Relation::NotNegative(sum) = &condition.relation else { continue };
            let Some((factor, rest)) = solved(graph, sum, range) else { continue };
            let limits = if factor == 1 { &mut lows } else { &mut highs };
            limits.push((rest.scale(-factor), position));
        }
        let mut found: Option<Band> = None;
        for (low, below) in &lows {
            for (high, above) in &highs {
                let Some(last) = high.plus(&low.scale(-1)).as_constant() else { continue };
                let trips_before = found.as_ref().map_or(trips / 2, |band| band.trips - 1);
                if low.as_constant().is_none() && (0..trips_before).contains(&last) {
                    found = Some(Band { first: low.clone(), trips: last + 1, said: [*below, *above] });
                }
            }
        }
        found
    }
}

/// The Reduce over as many trips as the conditions leave of one of its Ranges.
///
/// # Errors
/// When the kernel is not in range form.
pub(super) fn narrowed(graph: &mut Graph, node: NodeId) -> Result<Option<NodeId>> {
    let Arg::Reduce { op, .. } = *graph.arg(node) else { return Ok(None) };
    let mut sums = Sums::default();
    let terms = Terms::of(graph, &mut sums, op, graph.source(node, 0))?;
    let ranges: SmallVec<[NodeId; 4]> = graph.sources(node)[1..].into();
    for &range in &ranges {
        let (Some(trips), &Arg::Range { axis, .. }) = (live::trips(graph, range), graph.arg(range)) else { continue };
        let Some(band) = Band::of(graph, &terms, range, trips) else { continue };
        let (count, fresh) = (graph.index(band.trips), live::next_range_id(graph, graph.nodes()));
        let step = graph.range(count, fresh, axis)?;
        let place = band.first.plus(&Sum::atom(step));
        let (above, below) = (less(graph, &Sum::constant(-1), &place)?, less(graph, &place, &Sum::constant(trips))?);
        let inside = both(graph, Some(above), Some(below))?;
        let value = terms.emit(graph, op, &band.said)?;
        let Some(value) = replace(graph, &[value], range, &place, inside)? else { continue };
        let value = under(graph, op, value[0], inside)?;
        let rest = ranges.iter().copied().filter(|&other| other != range);
        let sources: SmallVec<[NodeId; 4]> = [value, step].into_iter().chain(rest).collect();
        return graph.add(Op::Reduce, &sources, graph.arg(node).clone()).map(Some);
    }
    Ok(None)
}
