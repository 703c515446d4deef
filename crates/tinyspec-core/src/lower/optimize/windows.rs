//! Reduces whose conditions choose few of their terms.
//!
//! * `one_hot`: an equation leaves one trip of a Range, `Σr [r = e] · x(r)` is `[0 <= e < n] · x(e)`: a gather is a read.
//! * `counted`: terms that do not depend on a Range count as often as its conditions hold (`counted.rs`).
//! * `prefix`: a window that ends (or begins) at a Range of the output, in whatever way it is written, becomes
//!   `Σr [r < i + c] · x(r)` (or `[r > i + c]`), where x does not depend on i. Select carries such a sum from trip to trip.
//! * `strided`: a congruence leaves every n-th trip (`congruences.rs`).
//! * `narrowed`: a window that is as long everywhere takes as many trips (`bands.rs`).
//!
//! All only reorder a Reduce, or leave out terms that add nothing.

use super::bands::narrowed;
use super::congruences::strided;
use super::counted::counted;
use crate::lower::fold::{both, elementwise, truth};
use crate::lower::live::{self, Live};
use crate::lower::replace::replace;
use crate::lower::terms::{Terms, constraints, under};
use smallvec::SmallVec;
use tinyspec_ir::affine::{Affine, Constraint, Domain, Limit, less};
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{Arg, AxisType, Builder, DType, Graph, NodeId, Op, Result};

/// The kernel with all such Reduces in their simple form.
pub(crate) fn simplify(graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
    let mut sink = sink;
    // A Reduce may need another's result: after each change the kernel is looked at anew.
    let mut done: SmallVec<[NodeId; 8]> = SmallVec::new();
    loop {
        let order = graph.reachable(&[sink]);
        let is_open = |node: &&NodeId| graph.op(**node) == Op::Reduce && !done.contains(node);
        let Some(&node) = order.iter().find(is_open) else { return Ok(sink) };
        done.push(node);
        if !may_choose(graph, node) {
            continue;
        }
        let mut simple = one_hot(graph, node)?;
        if simple.is_none() {
            simple = counted(graph, node)?;
        }
        if simple.is_none() {
            simple = prefix(graph, &order, node)?;
        }
        let mut may_narrow = false;
        if simple.is_none() {
            simple = strided(graph, node)?;
            may_narrow = simple.is_some();
        }
        if simple.is_none() {
            simple = narrowed(graph, node)?;
        }
        if let Some(simple) = simple {
            let is_as_long = graph.sources(simple).len() == graph.sources(node).len();
            if graph.op(simple) == Op::Reduce && is_as_long && !may_narrow {
                done.push(simple);
            }
            let roots = substitute(graph, &[sink], &[(node, simple)].into_iter().collect())?;
            sink = roots[0];
        }
    }
}

/// Something about the terms is a choice.
fn may_choose(graph: &Graph, node: NodeId) -> bool {
    let mut value = graph.source(node, 0);
    while graph.op(value) == Op::Cast {
        value = graph.source(value, 0);
    }
    let is_gated = graph.op(value) == Op::Load && graph.sources(value).len() > 2;
    graph.sources(node).len() > 1 && (graph.op(value) == Op::Where || graph.dtype(value) == DType::Bool || is_gated)
}

fn terms(graph: &mut Graph, node: NodeId) -> Result<Option<(Op, Terms)>> {
    let Arg::Reduce { op, .. } = *graph.arg(node) else { return Ok(None) };
    let value = graph.source(node, 0);
    Ok(Some((op, Terms::of(graph, op, value)?)))
}

pub(super) fn depends(graph: &Graph, node: NodeId, range: NodeId) -> bool {
    graph.reachable(&[node]).contains(&range)
}

/// The one trip of a Range in which a sum is 0.
pub(super) struct Root {
    pub trip: Affine,
    /// The condition under which there is one.
    pub inside: Option<NodeId>,
}

impl Root {
    /// `None` where the sum does not say it.
    pub(super) fn of(graph: &mut Graph, sum: &Affine, range: NodeId) -> Result<Option<Root>> {
        let Some((factor, rest)) = sum.isolate(graph, range).filter(|part| part.0 != 0) else { return Ok(None) };
        let (mut trip, mut inside) = (rest.scale(-factor.signum()), None);
        if factor.abs() != 1 {
            let left = trip.remainder(graph, factor.abs())?.emit(graph)?;
            let (zero, truth) = (graph.index(0), truth(graph, true));
            let is_between = elementwise(graph, Op::CmpNe, &[left, zero], Arg::None)?;
            inside = Some(elementwise(graph, Op::Xor, &[is_between, truth], Arg::None)?);
            trip = trip.quotient(graph, factor.abs())?;
        }
        let trips = Affine::of(graph, graph.source(range, 0));
        let below = less(graph, &trip, &trips)?;
        let above = less(graph, &Affine::number(-1), &trip)?;
        for limit in [above, below] {
            if graph.as_int(limit) != Some(1) {
                inside = both(graph, inside, Some(limit))?;
            }
        }
        Ok(Some(Root { trip, inside }))
    }
}

fn one_hot(graph: &mut Graph, node: NodeId) -> Result<Option<NodeId>> {
    let Some((op, terms)) = terms(graph, node)? else { return Ok(None) };
    let ranges: SmallVec<[NodeId; 4]> = graph.sources(node)[1..].into();
    for &range in &ranges {
        let Some((position, Root { trip, inside })) = equation(graph, &terms, range)? else { continue };
        let value = terms.emit(graph, op, &[position])?;
        let Some(value) = replace(graph, &[value], range, &trip, inside)? else { continue };
        let value = under(graph, op, value[0], inside)?;
        return without(graph, node, range, value).map(Some);
    }
    Ok(None)
}

/// A Reduce of another value over all but one of its Ranges: the value itself, if that was the only one.
pub(super) fn without(graph: &mut Graph, node: NodeId, range: NodeId, value: NodeId) -> Result<NodeId> {
    let others = graph.sources(node)[1..].iter().copied().filter(|&other| other != range);
    let left: SmallVec<[NodeId; 4]> = std::iter::once(value).chain(others).collect();
    match left.as_slice() {
        [value] => Ok(*value),
        _ => graph.add(Op::Reduce, &left, graph.arg(node).clone()),
    }
}

/// The first condition that holds in one trip of a Range.
fn equation(graph: &mut Graph, terms: &Terms, range: NodeId) -> Result<Option<(usize, Root)>> {
    for (position, condition) in terms.conditions.iter().enumerate() {
        if let Some(Constraint::Zero(sum)) = &condition.constraint
            && let Some(root) = Root::of(graph, sum, range)?
        {
            return Ok(Some((position, root)));
        }
    }
    Ok(None)
}

/// Bounds of a Range: constant ones, and one that depends on a Range of the output.
struct Limits {
    low: i64,
    /// Inclusive.
    high: i64,
    /// `range >= form` (true) or `range <= form`.
    moving: (bool, Affine),
    /// Conditions that these limits say.
    said: SmallVec<[usize; 4]>,
}

impl Limits {
    /// A bound that does not depend on `output` remains a condition.
    fn of(graph: &Graph, terms: &Terms, range: NodeId, trips: i64, output: NodeId) -> Option<Limits> {
        let domain = Domain::of(graph, range, constraints(&terms.conditions));
        let (low, high) = domain.numbers(trips);
        let lows = domain.lows.iter().map(|(limit, position)| (true, limit, *position));
        let highs = domain.highs.iter().map(|(limit, position)| (false, limit, *position));
        let (mut said, mut moving) = (SmallVec::new(), None);
        for (is_low, limit, position) in lows.chain(highs) {
            let (least, most) = limit.bounds(graph);
            let is_implied = if is_low { most <= low.into() } else { least >= high.into() };
            let moves = || limit.terms().iter().any(|&(atom, _)| depends(graph, atom, output));
            if !is_implied && !moves() {
                continue;
            }
            said.push(position);
            if !is_implied && moving.replace((is_low, limit.clone())).is_some() {
                return None;
            }
        }
        (low <= high).then_some(Limits { low, high, moving: moving?, said })
    }
}

fn prefix(graph: &mut Graph, order: &[NodeId], node: NodeId) -> Result<Option<NodeId>> {
    let &[value, range] = graph.sources(node) else { return Ok(None) };
    let Some(bound) = live::bound(graph, range) else { return Ok(None) };
    let (trips, is_known) = (bound.bounds().1, bound.as_const().is_some());
    let Arg::Reduce { op, .. } = *graph.arg(node) else { return Ok(None) };
    let live = Live::new(graph, order)?;
    let outputs: SmallVec<[NodeId; 4]> = live
        .members(live.of(node))
        .filter(|&output| !matches!(graph.arg(output), Arg::Range { axis, .. } if axis.is_reduce()))
        .collect();
    for output in outputs {
        if let Some(found) = aligned(graph, value, (range, trips, is_known), output, op)?
            && let Some(reduce) = canonical(graph, node, &found, output)?
        {
            return Ok(Some(reduce));
        }
    }
    Ok(None)
}

/// A value under conditions whose terms are numbered by a Range of their own.
struct Aligned {
    value: NodeId,
    range: NodeId,
    /// The most that there are, where named dims decide.
    trips: i64,
    is_known: bool,
}

/// Numbers the terms so that only conditions depend on `output`: a value of `range ± output` alone is walked along that.
fn aligned(
    graph: &mut Graph,
    value: NodeId,
    (range, trips, is_known): (NodeId, i64, bool),
    output: NodeId,
    op: Op,
) -> Result<Option<Aligned>> {
    let terms = Terms::of(graph, op, value)?;
    if !depends(graph, terms.value, output) {
        return Ok(Some(Aligned { value, range, trips, is_known }));
    }
    if !is_known {
        return Ok(None);
    }
    let (Some(sign), Some(extent)) = (common_sign(graph, value, range, output), live::trips(graph, output)) else {
        return Ok(None);
    };
    // range = along + first - sign · output
    let first = if sign == 1 { 0 } else { 1 - extent };
    let (Some(all), fresh) = ((trips - 1).checked_add(extent), live::next_range_id(graph, graph.nodes())) else {
        return Ok(None);
    };
    let all_bound = graph.index(all);
    let along = graph.range(all_bound, fresh, AxisType::Reduce)?;
    let place = Affine::atom(along).offset(first).plus(&Affine::atom(output).scale(-sign));
    let Some(moved) = replace(graph, &[value], range, &place, None)? else { return Ok(None) };
    let above = less(graph, &Affine::number(-1), &place)?;
    let below = less(graph, &place, &Affine::number(trips))?;
    let inside = both(graph, Some(above), Some(below))?;
    let value = under(graph, op, moved[0], inside)?;
    Ok(Some(Aligned { value, range: along, trips: all, is_known }))
}

/// The sign of `output` beside `range`, if every use of the Range adds both with it, times a constant.
fn common_sign(graph: &Graph, value: NodeId, range: NodeId, output: NodeId) -> Option<i64> {
    let mut sign = None;
    let is_sum =
        |node: NodeId| graph.dtype(node) == DType::Index && matches!(graph.op(node), Op::Add | Op::Mul | Op::Range);
    for node in graph.reachable(&[value]) {
        if is_sum(node) {
            continue;
        }
        for &source in graph.sources(node).iter().filter(|&&source| is_sum(source)) {
            let sum = Affine::of(graph, source);
            let (a, b) = (sum.coefficient(range), sum.coefficient(output));
            let is_hidden = |&(atom, _): &(NodeId, i64)| {
                atom != range && atom != output && (depends(graph, atom, range) || depends(graph, atom, output))
            };
            if sum.terms().iter().any(is_hidden) {
                return None;
            }
            if a == 0 && b == 0 {
                continue;
            }
            let here = match (a == b, a == -b) {
                (true, _) => 1,
                (_, true) => -1,
                _ => return None,
            };
            if *sign.get_or_insert(here) != here {
                return None;
            }
        }
    }
    sign
}

/// The Reduce as `Σr [r < i + c] · x(r)` or `Σr [r > i + c] · x(r)`, if its terms are chosen so.
fn canonical(graph: &mut Graph, node: NodeId, found: &Aligned, output: NodeId) -> Result<Option<NodeId>> {
    let Arg::Reduce { op, .. } = *graph.arg(node) else { return Ok(None) };
    let terms = Terms::of(graph, op, found.value)?;
    let Some(limits) = Limits::of(graph, &terms, found.range, found.trips, output) else { return Ok(None) };
    let (is_low, limit) = limits.moving.clone();
    let factor = limit.coefficient(output);
    let rest = limit.filter(|atom| atom != output);
    // Counted from the other end where the limit falls as the output rises.
    let last = match found.is_known {
        true => Affine::number(limits.high),
        false => Affine::of(graph, graph.source(found.range, 0)).offset(-1),
    };
    let (start, step) = match factor {
        1 => (Affine::number(limits.low), 1),
        -1 => (last, -1),
        _ => return Ok(None),
    };
    let Some(offset) = rest.minus(&start).as_number() else { return Ok(None) };
    let value = terms.emit(graph, op, &limits.said)?;
    if depends(graph, value, output) {
        return Ok(None);
    }
    let is_canonical = graph.source(node, 1) == found.range
        && (limits.low, limits.high, factor) == (0, found.trips - 1, 1)
        && is_canonical(graph, graph.source(node, 0));
    if is_canonical {
        return Ok(None);
    }
    // A number of trips that is not known is not cut; the new Range counts from 0 in any case.
    if !found.is_known && (limits.low, limits.high) != (0, found.trips - 1) {
        return Ok(None);
    }
    let trips = match found.is_known {
        true => graph.index(limits.high - limits.low + 1),
        false => graph.source(found.range, 0),
    };
    let fresh = live::next_range_id(graph, graph.nodes());
    let range = graph.range(trips, fresh, AxisType::Reduce)?;
    let place = Affine::atom(range).scale(step).plus(&start);
    let Some(value) = replace(graph, &[value], found.range, &place, None)? else { return Ok(None) };
    // place >= limit, or place <= limit, solved for the new Range.
    let limit = Affine::atom(output).offset(step * offset);
    let gate = match is_low == (step == 1) {
        true => less(graph, &limit.offset(-1), &Affine::atom(range))?,
        false => less(graph, &Affine::atom(range), &limit.offset(1))?,
    };
    let value = under(graph, op, value[0], Some(gate))?;
    graph.add(Op::Reduce, &[value, range], graph.arg(node).clone()).map(Some)
}

/// The value is a choice by one comparison of indices.
fn is_canonical(graph: &Graph, value: NodeId) -> bool {
    let Some(&condition) = graph.sources(value).first().filter(|_| graph.op(value) == Op::Where) else { return false };
    graph.op(condition) == Op::CmpLt && graph.dtype(graph.source(condition, 0)) == DType::Index
}

/// How a Reduce in the simple form grows.
pub(crate) struct Carried {
    /// The Ranges of the output that it follows, as the sum that is its place.
    pub place: Affine,
    /// Its own Range.
    pub range: NodeId,
    /// It begins at its place, rather than end there.
    pub is_suffix: bool,
}

/// All running Reduces of a kernel can be carried by one loop: they follow the same Ranges in the same direction.
///
/// # Errors
/// When the kernel is not in range form.
pub(crate) fn agree(schedule: &Graph, kernel: NodeId) -> Result<bool> {
    let mut graph = Graph::new();
    let roots = graph.import(schedule, &[kernel], |_, _| Ok(None))?;
    let sink = simplify(&mut graph, roots[0])?;
    let mut first: Option<Affine> = None;
    for node in graph.reachable(&[sink]) {
        if graph.op(node) != Op::Reduce {
            continue;
        }
        if let Some(Carried { place, is_suffix, .. }) = carried(&mut graph, node)? {
            let onwards = if is_suffix { place.scale(-1) } else { place };
            if *first.get_or_insert_with(|| onwards.clone()) != onwards {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// How a Reduce in the simple form is carried from trip to trip, if it can be.
pub(crate) fn carried(graph: &mut Graph, node: NodeId) -> Result<Option<Carried>> {
    let &[value, range] = graph.sources(node) else { return Ok(None) };
    let Arg::Reduce { op, .. } = *graph.arg(node) else { return Ok(None) };
    if !is_canonical(graph, value) {
        return Ok(None);
    }
    let terms = Terms::of(graph, op, value)?;
    for (position, condition) in terms.conditions.iter().enumerate() {
        let (limit, is_suffix) = match condition.constraint.as_ref().and_then(|own| own.limit(graph, range)) {
            Some(Limit::Least(limit)) => (limit, true),
            Some(Limit::Greatest(limit)) => (limit, false),
            _ => continue,
        };
        let place = limit.without_constant();
        if !counts(graph, &place) {
            continue;
        }
        let rest = terms.emit(graph, op, &[position])?;
        let is_free = place.atoms().all(|output| !depends(graph, rest, output));
        return Ok(is_free.then_some(Carried { place, range, is_suffix }));
    }
    Ok(None)
}

/// The sum walks along whole numbers: a Range, or one over blocks and one within them.
fn counts(graph: &Graph, place: &Affine) -> bool {
    let mut terms = place.terms().to_vec();
    terms.sort_by_key(|&(_, factor)| factor.unsigned_abs());
    let mut next = Some(1);
    !terms.is_empty()
        && terms.iter().all(|&(range, factor)| {
            let follows = graph.op(range) == Op::Range && next == Some(factor.unsigned_abs());
            next = live::trips(graph, range).map(|trips| factor.unsigned_abs().saturating_mul(trips.unsigned_abs()));
            follows && (factor > 0) == (terms[0].1 > 0)
        })
}
