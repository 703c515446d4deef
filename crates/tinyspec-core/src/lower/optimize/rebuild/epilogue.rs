//! Epilogue fission: the sums of a register tile go through LOCAL memory, a store and a load a vector, and a loop over the tile's
//! rows computes what follows from them, so that its instructions are emitted once.

use super::element;
use crate::lower::fold::{both, conjuncts};
use crate::lower::live::{self, Live};
use crate::lower::loops::{closed, grouped};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, Dim, Graph, NodeId, Op, Result};

/// The kernel with a loop over the rows of its tile behind that of its sums; as it is where the epilogue reads other LOCAL memory.
/// All stores are contiguous along `lane`.
pub(super) fn by_rows(graph: &mut Graph, sink: NodeId, first_slot: u32, axes: (NodeId, NodeId)) -> Result<NodeId> {
    match Epilogue::of(graph, sink, axes)? {
        Some(epilogue) => epilogue.build(graph, first_slot),
        None => Ok(sink),
    }
}

struct Epilogue {
    /// What the loops are around.
    body: NodeId,
    /// Loops around the tile, outer ones first.
    outer: SmallVec<[NodeId; 4]>,
    /// The Range over the tile's rows.
    row: NodeId,
    /// The other Ranges of the tile; vectors lie along the last, which all stores are contiguous in.
    columns: SmallVec<[NodeId; 2]>,
    /// Sums that are another one in each row, with those Ranges of the tile that they depend on.
    sums: Vec<(NodeId, SmallVec<[NodeId; 4]>)>,
    /// Nodes from the sums to the stores that are another one for each element of the tile, sources first.
    nodes: Vec<NodeId>,
    /// Where a row is stored at all.
    gate: Option<NodeId>,
}

impl Epilogue {
    fn of(graph: &mut Graph, sink: NodeId, (row, lane): (NodeId, NodeId)) -> Result<Option<Epilogue>> {
        let &[mut body] = graph.sources(sink) else { return Ok(None) };
        let (mut outer, mut tile) = (SmallVec::<[NodeId; 4]>::new(), SmallVec::<[NodeId; 2]>::new());
        while graph.op(body) == Op::End {
            let range = graph.source(body, 1);
            match graph.arg(range) {
                Arg::Range { axis: AxisType::Upcast, .. } => tile.push(range),
                Arg::Range { axis: AxisType::Loop | AxisType::Global, .. } => outer.push(range),
                _ => return Ok(None),
            }
            body = graph.source(body, 0);
        }
        tile.sort_unstable();
        tile.retain(|range| ![row, lane].contains(range));
        tile.push(lane);
        let order = graph.reachable(&[body]);
        let live = Live::new(graph, &order)?;
        let is_changing = |node: NodeId| live.of(node) & live.bit(row) != 0;
        let lanes = tile.iter().fold(0, |set, &range| set | live.bit(range));
        let mut needed = vec![false; body.index() + 1];
        needed[body.index()] = true;
        let (mut sums, mut nodes) = (Vec::new(), Vec::new());
        for &node in order.iter().rev() {
            if !needed[node.index()] {
                continue;
            }
            match graph.op(node) {
                Op::Reduce if is_changing(node) => {
                    let of_tile = tile.iter().copied().filter(|range| live.of(node) & live.bit(*range) != 0);
                    sums.push((node, std::iter::once(row).chain(of_tile).collect()));
                    continue;
                }
                Op::Reduce if live.of(node) & lanes != 0 => return Ok(None),
                Op::After | Op::Buffer | Op::AtomicAdd | Op::Custom => return Ok(None),
                _ => {}
            }
            graph.sources(node).iter().for_each(|source| needed[source.index()] = true);
            if (is_changing(node) || live.of(node) & lanes != 0) && graph.op(node) != Op::Range {
                nodes.push(node);
            }
        }
        if sums.is_empty() {
            return Ok(None);
        }
        nodes.reverse();
        sums.reverse();
        // The rest of the row asks again: of a sum that was not stored, that would be whatever lies in its place.
        let is_of_sums = |graph: &Graph, part| {
            graph.reachable(&[part]).into_iter().any(|node| sums.iter().any(|(sum, _)| *sum == node))
        };
        let gate = common_gate(graph, body, |graph, part| live.of(part) & lanes == 0 && !is_of_sums(graph, part))?;
        Ok(Some(Epilogue { body, outer, row, columns: tile, sums, nodes, gate }))
    }

    fn build(self, graph: &mut Graph, first_slot: u32) -> Result<NodeId> {
        let mut stores = SmallVec::<[NodeId; 2]>::new();
        let mut places = SmallVec::<[NodeId; 2]>::new();
        for (slot, (sum, ranges)) in (first_slot..).zip(&self.sums) {
            let trips = ranges.iter().map(|&range| live::trips(graph, range).unwrap_or(1));
            let length = graph.shape(&[Dim::from(trips.product::<i64>())])?;
            let arg = Arg::Buffer { slot, dtype: graph.dtype(*sum), device: None, addrspace: AddrSpace::Local };
            let buffer = graph.add(Op::Buffer, &[length], arg)?;
            // Another one in each trip of the loops around.
            let place: SmallVec<[NodeId; 5]> = std::iter::once(buffer).chain(self.outer.iter().copied()).collect();
            let place = if place.len() > 1 { graph.add(Op::After, &place, Arg::None)? } else { buffer };
            places.push(place);
            let index = index(graph, place, ranges)?;
            let sources: SmallVec<[NodeId; 3]> = [index, *sum].into_iter().chain(self.gate).collect();
            stores.push(graph.add(Op::Store, &sources, Arg::None)?);
        }
        let tile: SmallVec<[NodeId; 4]> = std::iter::once(self.row).chain(self.columns.iter().copied()).collect();
        let stored = grouped(graph, &stores)?;
        let stored = closed(graph, stored, &tile)?;
        // Ranges of their own, as those of the tile are closed.
        let (mut new, mut loops) = (FxHashMap::default(), self.outer.clone());
        for &range in &tile {
            let kind = if range == self.row { AxisType::Loop } else { AxisType::Upcast };
            let again = graph.range(graph.source(range, 0), live::next_range_id(graph, graph.nodes()), kind)?;
            new.insert(range, again);
            loops.push(again);
        }
        for ((sum, ranges), &place) in self.sums.iter().zip(&places) {
            let filled = graph.add(Op::After, &[place, stored], Arg::None)?;
            let ranges: SmallVec<[NodeId; 4]> = ranges.iter().map(|range| new[range]).collect();
            let index = index(graph, filled, &ranges)?;
            let load = Arg::Load { device: None, addrspace: AddrSpace::Reg };
            new.insert(*sum, graph.add(Op::Load, &[index], load)?);
        }
        for &node in &self.nodes {
            let sources: SmallVec<[NodeId; 4]> =
                graph.sources(node).iter().map(|source| new.get(source).copied().unwrap_or(*source)).collect();
            let arg = graph.arg(node).clone();
            new.insert(node, graph.add(graph.op(node), &sources, arg)?);
        }
        let body = new.get(&self.body).copied().unwrap_or(self.body);
        let effect = closed(graph, body, &loops)?;
        graph.add(Op::Sink, &[effect], Arg::None)
    }
}

/// A place in a buffer by Ranges, the last of which counts single elements.
fn index(graph: &mut Graph, buffer: NodeId, ranges: &[NodeId]) -> Result<NodeId> {
    let places: SmallVec<[(NodeId, i64); 4]> =
        ranges.iter().map(|&range| (range, live::trips(graph, range).unwrap_or(1))).collect();
    element(graph, buffer, &places)
}

/// The effects of a body.
fn effects(graph: &Graph, body: NodeId) -> SmallVec<[NodeId; 4]> {
    match graph.op(body) {
        Op::Group => graph.sources(body).into(),
        _ => SmallVec::from_iter([body]),
    }
}

/// The conditions, among those that `is_of_rows`, that all stores have: nobody sees the other rows' sums.
fn common_gate(graph: &mut Graph, body: NodeId, is_of_rows: impl Fn(&Graph, NodeId) -> bool) -> Result<Option<NodeId>> {
    let stores = effects(graph, body);
    let conditions = |graph: &Graph, store: NodeId| -> SmallVec<[NodeId; 4]> {
        let gate = graph.sources(store).get(2);
        gate.map_or(SmallVec::new(), |&gate| conjuncts(graph, gate))
            .into_iter()
            .filter(|&part| is_of_rows(graph, part))
            .collect()
    };
    let Some((&first, others)) = stores.split_first() else { return Ok(None) };
    let mut common = conditions(graph, first);
    for &store in others {
        let own = conditions(graph, store);
        common.retain(|part| own.contains(part));
    }
    common.into_iter().try_fold(None, |all, part| both(graph, all, Some(part)))
}
