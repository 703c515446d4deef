//! Congruences: `Σr [r = e mod n] · x(r)`, such as one over the windows that an element is in where windows are n elements apart,
//! takes every n-th trip.

use crate::lower::live;
use crate::lower::replace::replace;
use crate::lower::terms::{Terms, constraints, under};
use smallvec::SmallVec;
use tinyspec_ir::affine::{Affine, less};
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// Trips for one that is left: fewer are not worth a quotient and a gate.
const LEAST_GAIN: i64 = 3;

/// The Reduce over the trips that a congruence leaves of one of its Ranges.
///
/// # Errors
/// When the kernel is not in range form.
pub(super) fn strided(graph: &mut Graph, node: NodeId) -> Result<Option<NodeId>> {
    let Arg::Reduce { op, .. } = *graph.arg(node) else { return Ok(None) };
    let terms = Terms::of(graph, op, graph.source(node, 0))?;
    let ranges: SmallVec<[NodeId; 4]> = graph.sources(node)[1..].into();
    for &range in &ranges {
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
        // The first one is the remainder of the start; as a difference, multiples of the step are seen in it.
        let whole = congruence.start.quotient(graph, step)?;
        let place = congruence.start.minus(&whole.scale(step)).plus(&Affine::atom(trip).scale(step));
        let below = less(graph, &place, &Affine::number(trips))?;
        let inside = (graph.as_int(below) != Some(1)).then_some(below);
        let value = terms.emit(graph, op, &[number])?;
        let Some(value) = replace(graph, &[value], range, &place, inside)? else { continue };
        let value = under(graph, op, value[0], inside)?;
        let rest = ranges.iter().copied().filter(|&other| other != range);
        let sources: SmallVec<[NodeId; 4]> = [value, trip].into_iter().chain(rest).collect();
        return graph.add(Op::Reduce, &sources, graph.arg(node).clone()).map(Some);
    }
    Ok(None)
}
