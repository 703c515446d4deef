//! Windows of constant length: `Σr [a <= r <= a + c] · x(r)`, such as a sum over neighbours, takes `c + 1` trips from a on,
//! not all trips of r.

use crate::lower::fold::both;
use crate::lower::live;
use crate::lower::replace::replace;
use crate::lower::terms::{Terms, constraints, under};
use smallvec::SmallVec;
use tinyspec_ir::affine::{Affine, Domain, less};
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// The Reduce with one of its Ranges narrowed to the trips that the conditions leave.
///
/// # Errors
/// When the kernel is not in range form.
pub(super) fn narrowed(graph: &mut Graph, node: NodeId) -> Result<Option<NodeId>> {
    let Arg::Reduce { op, .. } = *graph.arg(node) else { return Ok(None) };
    let terms = Terms::of(graph, op, graph.source(node, 0))?;
    let ranges: SmallVec<[NodeId; 4]> = graph.sources(node)[1..].into();
    for range in ranges {
        let (Some(trips), &Arg::Range { axis, .. }) = (live::trips(graph, range), graph.arg(range)) else { continue };
        let domain = Domain::of(graph, range, constraints(&terms.conditions));
        // A window of more than half of the trips is not worth the gate.
        let windows = domain.windows().filter(|window| (1..=trips / 2).contains(&window.count));
        let Some(window) = windows.min_by_key(|window| window.count) else { continue };
        let (count, fresh) = (graph.index(window.count), live::next_range_id(graph, graph.nodes()));
        let step = graph.range(count, fresh, axis)?;
        let place = window.first.plus(&Affine::atom(step));
        let (above, below) = (less(graph, &Affine::number(-1), &place)?, less(graph, &place, &Affine::number(trips))?);
        let inside = both(graph, Some(above), Some(below))?;
        if let Some(reduce) = over(graph, node, &terms, &window.said, range, (step, &place, inside))? {
            return Ok(Some(reduce));
        }
    }
    Ok(None)
}

/// Rebuilds the Reduce `node` with `range` replaced by `place`, an expression in the new Range `fresh`. Terms count only where `inside`
/// holds, and the conditions numbered `said`, which then hold by construction, are dropped. `None` if anything but values depends on the
/// Range.
pub(super) fn over(
    graph: &mut Graph,
    node: NodeId,
    terms: &Terms,
    said: &[usize],
    range: NodeId,
    (fresh, place, inside): (NodeId, &Affine, Option<NodeId>),
) -> Result<Option<NodeId>> {
    let Arg::Reduce { op, .. } = *graph.arg(node) else { return Ok(None) };
    let value = terms.emit(graph, op, said)?;
    let Some(value) = replace(graph, &[value], range, place, inside)? else { return Ok(None) };
    let value = under(graph, op, value[0], inside)?;
    let rest = graph.sources(node)[1..].iter().copied().filter(|&other| other != range);
    let sources: SmallVec<[NodeId; 4]> = [value, fresh].into_iter().chain(rest).collect();
    graph.add(Op::Reduce, &sources, graph.arg(node).clone()).map(Some)
}
