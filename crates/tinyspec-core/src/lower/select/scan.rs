//! Running Reduces: in the loop over i, `Σr [r <= i] · x(r)` needs one term per trip, added to a loop-carried register.
//!
//! If i is a loop over tiles, the terms of a tile are x at the elements of the tile, whose prefix sums are computed in
//! blocks of doubling size. A sum from i on runs the loop backwards.

use super::maximum;
use crate::lower::fold::{both, identity};
use crate::lower::live::{self, Live, RangeSet};
use crate::lower::replace::{replace, replace_in_loop};
use crate::lower::terms::{Terms, under};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::affine::{Affine, Limit, less};
use tinyspec_ir::dim::{shape, static_shape};
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, DType, Dim, Graph, NodeId, Op, Result};

pub(in super::super) fn scan(graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
    let mut sink = sink;
    loop {
        let order = graph.reachable(&[sink]);
        if !order.iter().any(|&node| may_run(graph, node)) {
            return Ok(sink);
        }
        let loops = Loops::new(graph, &order)?;
        let mut found: SmallVec<[Running; 2]> = SmallVec::new();
        for &node in &order {
            found.extend(Running::of(graph, &loops, node)?);
        }
        found.retain(|running| running.is_in_order() || running.may_reverse(graph, &order));
        let Some(first) = found.first() else { return Ok(sink) };
        let ready = found.iter().find(|running| running.is_in_order());
        sink = match ready {
            Some(running) => running.build(graph, &loops, sink)?,
            None if first.counters.is_empty() => return Ok(sink),
            None => {
                for &Counter { range, .. } in &first.counters {
                    let trips = Affine::of(graph, graph.source(range, 0));
                    let backwards = trips.offset(-1).minus(&Affine::atom(range));
                    sink = replace_in_loop(graph, sink, range, &backwards)?;
                }
                sink
            }
        };
    }
}

/// Whether this may be a running Reduce: its terms are selected by a comparison of indices.
fn may_run(graph: &Graph, node: NodeId) -> bool {
    let value = match graph.sources(node) {
        &[value, _] if graph.op(node) == Op::Reduce => value,
        _ => return false,
    };
    let is_choice = |node: NodeId| graph.op(node) == Op::Where && graph.op(graph.source(node, 0)) == Op::CmpLt;
    is_choice(value) && graph.dtype(graph.source(graph.source(value, 0), 0)) == DType::Index
}

/// The loops of a kernel, and the loops around each.
struct Loops {
    live: Live,
    ends: FxHashMap<NodeId, NodeId>,
    around: FxHashMap<NodeId, RangeSet>,
}

impl Loops {
    fn new(graph: &Graph, order: &[NodeId]) -> Result<Loops> {
        let live = Live::new(graph, order)?;
        let (mut ends, mut around) = (FxHashMap::default(), FxHashMap::default());
        // Outer Ends come after the inner ones.
        let mut outside: FxHashMap<NodeId, RangeSet> = FxHashMap::default();
        for &node in order.iter().rev() {
            let mut set = outside.get(&node).copied().unwrap_or(0);
            if let (Op::End, &[_, range]) = (graph.op(node), graph.sources(node)) {
                ends.insert(range, node);
                around.insert(range, set);
                set |= live.bit(range);
            }
            if matches!(graph.op(node), Op::End | Op::Group | Op::Sink) {
                for &source in graph.sources(node) {
                    *outside.entry(source).or_default() |= set;
                }
            }
        }
        Ok(Loops { live, ends, around })
    }
}

/// A loop that a position depends on.
struct Counter {
    range: NodeId,
    /// The coefficient of its variable.
    factor: i64,
    trips: Dim,
}

/// A Reduce whose value is loop-carried.
struct Running {
    node: NodeId,
    op: Op,
    /// The terms, as a function of `range`; later the terms of one trip, as a tile.
    value: NodeId,
    range: NodeId,
    trips: Dim,
    /// The index of the term that is added at each element of the output.
    position: Affine,
    /// Whether the sum starts there, instead of ending there.
    is_suffix: bool,
    /// The least and the greatest position.
    ends: (Dim, Dim),
    /// The loops that the position depends on, inner ones first: there may be one over blocks and one within them.
    counters: SmallVec<[Counter; 2]>,
    /// The axis of the tile along which the position increases, the node for the coordinate along it, and its size.
    tile: Option<(usize, NodeId, i64)>,
}

impl Running {
    fn of(graph: &mut Graph, loops: &Loops, node: NodeId) -> Result<Option<Running>> {
        if !may_run(graph, node) {
            return Ok(None);
        }
        let (value, range) = (graph.source(node, 0), graph.source(node, 1));
        let Arg::Reduce { op, .. } = *graph.arg(node) else { return Ok(None) };
        let terms = Terms::of(graph, op, value)?;
        for (number, condition) in terms.conditions.iter().enumerate() {
            let (position, is_suffix) = match condition.constraint.as_ref().and_then(|own| own.limit(graph, range)) {
                Some(Limit::Least(position)) => (position, true),
                Some(Limit::Greatest(position)) => (position, false),
                _ => continue,
            };
            let Some(trips) = live::bound(graph, range) else { continue };
            let mut running = Running {
                node,
                op,
                value,
                range,
                trips,
                ends: (Dim::from(position.constant()), Dim::from(position.constant())),
                position,
                is_suffix,
                counters: SmallVec::new(),
                tile: None,
            };
            if running.follow(graph) {
                running.value = terms.emit(graph, op, &[number])?;
                if running.is_carried(graph, loops)
                    && let Some(joins) = running.joins(graph)?
                {
                    running.value = joins;
                    return Ok(Some(running));
                }
            }
        }
        Ok(None)
    }

    /// Whether the position steps without gaps, by loops over tiles or a single loop.
    fn follow(&mut self, graph: &Graph) -> bool {
        for &(atom, factor) in self.position.terms() {
            let (least, most) = match (graph.op(atom), graph.arg(atom)) {
                (Op::Range, Arg::Range { axis: AxisType::Loop, .. }) => {
                    let Some(trips) = live::bound(graph, atom) else { return false };
                    self.counters.push(Counter { range: atom, factor, trips: trips.clone() });
                    (Dim::from(0), trips - 1i64)
                }
                (Op::Reshape, _) if self.tile.is_none() && factor == 1 => {
                    let Some(dims) = static_shape(&graph.props(atom).shape) else { return false };
                    let Some(axis) = dims.iter().position(|&size| size > 1) else { return false };
                    self.tile = Some((axis, atom, dims[axis]));
                    (Dim::from(0), Dim::from(dims[axis] - 1))
                }
                // The last index of a loop that is counted backwards.
                _ => match graph.props(atom).value.as_deref() {
                    Some([dim]) if graph.props(atom).shape.is_empty() => (dim.clone(), dim.clone()),
                    _ => return false,
                },
            };
            let (least, most) = if factor > 0 { (least, most) } else { (most, least) };
            self.ends.0 = &self.ends.0 + least * factor;
            self.ends.1 = &self.ends.1 + most * factor;
        }
        // The first element must have at most one term, its own.
        let starts = match self.is_suffix {
            false => self.ends.0.bounds().1 <= 0,
            true => (&self.ends.1 - &self.trips).bounds().0 >= -1,
        };
        self.counters.sort_by_key(|counter| counter.factor.unsigned_abs());
        let forwards = self.counters.first().is_none_or(|counter| counter.factor > 0);
        let mut next = Some(self.tile.map_or(1, |(_, _, size)| size));
        let mut follows = |counter: &Counter| {
            let here = next.is_some_and(|next| next == counter.factor.abs());
            next = counter.trips.as_const().map(|trips| counter.factor.abs().saturating_mul(trips));
            here && (counter.factor > 0) == forwards
        };
        starts && self.counters.iter().all(&mut follows)
    }

    /// Whether no term depends on the output's position, and the loops that the terms depend on enclose the scan.
    fn is_carried(&self, graph: &Graph, loops: &Loops) -> bool {
        if let Some((axis, ..)) = self.tile {
            let dims = static_shape(&graph.props(self.value).shape);
            if dims.is_none_or(|dims| dims.get(axis).is_some_and(|&size| size != 1)) {
                return false;
            }
        }
        let (Some(inner), Some(outer)) = (self.counters.first(), self.counters.last()) else { return true };
        let below = graph.reachable(&[self.value]);
        let around = |range: NodeId| loops.around.get(&range).copied().unwrap_or(0);
        let counting = self.counters.iter().fold(0, |set, counter| set | loops.live.bit(counter.range));
        self.counters.iter().all(|counter| loops.ends.contains_key(&counter.range) && !below.contains(&counter.range))
            && (loops.live.of(self.node) & !around(inner.range) & !counting) == 0
            // There is no other loop between them.
            && (around(inner.range) & !around(outer.range) & !counting) == 0
            && around(outer.range) & counting == 0
    }

    /// Whether the loop visits the terms in the order in which they are added.
    fn is_in_order(&self) -> bool {
        self.counters.first().is_none_or(|counter| (counter.factor > 0) != self.is_suffix)
    }

    /// Whether the order of the loop's trips is unobservable: it carries no register, and it neither reads nor rewrites
    /// memory that it writes.
    fn may_reverse(&self, graph: &Graph, order: &[NodeId]) -> bool {
        let is_counter = |source: &NodeId| self.counters.iter().any(|counter| counter.range == *source);
        let is_carried =
            |&node: &NodeId| graph.op(node) == Op::After && graph.sources(node)[1..].iter().any(is_counter);
        let (mut written, mut read) = (SmallVec::<[NodeId; 8]>::new(), SmallVec::<[NodeId; 8]>::new());
        for &node in order {
            let place = match graph.op(node) {
                Op::Store | Op::AtomicAdd | Op::Load => graph.source(node, 0),
                _ => continue,
            };
            let Some(buffer) = graph.memory(place) else { continue };
            match graph.op(node) {
                Op::Load if graph.op(buffer) == Op::Param => read.push(buffer),
                Op::Load => {}
                _ if written.contains(&buffer) => return false,
                _ => written.push(buffer),
            }
        }
        !order.iter().any(is_carried) && !written.iter().any(|buffer| read.contains(buffer))
    }

    fn build(&self, graph: &mut Graph, loops: &Loops, sink: NodeId) -> Result<NodeId> {
        let keys = if self.op == Op::Max { maximum::keys(graph, self.value)? } else { None };
        let prefix = self.prefix(graph, keys.unwrap_or(self.value))?;
        let floats = |graph: &mut Graph, value: NodeId| match keys {
            Some(_) => maximum::floats(graph, value),
            None => Ok(value),
        };
        let (Some(inner), Some(outer)) = (self.counters.first(), self.counters.last()) else {
            let prefix = floats(graph, prefix)?;
            return Ok(substitute(graph, &[sink], &FxHashMap::from_iter([(self.node, prefix)]))?[0]);
        };
        let all = self.last(graph, prefix)?;
        let dims = graph.props(all).shape.clone();
        let dims = graph.shape(&dims)?;
        let (slot, dtype) = (super::next_register(graph), graph.dtype(prefix));
        let register = Arg::Buffer { slot, dtype, device: None, addrspace: AddrSpace::Reg };
        let register = graph.add(Op::Buffer, &[dims], register)?;
        let outside = loops.around.get(&outer.range).copied().unwrap_or(0);
        let mut around: SmallVec<[NodeId; 4]> = loops.live.members(outside).collect();
        around.insert(0, register);
        let place = if around.len() > 1 { graph.add(Op::After, &around, Arg::None)? } else { register };
        let nothing = identity(graph, self.op, dtype);
        let start = graph.add(Op::Store, &[place, nothing], Arg::None)?;
        let counters = self.counters.iter().map(|counter| counter.range);
        let within: SmallVec<[NodeId; 4]> = [place, start].into_iter().chain(counters).collect();
        let ready = graph.add(Op::After, &within, Arg::None)?;
        let before = graph.add(Op::Load, &[ready], Arg::Load { device: None, addrspace: AddrSpace::Reg })?;
        let after = graph.alu(self.op, &[before, all])?;
        let update = graph.add(Op::Store, &[ready, after], Arg::None)?;
        let result = graph.alu(self.op, &[before, prefix])?;
        let result = floats(graph, result)?;

        let end = loops.ends[&inner.range];
        let body = substitute(graph, &[graph.source(end, 0)], &FxHashMap::from_iter([(self.node, result)]))?[0];
        let body = graph.add(Op::Group, &[body, update], Arg::None)?;
        let new = graph.add(Op::End, &[body, inner.range], Arg::None)?;
        Ok(substitute(graph, &[sink], &FxHashMap::from_iter([(end, new), (self.node, result)]))?[0])
    }

    /// The terms that are added in a trip, as a tile; `None` if they are read from a packed copy that depends on the
    /// Range's own trips.
    fn joins(&self, graph: &mut Graph) -> Result<Option<NodeId>> {
        let mut inside = None;
        if self.ends.0.bounds().0 < 0 {
            inside = Some(less(graph, &Affine::number(-1), &self.position)?);
        }
        if (&self.trips - &self.ends.1).bounds().0 < 1 {
            let trips = Affine::of(graph, graph.source(self.range, 0));
            let below = less(graph, &self.position, &trips)?;
            inside = both(graph, inside, Some(below))?;
        }
        let inside = inside.filter(|&gate| graph.as_int(gate) != Some(1));
        let Some(value) = replace(graph, &[self.value], self.range, &self.position, inside)? else { return Ok(None) };
        let value = under(graph, self.op, value[0], inside)?;
        let Some((_, counting, _)) = self.tile else { return Ok(Some(value)) };
        // A uniform term still counts once per element.
        let (have, count) = (graph.props(value).shape.clone(), graph.props(counting).shape.clone());
        match tinyspec_ir::dim::broadcast(&have, &count) {
            Some(dims) if dims != have => {
                let dims = graph.shape(&dims)?;
                graph.add(Op::Expand, &[value, dims], Arg::None).map(Some)
            }
            _ => Ok(Some(value)),
        }
    }

    /// The inclusive prefix sums of the tile: of two adjacent blocks, the last element of the first is added to all of
    /// the second. For blocks shorter than a piece of a vector, lanes stay within their piece.
    fn prefix(&self, graph: &mut Graph, terms: NodeId) -> Result<NodeId> {
        let Some((axis, counting, size)) = self.tile else { return Ok(terms) };
        let mirrored = |place: i64| if self.is_suffix { size - 1 - place } else { place };
        let counted = match self.is_suffix {
            true => Affine::number(size - 1).minus(&Affine::atom(counting)).emit(graph)?,
            false => counting,
        };
        let mut total = terms;
        let mut block = 1;
        while block < size {
            let from = |place: i64| if place & block == 0 { place } else { (place & -block) - 1 };
            let places: Vec<i64> = (0..size).map(|place| mirrored(from(mirrored(place)))).collect();
            let moved = permuted(graph, total, axis, &places)?;
            let (bit, zero) = (graph.index(block), graph.index(0));
            let bit = graph.alu(Op::And, &[counted, bit])?;
            let joins = graph.alu(Op::CmpNe, &[bit, zero])?;
            // The other elements are combined with themselves or with the identity: a shuffle that zeroes lanes is one
            // instruction.
            let moved = match self.op {
                Op::Max => moved,
                _ => {
                    let nothing = identity(graph, self.op, graph.dtype(total));
                    graph.alu(Op::Where, &[joins, moved, nothing])?
                }
            };
            total = graph.alu(self.op, &[total, moved])?;
            block *= 2;
        }
        Ok(total)
    }

    /// The total of a tile, broadcast to all of its elements for the next trip.
    fn last(&self, graph: &mut Graph, prefix: NodeId) -> Result<NodeId> {
        let Some((axis, _, size)) = self.tile else { return Ok(prefix) };
        let place = if self.is_suffix { 0 } else { size - 1 };
        permuted(graph, prefix, axis, &vec![place; usize::try_from(size).unwrap_or(1)])
    }
}

/// A tile with its elements permuted along one axis.
fn permuted(graph: &mut Graph, tile: NodeId, axis: usize, places: &[i64]) -> Result<NodeId> {
    let dims = static_shape(&graph.props(tile).shape).unwrap_or_default();
    let mut sources: SmallVec<[NodeId; 4]> = SmallVec::from_iter([tile]);
    for &size in &dims[..axis] {
        let all: Vec<i64> = (0..size).collect();
        sources.push(graph.shape(&shape(&all))?);
    }
    sources.push(graph.shape(&shape(places))?);
    graph.add(Op::Index, &sources, Arg::None)
}
