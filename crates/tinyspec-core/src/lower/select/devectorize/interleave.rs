//! Interleaved accesses, as of an array of structures: memory holds the first lane of each of several vectors, then the second of
//! each. Whole vectors are loaded and stored; shuffles interleave and deinterleave them.

use super::access::{store, undecided};
use super::address::Address;
use super::gate::Lane;
use super::shift::Read;
use super::stride::MAX_STRIDE;
use super::transpose::Run;
use super::{Cut, gathered, lanes, splat};
use crate::lower::select::tile::{Dims, Layout};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// Vectors, or gates, each with a lane.
type Lanes = SmallVec<[(NodeId, i64); 16]>;

impl Cut {
    /// The run of adjacent elements that are interleaved: as many as the stride between lanes.
    pub(super) fn interleaves(&self, sum: &Affine, layout: &Layout) -> Option<Run> {
        let run = self.across(sum, layout).filter(|run| run.length <= MAX_STRIDE.min(layout.width))?;
        (self.step(sum, layout.lane?) == run.length).then_some(run)
    }

    /// Stores of an interleaved tile; `None` for any other.
    pub(super) fn store_interleaved(
        &mut self,
        graph: &mut Graph,
        (buffer, sum): (NodeId, &Affine),
        layout: &Layout,
        (value, gate): (NodeId, Option<NodeId>),
        arg: &Arg,
    ) -> Result<Option<Vec<NodeId>>> {
        let Some(run) = self.interleaves(sum, layout) else { return Ok(None) };
        let mut effects = Vec::new();
        for start in layout.starts().into_iter().filter(|start| run.starts_at(start)) {
            let Address { base, .. } = self.address(graph, sum, layout, &start)?;
            let mut rows = Vec::with_capacity(run.length as usize);
            for place in 0..run.length {
                let part = self.part(graph, value, layout, &run.at(&start, place))?;
                rows.push(splat(graph, part, layout.width)?);
            }
            for (first, value) in (0..).step_by(layout.width as usize).zip(interleaved(graph, rows)?) {
                let gate = match gate {
                    Some(gate) => self.interleaved_gate(graph, gate, (&run, layout), (&start, first))?,
                    None => None,
                };
                let Some(gate) = undecided(graph, gate) else { continue };
                let target = self.contiguous(graph, buffer, &base.offset(first), layout.width)?;
                effects.push(store(graph, Op::Store, target, value, gate, arg.clone())?);
            }
        }
        Ok(Some(effects))
    }

    /// The vectors of a load whose tile is interleaved; `None` for other loads.
    pub(super) fn load_interleaved(&mut self, graph: &mut Graph, read: Read<'_>) -> Result<Option<Vec<NodeId>>> {
        let Read { buffer, index: sum, layout, gated, arg } = read;
        let run = self.interleaves(sum, layout);
        let Some(run) = run.filter(|_| gated.is_none_or(|(alt, _)| graph.as_const(alt).is_some())) else {
            return Ok(None);
        };
        let mut blocks: FxHashMap<Dims, Vec<NodeId>> = FxHashMap::default();
        let mut parts = Vec::with_capacity(layout.count());
        for at in layout.starts() {
            let start = run.start(&at);
            if !blocks.contains_key(&start) {
                let Address { base, .. } = self.address(graph, sum, layout, &start)?;
                let mut vectors = Vec::with_capacity(run.length as usize);
                for first in (0..run.length).map(|vector| vector * layout.width) {
                    let place = self.contiguous(graph, buffer, &base.offset(first), layout.width)?;
                    let mut operands: SmallVec<[NodeId; 3]> = SmallVec::from_iter([place]);
                    if let Some((alt, gate)) = gated
                        && let Some(gate) = self.interleaved_gate(graph, gate, (&run, layout), (&start, first))?
                        && graph.as_int(gate) != Some(1)
                    {
                        operands.extend([splat(graph, alt, layout.width)?, gate]);
                    }
                    vectors.push(graph.add(Op::Load, &operands, arg.clone())?);
                }
                blocks.insert(start.clone(), vectors);
            }
            let Some(vectors) = blocks.get(&start) else { return Ok(None) };
            parts.push(deinterleaved(graph, vectors, run.place(&at) as usize)?);
        }
        Ok(Some(parts))
    }

    /// The gate of one vector in memory order, which starts at element `first`; `None` if all of its lanes are open.
    fn interleaved_gate(
        &mut self,
        graph: &mut Graph,
        gate: NodeId,
        (run, layout): (&Run, &Layout),
        (start, first): (&[i64], i64),
    ) -> Result<Option<NodeId>> {
        let places = (first..first + layout.width).map(|place| {
            let mut at = run.at(start, place % run.length);
            layout.lane.into_iter().for_each(|lane| at[lane] += place / run.length);
            at
        });
        let places: SmallVec<[Dims; 16]> = places.collect();
        // Repeating the comparison for these lanes is cheaper than interleaving masks.
        if let Some(lanes) = places.iter().map(|at| self.lane_of(graph, gate, at)).collect::<Option<Vec<Lane>>>() {
            return self.gate_of_lanes(graph, &lanes);
        }
        let lanes = places.iter().map(|at| self.element(graph, gate, at));
        let lanes: Lanes = lanes.collect::<Result<_>>()?;
        gathered(graph, &lanes).map(Some)
    }
}

/// Interleaves vectors. An even count is halved: the even-numbered and the odd-numbered vectors are interleaved separately first.
fn interleaved(graph: &mut Graph, vectors: Vec<NodeId>) -> Result<Vec<NodeId>> {
    let count = vectors.len();
    if count < 2 {
        return Ok(vectors);
    }
    let Some(width) = vectors.first().map(|&vector| lanes(graph, vector)) else { return Ok(vectors) };
    let in_turn = |graph: &mut Graph, vectors: &[NodeId], places: std::ops::Range<i64>| {
        let lane = |place: i64| (vectors[place as usize % vectors.len()], place / vectors.len() as i64);
        let picked: Lanes = places.map(lane).collect();
        gathered(graph, &picked)
    };
    let mut all = Vec::with_capacity(count);
    if count % 2 == 1 {
        for first in (0..count as i64).map(|vector| vector * width) {
            all.push(in_turn(graph, &vectors, first..first + width)?);
        }
        return Ok(all);
    }
    let every = |first: usize| vectors.iter().copied().skip(first).step_by(2).collect();
    let (even, odd) = (interleaved(graph, every(0))?, interleaved(graph, every(1))?);
    for (a, b) in even.into_iter().zip(odd) {
        for first in [0, width] {
            all.push(in_turn(graph, &[a, b], first..first + width)?);
        }
    }
    Ok(all)
}

/// Deinterleaves one vector, the one with this number. An even count is halved: the even or the odd lanes are extracted first.
pub(super) fn deinterleaved(graph: &mut Graph, vectors: &[NodeId], number: usize) -> Result<NodeId> {
    let mut every = |vectors: &[NodeId], first: usize| {
        let width = vectors.first().map_or(1, |&vector| lanes(graph, vector));
        let places = (0..width).map(|lane| lane * vectors.len() as i64 + first as i64);
        let picked: Lanes = places.map(|place| (vectors[(place / width) as usize], place % width)).collect();
        gathered(graph, &picked)
    };
    if vectors.len() % 2 == 1 || vectors.len() == 2 {
        return every(vectors, number);
    }
    let half =
        vectors.chunks_exact(2).map(|pair| every(pair, number % 2)).collect::<Result<SmallVec<[NodeId; 4]>>>()?;
    deinterleaved(graph, &half, number / 2)
}
