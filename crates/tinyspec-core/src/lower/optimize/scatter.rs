//! Sums at places that data name: `y[k] = Σd [k = e(d)] · x(d)` compares every k with every d. Instead all of y begins
//! with nothing, and a loop over d adds x(d) to `y[e(d)]`, where that is in y. Only the order of a Reduce changes.
//!
//! Adds to one place follow each other, so they need not be atomic: threads share an axis of y that the numbers do not
//! decide, if there is one. On a GPU, whose workgroups have no order, they are a kernel of their own, and atomic.

use super::kernel::Nest;
use super::windows::{Root, depends};
use crate::lower::fold::{both, identity};
use crate::lower::live;
use crate::lower::loops::closed;
use crate::lower::replace::replace;
use crate::lower::terms::Terms;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_backends::{Target, Workgroups};
use tinyspec_ir::affine::{Affine, Constraint, less};
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, Graph, NodeId, Op, Result};

/// Places from which on a loop over them costs more than to begin with nothing.
pub(crate) const PLACES: i64 = 32;
/// Threads of a workgroup that adds terms.
const THREADS: usize = 128;

/// The sums of a kernel, if all that it stores are such sums.
fn scatters(graph: &mut Graph, sink: NodeId) -> Result<Option<SmallVec<[Scatter; 2]>>> {
    let &[root] = graph.sources(sink) else { return Ok(None) };
    let Nest { body, ranges } = Nest::of(graph, root);
    let stores: SmallVec<[NodeId; 2]> = match graph.op(body) {
        Op::Group => graph.sources(body).into(),
        _ => SmallVec::from_iter([body]),
    };
    let mut scatters: SmallVec<[Scatter; 2]> = SmallVec::new();
    for &store in &stores {
        match Scatter::of(graph, store, &ranges)? {
            Some(scatter) => scatters.push(scatter),
            None => return Ok(None),
        }
    }
    Ok(Some(scatters))
}

/// The kernel as two, for threads that nobody orders: all begins with nothing; then each term is added to its place.
pub(crate) fn apart(graph: &mut Graph, sink: NodeId, limits: &Workgroups) -> Result<Option<[NodeId; 2]>> {
    let Some(scatters) = scatters(graph, sink)? else { return Ok(None) };
    let (mut starts, mut updates) = (FxHashMap::default(), SmallVec::<[NodeId; 2]>::new());
    for scatter in &scatters {
        let dtype = graph.dtype(scatter.buffer);
        if scatter.op != Op::Add || dtype != graph.dtype(scatter.value) || !matches!(dtype.size(), 4 | 8) {
            return Ok(None);
        }
        let nothing = identity(graph, Op::Add, dtype);
        let place = graph.source(scatter.store, 0);
        starts.insert(scatter.store, graph.add(Op::Store, &[place, nothing], Arg::None)?);
        match scatter.add_atomically(graph, limits)? {
            Some(update) => updates.push(update),
            None => return Ok(None),
        }
    }
    let start = substitute(graph, &[sink], &starts)?[0];
    Ok(Some([start, graph.add(Op::Sink, &updates, Arg::None)?]))
}

/// The kernel as such loops, if all that it stores are such sums.
/// The workgroups of a GPU have no order, in which a loop over terms would have to follow one over places.
pub(crate) fn loops(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<Option<NodeId>> {
    if target.workgroups.is_some() {
        return Ok(None);
    }
    let Some(scatters) = scatters(graph, sink)? else { return Ok(None) };
    let mut effects: SmallVec<[NodeId; 2]> = SmallVec::new();
    // One loop for threads, or none.
    let threads = if scatters.len() == 1 { target.threads } else { 1 };
    for scatter in &scatters {
        match scatter.build(graph, threads)? {
            Some(effect) => effects.push(effect),
            None => return Ok(None),
        }
    }
    graph.add(Op::Sink, &effects, Arg::None).map(Some)
}

/// A Store of such a sum.
struct Scatter {
    store: NodeId,
    op: Op,
    buffer: NodeId,
    /// Where the element goes, in terms of the ranges of the output.
    position: NodeId,
    ranges: Vec<NodeId>,
    /// The position of the range that data determine, and its replacement.
    place: usize,
    chosen: Root,
    reduced: SmallVec<[NodeId; 2]>,
    value: NodeId,
}

impl Scatter {
    fn of(graph: &mut Graph, store: NodeId, ranges: &[NodeId]) -> Result<Option<Scatter>> {
        let &[address, total] = graph.sources(store) else { return Ok(None) };
        let (Op::Store, Op::Reduce, Op::Index) = (graph.op(store), graph.op(total), graph.op(address)) else {
            return Ok(None);
        };
        let Arg::Reduce { op, .. } = *graph.arg(total) else { return Ok(None) };
        let (buffer, position) = (graph.source(address, 0), graph.source(address, 1));
        let (value, reduced) = (graph.source(total, 0), SmallVec::from(&graph.sources(total)[1..]));
        let terms = Terms::of(graph, op, value)?;
        for (number, condition) in terms.conditions.iter().enumerate() {
            let Some(Constraint::Zero(sum)) = &condition.constraint else { continue };
            for (place, &range) in ranges.iter().enumerate() {
                let Some(chosen) = Root::of(graph, sum, range)? else { continue };
                let varies = |atom: NodeId| reduced.iter().any(|&range| depends(graph, atom, range));
                let is_wide = live::bound(graph, range).is_some_and(|trips| trips.bounds().1 >= PLACES);
                if !is_wide || !chosen.trip.atoms().any(varies) {
                    continue;
                }
                let value = terms.emit(graph, op, &[number])?;
                // Another Reduce inside would be computed again for every term.
                if graph.reachable(&[value]).iter().any(|&node| graph.op(node) == Op::Reduce) {
                    continue;
                }
                let ranges = ranges.to_vec();
                return Ok(Some(Scatter { store, op, buffer, position, ranges, place, chosen, reduced, value }));
            }
        }
        Ok(None)
    }

    fn build(&self, graph: &mut Graph, threads: usize) -> Result<Option<NodeId>> {
        let shared = self.shared(graph, threads);
        let (mut outermost, mut common) = (None, FxHashMap::default());
        if let Some((range, parts)) = shared {
            let length = live::trips(graph, range).unwrap_or(1) / parts;
            let part = new_range(graph, parts, AxisType::Thread)?;
            outermost = Some(part);
            // The start of a part; each nest has its own loop over the inside.
            let start = Affine::atom(part).scale(length).emit(graph)?;
            common.insert(range, (start, length));
        }
        // Every element starts as the identity of the Reduce.
        let (first, loops) = self.copies(graph, &common, &self.ranges)?;
        let position = substitute(graph, &[self.position], &first)?[0];
        let place = graph.add(Op::Index, &[self.buffer, position], Arg::None)?;
        let nothing = identity(graph, self.op, graph.dtype(self.buffer));
        let start = graph.add(Op::Store, &[place, nothing], Arg::None)?;
        let start = closed(graph, start, &loops)?;
        let buffer = graph.add(Op::After, &[self.buffer, start], Arg::None)?;

        // One term after the other.
        let Some(roots) = self.term(graph)? else { return Ok(None) };
        let order = self.order(graph);
        let (second, loops) = self.copies(graph, &common, &order)?;
        let roots = substitute(graph, &roots, &second)?;
        let place = graph.add(Op::Index, &[buffer, roots[0]], Arg::None)?;
        let load = Arg::Load { device: None, addrspace: AddrSpace::Reg };
        let nothing = identity(graph, self.op, graph.dtype(self.buffer));
        let gated: SmallVec<[NodeId; 3]> = match roots.get(2) {
            Some(&gate) => SmallVec::from_iter([place, nothing, gate]),
            None => SmallVec::from_iter([place]),
        };
        let before = graph.add(Op::Load, &gated, load)?;
        let after = graph.alu(self.op, &[before, roots[1]])?;
        let sources: SmallVec<[NodeId; 3]> = [place, after].into_iter().chain(roots.get(2).copied()).collect();
        let update = graph.add(Op::Store, &sources, Arg::None)?;
        let update = closed(graph, update, &loops)?;
        closed(graph, update, outermost.as_slice()).map(Some)
    }

    /// The loops around a term. Rows are outside, so that the terms of a row meet in the cache, unless adjacent elements
    /// read belong to different rows.
    fn order(&self, graph: &Graph) -> Vec<NodeId> {
        let roots: Vec<NodeId> = self.chosen.trip.atoms().chain([self.value]).collect();
        let reads = graph.reachable(&roots).into_iter().filter(|&node| graph.op(node) == Op::Load);
        let places = reads.filter_map(|load| graph.sources(graph.source(load, 0)).get(1).copied());
        let places: Vec<Affine> = places.map(|place| Affine::of(graph, place)).collect();
        let steps_less = |row: &NodeId| {
            let step = |place: &Affine, range: NodeId| place.coefficient(range).unsigned_abs();
            let (&term, row) = (self.reduced.last().unwrap_or(row), *row);
            places.iter().any(|place| (1..step(place, term)).contains(&step(place, row)))
        };
        let (rows, columns) = self.ranges.split_at(self.place);
        let (inside, outside): (Vec<NodeId>, Vec<NodeId>) = rows.iter().partition(|row| steps_less(row));
        [&outside, &self.reduced[..], &inside, &columns[1..]].concat()
    }

    /// Where a term goes, the term, and under which condition.
    fn term(&self, graph: &mut Graph) -> Result<Option<SmallVec<[NodeId; 3]>>> {
        let place = self.ranges[self.place];
        let Root { trip, inside } = &self.chosen;
        let moved = replace(graph, &[self.position, self.value], place, trip, *inside)?;
        Ok(moved.map(|roots| roots.into_iter().chain(*inside).collect()))
    }

    /// Each term by a thread of its own, neighbours in a workgroup.
    fn add_atomically(&self, graph: &mut Graph, limits: &Workgroups) -> Result<Option<NodeId>> {
        let Some(roots) = self.term(graph)? else { return Ok(None) };
        let others = self.ranges.iter().copied().filter(|&range| range != self.ranges[self.place]);
        let inner: SmallVec<[NodeId; 4]> = self.reduced.iter().copied().chain(others).collect();
        let (mut map, mut loops) = (FxHashMap::default(), Vec::new());
        let mut inside = None;
        for &range in &inner {
            let is_last = inner.last() == Some(&range);
            let trips = live::trips(graph, range).filter(|&trips| is_last && trips > 1);
            let Some(trips) = trips else {
                let new =
                    graph.range(graph.source(range, 0), live::next_range_id(graph, graph.nodes()), AxisType::Global)?;
                loops.push(new);
                map.insert(range, new);
                continue;
            };
            let members = trips.min(limits.size.min(THREADS) as i64);
            let groups = new_range(graph, (trips + members - 1) / members, AxisType::Global)?;
            let threads = new_range(graph, members, AxisType::Local)?;
            let place = Affine::atom(groups).scale(members).plus(&Affine::atom(threads));
            if trips % members != 0 {
                inside = Some(less(graph, &place, &Affine::number(trips))?);
            }
            loops.extend([groups, threads]);
            map.insert(range, place.emit(graph)?);
        }
        let roots: SmallVec<[NodeId; 3]> = match (inside, inner.last()) {
            (Some(inside), Some(&last)) => {
                let place = Affine::of(graph, map[&last]);
                let Some(moved) = replace(graph, &roots, last, &place, Some(inside))? else { return Ok(None) };
                moved.into()
            }
            _ => roots,
        };
        let roots = substitute(graph, &roots, &map)?;
        let place = graph.add(Op::Index, &[self.buffer, roots[0]], Arg::None)?;
        let gate = both(graph, roots.get(2).copied(), inside)?;
        let sources: SmallVec<[NodeId; 3]> = [place, roots[1]].into_iter().chain(gate).collect();
        let update = graph.add(Op::AtomicAdd, &sources, Arg::None)?;
        closed(graph, update, &loops).map(Some)
    }

    /// The range that threads share, and in how many parts: rows of their own, or else parts of a row.
    fn shared(&self, graph: &Graph, threads: usize) -> Option<(NodeId, i64)> {
        /// Elements of a row that are worth a walk over all numbers.
        const ROW: i64 = 64;
        let threads = threads as i64;
        // Parts have sizes that are numbers.
        if self.ranges.iter().any(|&range| live::trips(graph, range).is_none()) {
            return None;
        }
        let others = self.ranges.iter().enumerate().filter(|&(place, _)| place != self.place).map(|(_, &range)| range);
        let others: SmallVec<[(NodeId, i64); 4]> =
            others.filter_map(|range| Some((range, live::trips(graph, range)?))).collect();
        let (&(last, row), rows) = others.split_last()?;
        let before = |&&(range, trips): &&(NodeId, i64)| {
            trips >= threads && self.ranges.iter().position(|&r| r == range) < Some(self.place)
        };
        if let Some(&(range, trips)) = rows.iter().filter(before).max_by_key(|other| other.1) {
            return Some((range, trips));
        }
        if self.place == self.ranges.len() - 1 {
            // Each row has numbers of its own.
            return (row >= threads && threads > 1).then_some((last, row));
        }
        (threads > 1 && row % threads == 0 && row / threads >= ROW).then_some((last, threads))
    }

    /// Ranges of another nest: those that threads share are parts of theirs.
    fn copies(
        &self,
        graph: &mut Graph,
        common: &FxHashMap<NodeId, (NodeId, i64)>,
        ranges: &[NodeId],
    ) -> Result<(FxHashMap<NodeId, NodeId>, Vec<NodeId>)> {
        let (mut map, mut loops) = (FxHashMap::default(), Vec::new());
        for &range in ranges {
            let kind = if self.reduced.contains(&range) { AxisType::Loop } else { AxisType::Global };
            let new = match common.get(&range) {
                Some(&(start, 1)) => start,
                Some(&(start, length)) => {
                    let inner = new_range(graph, length, kind)?;
                    loops.push(inner);
                    graph.alu(Op::Add, &[start, inner])?
                }
                None => {
                    let new = graph.range(graph.source(range, 0), live::next_range_id(graph, graph.nodes()), kind)?;
                    loops.push(new);
                    new
                }
            };
            map.insert(range, new);
        }
        Ok((map, loops))
    }
}

fn new_range(graph: &mut Graph, trips: i64, axis: AxisType) -> Result<NodeId> {
    let (trips, id) = (graph.index(trips), live::next_range_id(graph, graph.nodes()));
    graph.range(trips, id, axis)
}
