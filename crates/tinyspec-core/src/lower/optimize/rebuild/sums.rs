//! Sums in LOCAL memory (Halide's `compute_at` for Reduces): the loops of the Reduces leave all results of a block there, and separate
//! loops compute the values that depend on them. Two schedules need this:
//!
//! * A loop over terms around loops over results (reduction interchange) adds a few terms to every result in each trip. When columns of
//!   a matrix are summed, this reads its rows from end to end, giving sequential access.
//! * Epilogue fission: a loop over the rows of a register tile computes what follows from its sums, so that these instructions are
//!   emitted once, not once a row.

use crate::lower::fold::{self, both, conjuncts};
use crate::lower::live::{self, Live, next_range_id};
use crate::lower::loops::{closed, grouped};
use crate::lower::optimize::kernel::Nest;
use crate::lower::optimize::local::Local;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::rewrite::{substitute, transform};
use tinyspec_ir::{Arg, AxisType, Builder, Graph, NodeId, Op, Result};

/// The kernel with its sums in LOCAL memory, if a loop over terms is around one over results, or if `tile` asks for a loop over the rows
/// of the register tile. Unchanged where that is not regular, or where other LOCAL memory is in the way.
pub(super) fn stage(
    graph: &mut Graph,
    sink: NodeId,
    axes: &[NodeId],
    tile: Option<(NodeId, NodeId)>,
    first_slot: u32,
) -> Result<NodeId> {
    let &[root] = graph.sources(sink) else { return Ok(sink) };
    let nest = Nest::of(graph, root);
    let sums = match tile {
        Some(tile) => Sums::of_tile(graph, nest, tile)?,
        None => Sums::interchanged(graph, nest, axes),
    };
    let Some(mut sums) = sums else { return Ok(sink) };
    for (sum, slot) in sums.reduces.iter_mut().zip(first_slot..) {
        let length = sum.results.iter().map(|&range| trips(graph, range)).product();
        let local = Local::new(graph, slot, graph.dtype(sum.node), length)?;
        sum.local = Some(local.after(graph, sums.outer.iter().copied())?);
    }
    let filled = match sums.terms.is_empty() {
        true => sums.store(graph)?,
        false => {
            let started = sums.start(graph)?;
            sums.add(graph, started)?
        }
    };
    sums.finish(graph, filled, tile.map(|(row, _)| row))
}

/// The Reduces of a nest whose results go through LOCAL memory.
struct Sums {
    /// The body of the loops.
    body: NodeId,
    /// Loops around all, outer ones first.
    outer: Vec<NodeId>,
    /// The Ranges over results inside of those, outer ones first; vectors lie along the last.
    results: Vec<NodeId>,
    /// The same with the loops over terms that are around some of them; empty where none is.
    terms: Vec<NodeId>,
    reduces: Vec<Sum>,
    /// The condition under which results are used at all.
    gate: Option<NodeId>,
}

struct Sum {
    node: NodeId,
    /// The Ranges over results that it depends on.
    results: Vec<NodeId>,
    local: Option<Local>,
}

impl Sum {
    /// The position of a result in the buffer, with the Ranges in `map` replaced.
    fn index(&self, graph: &Graph, map: &FxHashMap<NodeId, NodeId>) -> Affine {
        let (mut index, mut stride) = (Affine::number(0), 1);
        for &range in self.results.iter().rev() {
            let position = Affine::leaf(graph, *map.get(&range).unwrap_or(&range));
            index = index.plus(&position.scale(stride));
            stride *= trips(graph, range);
        }
        index
    }
}

impl Sums {
    /// The sums of a register tile that has rows, and a lane that all stores are contiguous along.
    fn of_tile(graph: &mut Graph, nest: Nest, (row, lane): (NodeId, NodeId)) -> Result<Option<Sums>> {
        let (mut outer, mut columns) = (Vec::new(), Vec::new());
        for &range in &nest.ranges {
            match graph.arg(range) {
                Arg::Range { axis: AxisType::Upcast, .. } => columns.push(range),
                Arg::Range { axis, .. } if *axis == AxisType::Loop || axis.is_parallel() => outer.push(range),
                _ => return Ok(None),
            }
        }
        columns.sort_unstable();
        columns.retain(|range| ![row, lane].contains(range));
        columns.push(lane);
        let order = graph.reachable(&[nest.body]);
        let live = Live::new(graph, &order)?;
        let lanes = columns.iter().fold(0, |set, &range| set | live.bit(range));
        let mut needed = vec![false; nest.body.index() + 1];
        needed[nest.body.index()] = true;
        let mut reduces = Vec::new();
        for &node in order.iter().rev() {
            if !needed[node.index()] {
                continue;
            }
            match graph.op(node) {
                Op::Reduce if live.of(node) & live.bit(row) != 0 => {
                    let own = columns.iter().copied().filter(|&range| live.of(node) & live.bit(range) != 0);
                    reduces.push(Sum { node, results: std::iter::once(row).chain(own).collect(), local: None });
                    continue;
                }
                Op::Reduce if live.of(node) & lanes != 0 => return Ok(None),
                Op::After | Op::Buffer | Op::AtomicAdd | Op::Custom => return Ok(None),
                _ => {}
            }
            graph.sources(node).iter().for_each(|source| needed[source.index()] = true);
        }
        if reduces.is_empty() {
            return Ok(None);
        }
        reduces.reverse();
        // The loop over rows evaluates the gate again, but a sum that was not stored has no value there.
        let is_of_sums = |graph: &Graph, part| {
            graph.reachable(&[part]).into_iter().any(|node| reduces.iter().any(|sum| sum.node == node))
        };
        let gate = common_gate(graph, nest.body, |graph, part| live.of(part) & lanes == 0 && !is_of_sums(graph, part))?;
        let results = std::iter::once(row).chain(columns).collect();
        Ok(Some(Sums { body: nest.body, outer, results, terms: Vec::new(), reduces, gate }))
    }

    /// All sums, where the order of the axes has a loop over their terms around one over results.
    fn interchanged(graph: &Graph, nest: Nest, axes: &[NodeId]) -> Option<Sums> {
        let is = |range: &NodeId, kind: AxisType| matches!(graph.arg(*range), Arg::Range { axis, .. } if *axis == kind);
        let last = axes.iter().rposition(|range| is(range, AxisType::Loop))?;
        let first = axes[..last].iter().position(|range| is(range, AxisType::Reduce))?;
        // Terms of a trip are added up before; vectors of results lie along the tile, so it is innermost.
        let is_loop = |range: &&NodeId| is_loop(graph, range);
        let outer: Vec<NodeId> = axes[..first].iter().filter(is_loop).copied().collect();
        let inner: Vec<NodeId> = axes[first..=last].iter().filter(is_loop).copied().collect();
        let tile: Vec<NodeId> = axes.iter().filter(|range| is(range, AxisType::Upcast)).copied().collect();
        let around: Vec<NodeId> = inner.iter().copied().filter(|range| is(range, AxisType::Reduce)).collect();
        let terms: Vec<NodeId> = inner.into_iter().chain(tile).collect();
        let results: Vec<NodeId> = terms.iter().copied().filter(|range| !around.contains(range)).collect();
        let is_serial = |range: &NodeId| is(range, AxisType::Loop) || is(range, AxisType::Upcast);
        let is_around =
            |range: &NodeId| is(range, AxisType::Loop) || is(range, AxisType::Global) || is(range, AxisType::Thread);
        let all = outer.len() + results.len();
        if !results.iter().all(is_serial) || !outer.iter().all(is_around) || nest.ranges.len() != all {
            return None;
        }
        let order = graph.reachable(&[nest.body]);
        if order.iter().any(|&node| matches!(graph.op(node), Op::Buffer | Op::After | Op::End)) {
            return None;
        }
        let reduces: Vec<NodeId> = order.iter().copied().filter(|&node| graph.op(node) == Op::Reduce).collect();
        let values: Vec<NodeId> = reduces.iter().map(|&reduce| graph.source(reduce, 0)).collect();
        let is_nested = graph.reachable(&values).iter().any(|&node| graph.op(node) == Op::Reduce);
        let is_alike = |&reduce: &NodeId| {
            let Arg::Reduce { op, .. } = *graph.arg(reduce) else { return false };
            let dtype = graph.dtype(reduce);
            dtype.accumulator_of(op) == dtype && around.iter().all(|range| graph.sources(reduce)[1..].contains(range))
        };
        let lengths = results.iter().map(|&range| live::trips(graph, range));
        let length = lengths.into_iter().try_fold(1i64, |all, trips| all.checked_mul(trips?));
        if reduces.is_empty() || is_nested || length.is_none() || !reduces.iter().all(is_alike) {
            return None;
        }
        let sum = |node| Sum { node, results: results.clone(), local: None };
        let reduces = reduces.into_iter().map(sum).collect();
        Some(Sums { body: nest.body, outer, results, terms, reduces, gate: None })
    }

    /// The Reduces, each with its buffer.
    fn buffers(&self) -> impl Iterator<Item = (&Sum, Local)> {
        self.reduces.iter().filter_map(|sum| Some((sum, sum.local?)))
    }

    /// Stores the sums of a tile.
    fn store(&self, graph: &mut Graph) -> Result<NodeId> {
        let mut stores: SmallVec<[NodeId; 2]> = SmallVec::new();
        for (sum, local) in self.buffers() {
            let index = sum.index(graph, &FxHashMap::default());
            stores.push(local.store(graph, &index, sum.node, self.gate)?);
        }
        let stores = grouped(graph, &stores)?;
        closed(graph, stores, &self.results)
    }

    /// Every sum begins with nothing.
    fn start(&self, graph: &mut Graph) -> Result<NodeId> {
        let (map, loops) = again(graph, &self.results, None)?;
        let mut stores: SmallVec<[NodeId; 2]> = SmallVec::new();
        for (sum, local) in self.buffers() {
            let Arg::Reduce { op, .. } = *graph.arg(sum.node) else { continue };
            let nothing = fold::identity(graph, op, graph.dtype(sum.node));
            let index = sum.index(graph, &map);
            stores.push(local.store(graph, &index, nothing, None)?);
        }
        let stores = grouped(graph, &stores)?;
        closed(graph, stores, &loops)
    }

    /// Adds the terms, in the order of the axes. Where the last trip along a row goes beyond its end, it is peeled, and the trips before
    /// have no gates.
    fn add(&self, graph: &mut Graph, started: NodeId) -> Result<NodeId> {
        let along = self.terms.iter().rposition(|range| is_loop(graph, range)).unwrap_or(0);
        let (around, inside) = self.terms.split_at(along);
        let (map, loops) = again(graph, around, None)?;
        let trips = live::trips(graph, inside[0]).filter(|&trips| trips > 1);
        let before = graph.index(trips.unwrap_or(1) - 1);
        let column = graph.range(before, next_range_id(graph, graph.nodes()), AxisType::Loop)?;
        let mut whole = map.clone();
        whole.insert(inside[0], column);
        if trips.is_none() || !self.opens(graph, inside[0], column, &whole)? {
            let effect = self.add_along(graph, started, map, &loops, inside)?;
            return closed(graph, effect, &loops);
        }
        let trips: SmallVec<[NodeId; 4]> = loops.iter().copied().chain([column]).collect();
        let whole = self.add_along(graph, started, whole, &trips, &inside[1..])?;
        let whole = closed(graph, whole, &[column])?;
        let mut rest = map;
        rest.insert(inside[0], before);
        let rest = self.add_along(graph, whole, rest, &loops, &inside[1..])?;
        let both = grouped(graph, &[whole, rest])?;
        closed(graph, both, &loops)
    }

    /// Whether gates of the terms depend on this range, but not on the shorter one that replaces it in `map`.
    fn opens(
        &self,
        graph: &mut Graph,
        range: NodeId,
        shorter: NodeId,
        map: &FxHashMap<NodeId, NodeId>,
    ) -> Result<bool> {
        let is_gated = |graph: &Graph, terms: &[NodeId], range: NodeId| {
            let loads = graph.reachable(terms).into_iter().filter(|&node| graph.op(node) == Op::Load);
            let gates: Vec<NodeId> = loads.filter_map(|load| graph.sources(load).get(2).copied()).collect();
            graph.reachable(&gates).contains(&range)
        };
        // A loop within the term would be one loop in two places.
        let is_inner_loop = |range: &NodeId| !self.terms.contains(range) && is_loop(graph, range);
        let reduces: SmallVec<[NodeId; 2]> = self.reduces.iter().map(|sum| sum.node).collect();
        let has_loop = reduces.iter().any(|&reduce| graph.sources(reduce)[1..].iter().any(is_inner_loop));
        if has_loop || !is_gated(graph, &reduces, range) {
            return Ok(false);
        }
        for reduce in reduces {
            let term = without_open_gates(graph, graph.source(reduce, 0), map)?;
            if is_gated(graph, &[term], shorter) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds the terms of some axes, within loops whose Ranges are in `map`.
    fn add_along(
        &self,
        graph: &mut Graph,
        started: NodeId,
        mut map: FxHashMap<NodeId, NodeId>,
        around: &[NodeId],
        axes: &[NodeId],
    ) -> Result<NodeId> {
        let (own, loops) = again(graph, axes, None)?;
        map.extend(own);
        let mut stores: SmallVec<[NodeId; 2]> = SmallVec::new();
        for (sum, local) in self.buffers() {
            let Arg::Reduce { op, .. } = *graph.arg(sum.node) else { continue };
            let mut term = SmallVec::<[NodeId; 4]>::from_slice(graph.sources(sum.node));
            term.retain(|range| !self.terms.contains(range));
            let term = match term[..] {
                [value] => value,
                _ => graph.add(Op::Reduce, &term, graph.arg(sum.node).clone())?,
            };
            let term = without_open_gates(graph, term, &map)?;
            // Read anew in every trip.
            let trips = around.iter().chain(&loops).copied().filter(|range| is_loop(graph, range));
            let trips: Vec<NodeId> = std::iter::once(started).chain(trips).collect();
            let local = local.after(graph, trips)?;
            let index = sum.index(graph, &map);
            let before = local.load(graph, &index)?;
            let after = graph.alu(op, &[before, term])?;
            stores.push(local.store(graph, &index, after, None)?);
        }
        let stores = grouped(graph, &stores)?;
        closed(graph, stores, &loops)
    }

    /// Computes the epilogue of the sums in separate loops; `row` becomes a loop.
    fn finish(&self, graph: &mut Graph, filled: NodeId, row: Option<NodeId>) -> Result<NodeId> {
        let (mut map, loops) = again(graph, &self.results, row)?;
        for (sum, local) in self.buffers() {
            let index = sum.index(graph, &map);
            let total = local.after(graph, [filled])?.load(graph, &index)?;
            map.insert(sum.node, total);
        }
        let body = substitute(graph, &[self.body], &map)?[0];
        let effect = closed(graph, body, &loops)?;
        let effect = closed(graph, effect, &self.outer)?;
        graph.add(Op::Sink, &[effect], Arg::None)
    }
}

/// Serial Ranges in place of others, and which replaces which; tiles stay tiles, except `row`. Nothing is reduced over them.
fn again(
    graph: &mut Graph,
    ranges: &[NodeId],
    row: Option<NodeId>,
) -> Result<(FxHashMap<NodeId, NodeId>, Vec<NodeId>)> {
    let (mut map, mut new) = (FxHashMap::default(), Vec::new());
    for &range in ranges {
        let kind = match graph.arg(range) {
            Arg::Range { axis: AxisType::Upcast, .. } if row != Some(range) => AxisType::Upcast,
            _ => AxisType::Loop,
        };
        let again = graph.range(graph.source(range, 0), next_range_id(graph, graph.nodes()), kind)?;
        map.insert(range, again);
        new.push(again);
    }
    Ok((map, new))
}

fn trips(graph: &Graph, range: NodeId) -> i64 {
    live::trips(graph, range).unwrap_or(1)
}

/// Whether the axis is walked by a loop, not in the tile.
fn is_loop(graph: &Graph, range: &NodeId) -> bool {
    !matches!(graph.arg(*range), Arg::Range { axis: AxisType::Upcast | AxisType::Unroll, .. })
}

/// The conditions, among those that `is_of_rows`, that all stores have: the sums of other rows are never observed.
fn common_gate(graph: &mut Graph, body: NodeId, is_of_rows: impl Fn(&Graph, NodeId) -> bool) -> Result<Option<NodeId>> {
    let stores: SmallVec<[NodeId; 4]> = match graph.op(body) {
        Op::Group => graph.sources(body).into(),
        _ => SmallVec::from_iter([body]),
    };
    let conditions = |graph: &Graph, store: NodeId| -> SmallVec<[NodeId; 4]> {
        let gate = graph.sources(store).get(2);
        let parts = gate.map_or(SmallVec::new(), |&gate| conjuncts(graph, gate));
        parts.into_iter().filter(|&part| is_of_rows(graph, part)).collect()
    };
    let Some((&first, others)) = stores.split_first() else { return Ok(None) };
    let mut common = conditions(graph, first);
    for &store in others {
        let own = conditions(graph, store);
        common.retain(|part| own.contains(part));
    }
    common.into_iter().try_fold(None, |all, part| both(graph, all, Some(part)))
}

/// A term with other Ranges; of a Load whose gate they always open nothing is left but the Load.
fn without_open_gates(graph: &mut Graph, term: NodeId, map: &FxHashMap<NodeId, NodeId>) -> Result<NodeId> {
    let term = transform(graph, &[term], |graph, old, new| {
        if let Some(&other) = map.get(&old) {
            return Ok(other);
        }
        let sources: SmallVec<[NodeId; 4]> = graph.sources(new).into();
        match graph.op(new) {
            Op::CmpLt | Op::And => fold::elementwise(graph, graph.op(new), &sources, graph.arg(new).clone()),
            Op::Load if sources.get(2).is_some_and(|&gate| graph.as_int(gate) == Some(1)) => {
                graph.add(Op::Load, &sources[..1], graph.arg(new).clone())
            }
            _ => Ok(new),
        }
    })?;
    Ok(term[0])
}
