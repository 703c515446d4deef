//! Loop partitioning (index-set splitting; Griebl, Feautrier, Lengauer 2000): where a condition on indices fails in all trips of a
//! loop beyond some bound, those trips become a loop of their own, whose terms are simpler, or nothing.
//!
//! `Σj [j <= i] · a(i, j) · x(j)` reads no `a` beyond i. There its terms are `0 · x(j)`: a nan where x is not finite, else nothing.
//! They do not depend on i, so a register tile over several i adds them once. Where the terms become the identity of the Reduce, they
//! are left out. A triangular product thus costs little more than half of a dense one, and a band its width. Trips in which the
//! condition holds for the whole tile do not test it.

use super::kernel::Bounded;
use crate::lower::fold::{elementwise, truth};
use crate::lower::live::{self, Live, RangeSet};
use crate::lower::replace::Replacement;
use crate::lower::terms::{self, vanishes};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::affine::{Affine, Constraint};
use tinyspec_ir::eval::eval_op;
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{Arg, AxisType, Builder, Const, Graph, NodeId, Op, Result};

/// The least share of trips that conditions must mask off, on average over the enclosing loops.
const LEAST_SHARE: f64 = 0.25;

/// Loads from packed copies, each with the gate of the packed Load and the value that the copy holds where the gate is closed.
pub(super) type Copied = FxHashMap<NodeId, (NodeId, NodeId)>;

/// The kernel with one Range of a Reduce partitioned, where it is alone in its loop.
///
/// # Errors
/// When the kernel is not in range form.
pub(super) fn partition(graph: &mut Graph, sink: NodeId, range: NodeId, copied: &Copied) -> Result<NodeId> {
    let order = graph.reachable(&[sink]);
    let reduces = |node: &NodeId| graph.op(*node) == Op::Reduce && graph.sources(*node)[1..].contains(&range);
    let owners: SmallVec<[NodeId; 2]> = order.iter().copied().filter(reduces).collect();
    let &[node] = &owners[..] else { return Ok(sink) };
    let tiles = Tiles::new(graph, order)?;
    let Some(split) = Split::of(graph, &tiles, copied, node, range)? else { return Ok(sink) };
    let parts = split.parts(graph, &tiles, node)?;
    Ok(substitute(graph, &[sink], &[(node, parts)].into_iter().collect())?[0])
}

/// The first Range of a Reduce along which conditions mask off many terms.
///
/// # Errors
/// When the kernel is not in range form.
pub(super) fn bounded(graph: &mut Graph, node: NodeId, live: &Live) -> Result<Option<Bounded>> {
    let Arg::Reduce { op, .. } = *graph.arg(node) else { return Ok(None) };
    let ranges: SmallVec<[NodeId; 4]> = graph.sources(node)[1..].into();
    let value = graph.source(node, 0);
    for range in ranges {
        let Some(trips) = live::trips(graph, range) else { continue };
        let candidates = Candidates::of(graph, &[value], &Copied::default(), (range, trips), everywhere)?;
        let (mut shared, mut is_rest_empty) = (0, true);
        let bounds = candidates.choose(graph, |graph, bound| {
            let rest = simplified(graph, value, &Copied::default(), &bound.gates)?;
            if is_nothing(graph, op, rest) {
                return Ok(Some(()));
            }
            let left = live.of(value) & !depends(graph, rest, live)?;
            if left != 0 {
                (shared, is_rest_empty) = (shared | left, false);
            }
            Ok((left != 0).then_some(()))
        })?;
        if bounds.share(graph) >= LEAST_SHARE {
            return Ok(Some(Bounded { range, shared, is_rest_empty }));
        }
    }
    Ok(None)
}

/// The Ranges around a value.
fn depends(graph: &Graph, value: NodeId, live: &Live) -> Result<RangeSet> {
    let own = Live::new(graph, &graph.reachable(&[value]))?;
    Ok(own.members(own.of(value)).fold(0, |set, range| set | live.bit(range)))
}

/// The least and greatest value of a term, for bounds that may depend on every other loop.
pub(super) fn everywhere(_: &Graph, atom: NodeId, coefficient: i64) -> Option<(Affine, Affine)> {
    let term = Affine::atom(atom).scale(coefficient);
    Some((term.clone(), term))
}

fn is_nothing(graph: &Graph, op: Op, term: NodeId) -> bool {
    graph.as_const(term).is_some_and(|value| vanishes(op, value.dtype, &[], value))
}

/// The Ranges of a scheduled kernel.
struct Tiles {
    live: Live,
    /// Those whose trips must agree about the bounds of a loop: tiles, and the threads of a workgroup, which wait for each other.
    together: RangeSet,
}

impl Tiles {
    fn new(graph: &Graph, order: Vec<NodeId>) -> Result<Tiles> {
        let live = Live::new(graph, &order)?;
        let is_together = |range: NodeId| match *graph.arg(range) {
            Arg::Range { axis, .. } => {
                axis.is_within_workgroup() || matches!(axis, AxisType::Upcast | AxisType::Unroll)
            }
            _ => false,
        };
        let together = live.ranges.iter().filter(|&&range| is_together(range));
        let together = together.fold(0, |set, &range| set | live.bit(range));
        Ok(Tiles { live, together })
    }

    /// Whether a value is invariant in the innermost loop around a Reduce.
    fn is_shared(&self, graph: &Graph, reduce: NodeId, value: NodeId) -> Result<bool> {
        let innermost = self.live.members(self.live.of(reduce) & !self.together).last();
        let own = depends(graph, value, &self.live)?;
        Ok(innermost.is_some_and(|range| own & self.live.bit(range) == 0))
    }

    /// Whether a value needs only elementwise ops and Loads in each trip of a loop, no other Reduce and no effect, such as a copy on
    /// first use.
    fn is_plain(&self, graph: &Graph, value: NodeId, range: NodeId) -> bool {
        let is_plain = |op: Op| op.is_elementwise() || matches!(op, Op::Range | Op::Index | Op::Load);
        let mut order = graph.reachable(&[value]).into_iter();
        order.all(|node| self.live.of(node) & self.live.bit(range) == 0 || is_plain(graph.op(node)))
    }
}

/// Where the trips of a loop in which some gates may be open begin (a low bound) or end (a high one).
pub(super) struct Bound {
    /// The first trip at or past the bound.
    pub at: Affine,
    /// The same for the trips in which the gates are open in the whole tile.
    pub open: Affine,
    /// The gates, and their values beyond the bound.
    pub gates: SmallVec<[(NodeId, bool); 2]>,
    /// Conditions of the gates, with their values where the gates are open in the whole tile.
    conditions: SmallVec<[(NodeId, bool); 2]>,
}

/// The bounds that the gates of some values put on the trips of a loop, tightest first.
pub(super) struct Candidates {
    trips: i64,
    low: SmallVec<[Bound; 2]>,
    high: SmallVec<[Bound; 2]>,
}

impl Candidates {
    /// Bounds on `trips` trips of a Range. `extremes` gives the least and greatest value of `coefficient · atom` over the loops that the
    /// bounds must not depend on; `None` if there is none.
    pub fn of(
        graph: &mut Graph,
        values: &[NodeId],
        copied: &Copied,
        (range, trips): (NodeId, i64),
        mut extremes: impl FnMut(&Graph, NodeId, i64) -> Option<(Affine, Affine)>,
    ) -> Result<Candidates> {
        let mut found = Candidates { trips, low: SmallVec::new(), high: SmallVec::new() };
        for gate in gates(graph, values, copied) {
            for holds in [true, false] {
                for condition in terms::conditions(graph, gate, holds)? {
                    let (forms, known): (SmallVec<[Affine; 2]>, _) = match condition.constraint {
                        Some(Constraint::NotNegative(form)) => {
                            let known = condition.is_equivalent.then_some((condition.node, condition.holds));
                            (SmallVec::from_iter([form]), known)
                        }
                        Some(Constraint::Zero(form)) => (SmallVec::from_iter([form.scale(-1), form]), None),
                        None => continue,
                    };
                    for form in forms {
                        let Some((factor, rest)) = Constraint::NotNegative(form).isolate(graph, range) else {
                            continue;
                        };
                        let number = Affine::number(rest.constant());
                        let within = rest.terms().iter().try_fold((number.clone(), number), |(least, most), term| {
                            let (low, high) = extremes(graph, term.0, term.1)?;
                            Some((least.plus(&low), most.plus(&high)))
                        });
                        if let Some(within) = within.filter(|_| factor != 0) {
                            found.add(graph, factor, &within, (gate, !holds), known)?;
                        }
                    }
                }
            }
        }
        let middle = |bound: &Bound| middle(graph, &bound.at, trips);
        found.low.sort_by(|a, b| middle(b).total_cmp(&middle(a)));
        found.high.sort_by(|a, b| middle(a).total_cmp(&middle(b)));
        Ok(found)
    }

    /// Adds the bound of a gate that is closed where `factor · trip + form` is negative, for a form between two others.
    fn add(
        &mut self,
        graph: &mut Graph,
        factor: i64,
        (least, most): &(Affine, Affine),
        gate: (NodeId, bool),
        known: Option<(NodeId, bool)>,
    ) -> Result<()> {
        let mut first = |form: &Affine| match factor > 0 {
            true => form.scale(-1).offset(factor - 1).quotient(graph, factor),
            false => Ok(form.quotient(graph, -factor)?.offset(1)),
        };
        let (at, open) = (first(most)?, first(least)?);
        let side = if factor > 0 { &mut self.low } else { &mut self.high };
        match side.iter_mut().find(|bound| (&bound.at, &bound.open) == (&at, &open)) {
            Some(bound) => {
                bound.gates.push(gate);
                bound.conditions.extend(known);
            }
            None => {
                let (gates, conditions) = (SmallVec::from_iter([gate]), known.into_iter().collect());
                side.push(Bound { at, open, gates, conditions });
            }
        }
        Ok(())
    }

    /// The tightest bound on either side beyond which `better` finds simpler values.
    pub fn choose<T>(
        self,
        graph: &mut Graph,
        mut better: impl FnMut(&mut Graph, &Bound) -> Result<Option<T>>,
    ) -> Result<Bounds<T>> {
        let mut first = |side: SmallVec<[Bound; 2]>| -> Result<Option<(Bound, T)>> {
            for bound in side {
                if let Some(value) = better(graph, &bound)? {
                    return Ok(Some((bound, value)));
                }
            }
            Ok(None)
        };
        Ok(Bounds { trips: self.trips, low: first(self.low)?, high: first(self.high)? })
    }
}

/// The trips of a loop in which some gates may be open, and the values computed beyond either bound.
pub(super) struct Bounds<T> {
    trips: i64,
    pub low: Option<(Bound, T)>,
    pub high: Option<(Bound, T)>,
}

impl<T> Bounds<T> {
    /// The share of trips beyond the bounds, estimated at the midpoint of the enclosing loops.
    pub fn share(&self, graph: &Graph) -> f64 {
        let middle = |side: &Option<(Bound, T)>, otherwise: i64| {
            side.as_ref().map_or(otherwise as f64, |(bound, _)| middle(graph, &bound.at, self.trips))
        };
        1.0 - (middle(&self.high, self.trips) - middle(&self.low, 0)).max(0.0) / self.trips as f64
    }

    /// The first trip, and the end (exclusive).
    pub fn trips(&self, graph: &mut Graph) -> Result<(Affine, Affine)> {
        let all = (Affine::number(0), Affine::number(self.trips));
        self.within(graph, &all, |bound| &bound.at)
    }

    /// Those of these trips in which all gates are open in the whole tile.
    fn open(&self, graph: &mut Graph, trips: &(Affine, Affine)) -> Result<(Affine, Affine)> {
        self.within(graph, trips, |bound| &bound.open)
    }

    fn within(
        &self,
        graph: &mut Graph,
        (first, end): &(Affine, Affine),
        at: fn(&Bound) -> &Affine,
    ) -> Result<(Affine, Affine)> {
        let low = self.low.as_ref().map(|(bound, _)| between(graph, at(bound), (first, end))).transpose()?;
        let low = low.unwrap_or(first.clone());
        let high = self.high.as_ref().map(|(bound, _)| between(graph, at(bound), (&low, end))).transpose()?;
        Ok((low, high.unwrap_or(end.clone())))
    }
}

/// A loop of a Reduce with its bounds, and the remaining terms beyond either, if any.
struct Split {
    range: NodeId,
    bounds: Bounds<Option<NodeId>>,
}

impl Split {
    /// `None` where nothing becomes simpler.
    fn of(graph: &mut Graph, tiles: &Tiles, copied: &Copied, node: NodeId, range: NodeId) -> Result<Option<Split>> {
        let (Arg::Reduce { op, .. }, Arg::Range { axis: AxisType::Reduce, .. }) = (graph.arg(node), graph.arg(range))
        else {
            return Ok(None);
        };
        let (op, value) = (*op, graph.source(node, 0));
        let is_plain = graph.sources(node)[1..].iter().all(|&range| tiles.is_plain(graph, value, range));
        let Some(trips) = live::trips(graph, range).filter(|_| is_plain) else { return Ok(None) };
        let own = graph.sources(node)[1..].iter().filter(|&&other| other < range);
        let outside = own.fold(tiles.live.of(node), |set, &other| set | tiles.live.bit(other)) & !tiles.together;
        let extremes = |graph: &Graph, atom: NodeId, coefficient: i64| {
            let live = graph.reachable(&[atom]).into_iter().fold(0, |set, node| set | tiles.live.bit(node));
            if live & !outside == 0 {
                return everywhere(graph, atom, coefficient);
            }
            let last = live::trips(graph, atom).filter(|_| graph.op(atom) == Op::Range)?.checked_sub(1)?;
            let end = coefficient.checked_mul(last)?;
            Some((Affine::number(end.min(0)), Affine::number(end.max(0))))
        };
        let candidates = Candidates::of(graph, &[value], copied, (range, trips), extremes)?;
        let all = depends(graph, value, &tiles.live)?;
        let bounds = candidates.choose(graph, |graph, bound| {
            let rest = simplified(graph, value, copied, &bound.gates)?;
            if is_nothing(graph, op, rest) {
                return Ok(Some(None));
            }
            Ok((depends(graph, rest, &tiles.live)? != all).then_some(Some(rest)))
        })?;
        Ok((bounds.low.is_some() || bounds.high.is_some()).then_some(Split { range, bounds }))
    }

    /// The Reduce in parts.
    fn parts(&self, graph: &mut Graph, tiles: &Tiles, node: NodeId) -> Result<NodeId> {
        let Arg::Reduce { op, .. } = *graph.arg(node) else { return Ok(node) };
        let value = graph.source(node, 0);
        let trips = self.bounds.trips(graph)?;
        let open = self.bounds.open(graph, &trips)?;
        let (none, all) = (Affine::number(0), Affine::number(self.bounds.trips));
        let sides = [&self.bounds.low, &self.bounds.high].into_iter().flatten();
        let known: SmallVec<[(NodeId, bool); 4]> =
            sides.flat_map(|(side, _)| side.conditions.iter().copied()).collect();
        let inside = simplified(graph, value, &Copied::default(), &known)?;
        let mut parts: SmallVec<[Part; 5]> = SmallVec::from_iter([Part::new(inside, &open.0, &open.1)]);
        if let Some((_, left)) = self.bounds.low {
            parts.push(Part::new(value, &trips.0, &open.0));
            parts.extend(left.map(|left| Part::new(left, &none, &trips.0).rest()));
        }
        if let Some((_, left)) = self.bounds.high {
            parts.push(Part::new(value, &open.1, &trips.1));
            parts.extend(left.map(|left| Part::new(left, &trips.1, &all).rest()));
        }
        parts.retain(|part| part.end.minus(part.first).bounds(graph).1 > 0);
        let mut total: Option<NodeId> = None;
        for part in parts {
            let part = self.part(graph, tiles, node, &part, total.is_some())?;
            total = Some(match total {
                Some(total) => graph.alu(op, &[total, part])?,
                None => part,
            });
        }
        Ok(total.unwrap_or(node))
    }

    /// The Reduce over one part. With `fresh`, its other Ranges are new ones, so that it is a loop nest of its own.
    fn part(&self, graph: &mut Graph, tiles: &Tiles, node: NodeId, part: &Part, fresh: bool) -> Result<NodeId> {
        let &Part { value, first, end, is_rest } = part;
        let mut count = end.minus(first).emit(graph)?;
        let is_sum = matches!(graph.arg(node), Arg::Reduce { op: Op::Add, .. });
        if is_sum && is_rest && tiles.is_shared(graph, node, value)? && is_zero_or_nan(graph, value) {
            let has_nans = self.has_nans(graph, tiles, node, value)?;
            let zero = graph.index(0);
            count = graph.alu(Op::Where, &[has_nans, count, zero])?;
        }
        let sources = self.terms(graph, node, value, (count, first), fresh)?;
        graph.add(Op::Reduce, &sources, graph.arg(node).clone())
    }

    /// Whether the value is a nan in any trip, for any element of a tile.
    fn has_nans(&self, graph: &mut Graph, tiles: &Tiles, node: NodeId, value: NodeId) -> Result<NodeId> {
        let is_nan = graph.alu(Op::CmpNe, &[value, value])?;
        let trips = graph.index(self.bounds.trips);
        let mut sources = self.terms(graph, node, is_nan, (trips, &Affine::number(0)), true)?;
        let term = sources[0];
        let mut lanes: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        let first = live::next_range_id(graph, graph.nodes());
        for (id, range) in (first..).zip(tiles.live.members(depends(graph, term, &tiles.live)? & tiles.together)) {
            let bound = graph.source(range, 0);
            let lane = graph.range(bound, id, AxisType::Unroll)?;
            lanes.insert(range, lane);
            sources.push(lane);
        }
        sources[0] = substitute(graph, &[term], &lanes)?[0];
        graph.add(Op::Reduce, &sources, Arg::Reduce { op: Op::Max, axes: SmallVec::new() })
    }

    /// The sources of a Reduce of a value over `count` trips from `first` on.
    fn terms(
        &self,
        graph: &mut Graph,
        node: NodeId,
        value: NodeId,
        (count, first): (NodeId, &Affine),
        fresh: bool,
    ) -> Result<SmallVec<[NodeId; 4]>> {
        let mut sources: SmallVec<[NodeId; 4]> = graph.sources(node).into();
        let mut others: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        let mut id = live::next_range_id(graph, graph.nodes());
        for other in sources[1..].iter_mut().filter(|other| fresh && **other != self.range) {
            let Arg::Range { axis, .. } = *graph.arg(*other) else { continue };
            let bound = graph.source(*other, 0);
            let own = graph.range(bound, id, axis)?;
            others.insert(*other, own);
            *other = own;
            id += 1;
        }
        // The bounds depend on the other Ranges, so their loops are around this one.
        let first = first.emit(graph)?;
        let [value, count, first] = substitute(graph, &[value, count, first], &others)?[..] else { return Ok(sources) };
        let range = graph.range(count, id, AxisType::Reduce)?;
        let place = Affine::of(graph, first).plus(&Affine::atom(range));
        let mut replacement = Replacement::new(self.range, &place, None);
        sources[1..].iter_mut().filter(|other| **other == self.range).for_each(|own| *own = range);
        for node in graph.reachable(&[value]) {
            replacement.node(graph, node)?;
        }
        sources[0] = replacement.value(graph, value)?;
        Ok(sources)
    }
}

/// Some of the trips of a loop, and their terms.
struct Part<'a> {
    value: NodeId,
    first: &'a Affine,
    /// Exclusive.
    end: &'a Affine,
    /// It lies beyond a bound.
    is_rest: bool,
}

impl<'a> Part<'a> {
    fn new(value: NodeId, first: &'a Affine, end: &'a Affine) -> Part<'a> {
        Part { value, first, end, is_rest: false }
    }

    fn rest(self) -> Part<'a> {
        Part { is_rest: true, ..self }
    }
}

/// Whether a float is 0 or a nan for all loaded values, as `0 · x` and `exp2(x - inf)` are.
pub(super) fn is_zero_or_nan(graph: &Graph, value: NodeId) -> bool {
    // The only value, apart from nans, that a node can have.
    let mut known: FxHashMap<NodeId, f64> = FxHashMap::default();
    for node in graph.reachable(&[value]) {
        let of = |source: &NodeId| known.get(source).copied();
        let number = match (graph.op(node), graph.sources(node)) {
            (Op::Const, _) => graph.as_const(node).and_then(Const::as_float),
            (Op::Add, [a, b]) => [of(a), of(b)].into_iter().flatten().find(|&number| number == f64::NEG_INFINITY),
            (Op::Mul, [a, b]) => match (of(a), of(b)) {
                (Some(0.0), _) | (_, Some(0.0)) => Some(0.0),
                (Some(a), Some(b)) => Some(a * b),
                _ => None,
            },
            (Op::Div, [a, _]) => of(a).filter(|&a| a == 0.0),
            (Op::Exp2, [a]) => of(a).map(f64::exp2),
            (Op::Where, [_, a, b]) => of(a).filter(|_| of(a) == of(b)),
            _ => None,
        };
        known.extend(number.map(|number| (node, number)));
    }
    graph.dtype(value).is_float() && known.get(&value) == Some(&0.0)
}

/// A bound at the midpoint of the enclosing loops.
fn middle(graph: &Graph, at: &Affine, trips: i64) -> f64 {
    let (low, high) = at.bounds(graph);
    ((low as f64 + high as f64) / 2.0).clamp(0.0, trips as f64)
}

/// Clamps a form to at least 0.
pub(super) fn positive(graph: &mut Graph, form: &Affine) -> Result<Affine> {
    if form.bounds(graph).0 >= 0 {
        return Ok(form.clone());
    }
    let (form, zero) = (form.emit(graph)?, graph.index(0));
    graph.alu(Op::Max, &[form, zero]).map(|node| Affine::leaf(graph, node))
}

/// Clamps a form between two others.
pub(super) fn between(graph: &mut Graph, form: &Affine, (low, high): (&Affine, &Affine)) -> Result<Affine> {
    let above = positive(graph, &form.minus(low))?;
    let left = high.minus(low).minus(&above);
    Ok(high.minus(&positive(graph, &left)?))
}

/// The conditions of the Wheres and gated Loads in some values.
fn gates(graph: &Graph, values: &[NodeId], copied: &Copied) -> SmallVec<[NodeId; 4]> {
    let mut found = SmallVec::new();
    for node in graph.reachable(values) {
        let gate = match (graph.op(node), graph.sources(node)) {
            (Op::Where, &[gate, ..]) | (Op::Load, &[_, _, gate]) => gate,
            _ => match copied.get(&node) {
                Some(&(gate, _)) => gate,
                None => continue,
            },
        };
        if graph.props(gate).shape.is_empty() && !found.contains(&gate) {
            found.push(gate);
        }
    }
    found
}

/// A value, folded with the given values of conditions.
pub(super) fn simplified(
    graph: &mut Graph,
    value: NodeId,
    copied: &Copied,
    gates: &[(NodeId, bool)],
) -> Result<NodeId> {
    let mut new: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for &(gate, is_open) in gates {
        new.insert(gate, truth(graph, is_open));
        let closed = copied.iter().filter(|(_, other)| other.0 == gate && !is_open);
        new.extend(closed.map(|(&read, &(_, alternative))| (read, alternative)));
    }
    for node in graph.reachable(&[value]) {
        let old: SmallVec<[NodeId; 4]> = graph.sources(node).into();
        if new.contains_key(&node) || !old.iter().any(|source| new.contains_key(source)) {
            continue;
        }
        let sources: SmallVec<[NodeId; 4]> = old.iter().map(|source| *new.get(source).unwrap_or(source)).collect();
        let arg = graph.arg(node).clone();
        let is_zero = |&source: &NodeId| graph.dtype(source).is_int() && graph.as_int(source) == Some(0);
        let gate = sources.get(2).and_then(|&gate| graph.as_int(gate)).filter(|_| graph.op(node) == Op::Load);
        let made = match graph.op(node) {
            _ if gate == Some(0) => sources[1],
            _ if gate == Some(1) => graph.add(Op::Load, &sources[..1], arg)?,
            Op::Mul if let Some(zero) = sources.iter().copied().find(is_zero) => zero,
            op if op.is_elementwise() => folded(graph, op, &sources, arg)?,
            op => graph.add(op, &sources, arg)?,
        };
        new.insert(node, made);
    }
    Ok(new.get(&value).copied().unwrap_or(value))
}

/// An elementwise op, folded if all sources are constants.
fn folded(graph: &mut Graph, op: Op, sources: &[NodeId], arg: Arg) -> Result<NodeId> {
    let node = elementwise(graph, op, sources, arg)?;
    let constants: Option<SmallVec<[Const; 4]>> = sources.iter().map(|&source| graph.as_const(source)).collect();
    let value = constants.and_then(|constants| eval_op(graph.op(node), graph.dtype(node), &constants).ok());
    Ok(match value {
        Some(value) if graph.sources(node) == sources => graph.constant(value),
        _ => node,
    })
}
