//! Congruences: `Σr [r ≡ e (mod n)] · x(r)` becomes a loop with step n. Gradients of windows with stride n are such sums.

use super::bands::over;
use crate::lower::live;
use crate::lower::terms::{Terms, constraints};
use smallvec::SmallVec;
use tinyspec_ir::affine::{Affine, less};
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Result};

/// The least factor by which the trip count must shrink to pay for a quotient and a gate.
const LEAST_GAIN: i64 = 3;

/// The Reduce over the trips that a congruence leaves of one of its Ranges.
///
/// # Errors
/// When the kernel is not in range form.
pub(super) fn strided(graph: &mut Graph, node: NodeId) -> Result<Option<NodeId>> {
    let Arg::Reduce { op, .. } = *graph.arg(node) else { return Ok(None) };
    let terms = Terms::of(graph, op, graph.source(node, 0))?;
    let ranges: SmallVec<[NodeId; 4]> = graph.sources(node)[1..].into();
    for range in ranges {
        let (Some(trips), &Arg::Range { axis, .. }) = (live::trips(graph, range), graph.arg(range)) else { continue };
        let found = constraints(&terms.conditions)
            .find_map(|(number, constraint)| Some((number, constraint.congruence(graph, range)?)));
        let Some((number, congruence)) = found else { continue };
        let step = congruence.step;
        let count = (trips + step - 1) / step;
        if count * LEAST_GAIN > trips {
            continue;
        }
        let (count, fresh) = (graph.index(count), live::next_range_id(graph, graph.nodes()));
        let trip = graph.range(count, fresh, axis)?;
        // `start mod step`, written as a difference so that multiples of the step cancel.
        let whole = congruence.start.quotient(graph, step)?;
        let place = congruence.start.minus(&whole.scale(step)).plus(&Affine::atom(trip).scale(step));
        let below = less(graph, &place, &Affine::number(trips))?;
        let inside = (graph.as_int(below) != Some(1)).then_some(below);
        if let Some(reduce) = over(graph, node, &terms, &[number], range, (trip, &place, inside))? {
            return Ok(Some(reduce));
        }
    }
    Ok(None)
}
