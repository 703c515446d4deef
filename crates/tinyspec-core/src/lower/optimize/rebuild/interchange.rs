//! Reduction interchange. Where a loop over a Reduce's terms is around loops over its results, each of its trips adds a few terms
//! to every result. When columns of a matrix are summed this reads its rows from end to end, giving sequential access; the
//! partial sums are in LOCAL memory.

use super::element;
use crate::lower::fold;
use crate::lower::live;
use crate::lower::live::next_range_id;
use crate::lower::loops::{closed, grouped};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::rewrite::{substitute, transform};
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, Dim, Graph, NodeId, Op, Result};

/// The kernel over its axes in their order; as it is where that asks for no Reduce around results.
pub(super) fn around(graph: &mut Graph, sink: NodeId, axes: &[NodeId]) -> Result<NodeId> {
    let Some(rows) = Rows::of(graph, sink, axes) else { return Ok(sink) };
    let before = match rows.outer.len() {
        0 => None,
        _ => Some(SmallVec::<[NodeId; 4]>::from_slice(&rows.outer)),
    };
    let mut places: SmallVec<[NodeId; 2]> = SmallVec::new();
    for (slot, &reduce) in rows.reduces.iter().enumerate() {
        let length = graph.shape(&[Dim::from(rows.length)])?;
        let (slot, dtype) = (slot as u32, graph.dtype(reduce));
        let arg = Arg::Buffer { slot, dtype, device: None, addrspace: AddrSpace::Local };
        let buffer = graph.add(Op::Buffer, &[length], arg)?;
        // Another one in each trip of the loops around.
        let place = before.iter().flatten().copied();
        let place: SmallVec<[NodeId; 5]> = std::iter::once(buffer).chain(place).collect();
        places.push(if place.len() > 1 { graph.add(Op::After, &place, Arg::None)? } else { buffer });
    }
    let started = rows.start(graph, &places)?;
    let added = rows.add(graph, &places, started)?;
    rows.finish(graph, &places, added)
}

struct Rows {
    /// What the loops are around.
    body: NodeId,
    /// Loops around all, outer ones first.
    outer: Vec<NodeId>,
    /// The axes of a row, outer ones first.
    results: Vec<NodeId>,
    /// Those, and around some of them loops over terms.
    terms: Vec<NodeId>,
    reduces: Vec<NodeId>,
    /// Elements of a row.
    length: i64,
}

impl Rows {
    fn of(graph: &Graph, sink: NodeId, axes: &[NodeId]) -> Option<Rows> {
        let &[mut body] = graph.sources(sink) else { return None };
        let mut nest = Vec::new();
        while graph.op(body) == Op::End {
            nest.push(graph.source(body, 1));
            body = graph.source(body, 0);
        }
        let is = |range: &NodeId, kind: AxisType| matches!(graph.arg(*range), Arg::Range { axis, .. } if *axis == kind);
        let last = axes.iter().rposition(|range| is(range, AxisType::Loop))?;
        let first = axes[..last].iter().position(|range| is(range, AxisType::Reduce))?;
        // Terms of a trip are added up before; vectors of results lie along the tile, so it is innermost.
        let is_tile = |range: &&NodeId| is(range, AxisType::Upcast);
        let is_loop = |range: &&NodeId| is_loop(graph, range);
        let outer: Vec<NodeId> = axes[..first].iter().filter(is_loop).copied().collect();
        let inner: Vec<NodeId> = axes[first..=last].iter().filter(is_loop).copied().collect();
        let tile: Vec<NodeId> = axes.iter().filter(is_tile).copied().collect();
        let around: Vec<NodeId> = inner.iter().copied().filter(|range| is(range, AxisType::Reduce)).collect();
        let terms: Vec<NodeId> = inner.into_iter().chain(tile).collect();
        let results: Vec<NodeId> = terms.iter().copied().filter(|range| !around.contains(range)).collect();
        let is_serial = |range: &NodeId| is(range, AxisType::Loop) || is(range, AxisType::Upcast);
        let is_around = |range: &NodeId| is(range, AxisType::Loop) || is(range, AxisType::Global);
        let all = outer.len() + results.len();
        if !results.iter().all(is_serial) || !outer.iter().all(is_around) || nest.len() != all {
            return None;
        }
        let order = graph.reachable(&[body]);
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
        if reduces.is_empty() || is_nested || !reduces.iter().all(is_alike) {
            return None;
        }
        let trips = results.iter().map(|&range| live::trips(graph, range));
        let length = trips.into_iter().try_fold(1i64, |all, trips| all.checked_mul(trips?))?;
        Some(Rows { body, outer, results, terms, reduces, length })
    }

    /// Every sum begins with nothing.
    fn start(&self, graph: &mut Graph, places: &[NodeId]) -> Result<NodeId> {
        let (map, loops) = again(graph, &self.results)?;
        let mut stores: SmallVec<[NodeId; 2]> = SmallVec::new();
        for (&reduce, &place) in self.reduces.iter().zip(places) {
            let Arg::Reduce { op, .. } = *graph.arg(reduce) else { continue };
            let place = self.index(graph, place, &map)?;
            let nothing = fold::identity(graph, op, graph.dtype(reduce));
            stores.push(graph.add(Op::Store, &[place, nothing], Arg::None)?);
        }
        let stores = grouped(graph, &stores)?;
        closed(graph, stores, &loops)
    }

    /// Adds the terms, in the order of the axes. Where the last trip along a row goes beyond its end, it stands for itself,
    /// and the trips before have no gates.
    fn add(&self, graph: &mut Graph, places: &[NodeId], started: NodeId) -> Result<NodeId> {
        let along = self.terms.iter().rposition(|range| is_loop(graph, range)).unwrap_or(0);
        let (around, inside) = self.terms.split_at(along);
        let (map, loops) = again(graph, around)?;
        let trips = live::trips(graph, inside[0]).filter(|&trips| trips > 1);
        let before = graph.index(trips.unwrap_or(1) - 1);
        let column = graph.range(before, next_range_id(graph, graph.nodes()), AxisType::Loop)?;
        let mut whole = map.clone();
        whole.insert(inside[0], column);
        if trips.is_none() || !self.opens(graph, inside[0], column, &whole)? {
            let effect = self.add_along(graph, places, started, map, &loops, inside)?;
            return closed(graph, effect, &loops);
        }
        let trips: SmallVec<[NodeId; 4]> = loops.iter().copied().chain([column]).collect();
        let whole = self.add_along(graph, places, started, whole, &trips, &inside[1..])?;
        let whole = closed(graph, whole, &[column])?;
        let mut rest = map;
        rest.insert(inside[0], before);
        let rest = self.add_along(graph, places, whole, rest, &loops, &inside[1..])?;
        let both = grouped(graph, &[whole, rest])?;
        closed(graph, both, &loops)
    }

    /// Does it depend on this range whether a term is there, but not on the shorter one that stands for it in `map`?
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
        let is_loop = |range: &NodeId| !self.terms.contains(range) && is_loop(graph, range);
        let has_loop = self.reduces.iter().any(|&reduce| graph.sources(reduce)[1..].iter().any(is_loop));
        if has_loop || !is_gated(graph, &self.reduces, range) {
            return Ok(false);
        }
        let terms: SmallVec<[NodeId; 2]> = self.reduces.iter().map(|&reduce| graph.source(reduce, 0)).collect();
        for term in terms {
            let term = without_open_gates(graph, term, map)?;
            if is_gated(graph, &[term], shorter) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds the terms of some axes, within loops for which `map` stands.
    fn add_along(
        &self,
        graph: &mut Graph,
        places: &[NodeId],
        started: NodeId,
        mut map: FxHashMap<NodeId, NodeId>,
        around: &[NodeId],
        axes: &[NodeId],
    ) -> Result<NodeId> {
        let (own, loops) = again(graph, axes)?;
        map.extend(own);
        let mut stores: SmallVec<[NodeId; 2]> = SmallVec::new();
        for (&reduce, &place) in self.reduces.iter().zip(places) {
            let Arg::Reduce { op, .. } = *graph.arg(reduce) else { continue };
            let mut term = SmallVec::<[NodeId; 4]>::from_slice(graph.sources(reduce));
            term.retain(|range| !self.terms.contains(range));
            let term = match term[..] {
                [value] => value,
                _ => graph.add(Op::Reduce, &term, graph.arg(reduce).clone())?,
            };
            let term = without_open_gates(graph, term, &map)?;
            // Read anew in every trip.
            let trips = around.iter().chain(&loops).copied().filter(|range| is_loop(graph, range));
            let ready: SmallVec<[NodeId; 8]> = [place, started].into_iter().chain(trips).collect();
            let ready = graph.add(Op::After, &ready, Arg::None)?;
            let place = self.index(graph, ready, &map)?;
            let load = Arg::Load { device: None, addrspace: AddrSpace::Reg };
            let before = graph.add(Op::Load, &[place], load)?;
            let after = graph.alu(op, &[before, term])?;
            stores.push(graph.add(Op::Store, &[place, after], Arg::None)?);
        }
        let stores = grouped(graph, &stores)?;
        closed(graph, stores, &loops)
    }

    /// What is made of the sums.
    fn finish(&self, graph: &mut Graph, places: &[NodeId], added: NodeId) -> Result<NodeId> {
        let (mut map, loops) = again(graph, &self.results)?;
        for (&reduce, &place) in self.reduces.iter().zip(places) {
            let over = graph.add(Op::After, &[place, added], Arg::None)?;
            let place = self.index(graph, over, &map)?;
            let load = Arg::Load { device: None, addrspace: AddrSpace::Reg };
            map.insert(reduce, graph.add(Op::Load, &[place], load)?);
        }
        let body = substitute(graph, &[self.body], &map)?[0];
        let effect = closed(graph, body, &loops)?;
        let effect = closed(graph, effect, &self.outer)?;
        graph.add(Op::Sink, &[effect], Arg::None)
    }

    /// The place of a result in a row of sums.
    fn index(&self, graph: &mut Graph, row: NodeId, map: &FxHashMap<NodeId, NodeId>) -> Result<NodeId> {
        let place = |range: &NodeId| (*map.get(range).unwrap_or(range), live::trips(graph, *range).unwrap_or(1));
        let places: SmallVec<[(NodeId, i64); 4]> = self.results.iter().map(place).collect();
        element(graph, row, &places)
    }
}

/// Ranges like others, and which stands for which. Nobody reduces over them any more.
fn again(graph: &mut Graph, ranges: &[NodeId]) -> Result<(FxHashMap<NodeId, NodeId>, Vec<NodeId>)> {
    let (mut map, mut new) = (FxHashMap::default(), Vec::new());
    for &range in ranges {
        let kind = match graph.arg(range) {
            Arg::Range { axis: AxisType::Upcast, .. } => AxisType::Upcast,
            _ => AxisType::Loop,
        };
        let again = graph.range(graph.source(range, 0), next_range_id(graph, graph.nodes()), kind)?;
        map.insert(range, again);
        new.push(again);
    }
    Ok((map, new))
}

/// Is the axis walked by a loop, not in the tile?
fn is_loop(graph: &Graph, range: &NodeId) -> bool {
    !matches!(graph.arg(*range), Arg::Range { axis: AxisType::Upcast | AxisType::Unroll, .. })
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
