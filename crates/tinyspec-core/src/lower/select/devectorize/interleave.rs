//! Accesses whose vectors step over the places of a few others: what lies in memory is a vector of each in turn.

use super::access::{store, undecided};
use super::address::Address;
use super::transpose::Run;
use super::{Cut, gathered, splat};
use crate::lower::select::tile::{Dims, Layout};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// Vectors, or gates, each with a lane.
type Lanes = SmallVec<[(NodeId, i64); 16]>;

impl Cut {
    /// Places that follow each other, where the lanes step over just so many; a power of two.
    fn in_turn(&self, sum: &Affine, layout: &Layout) -> Option<Run> {
        let run = self.across(sum, layout).filter(|run| run.length <= 4 && run.length.count_ones() == 1)?;
        let along = |atom: &NodeId| layout.lane.is_some() && self.axes.get(atom).copied() == layout.lane;
        let step: i64 = sum.terms().iter().filter(|(atom, _)| along(atom)).map(|term| term.1).sum();
        (step == run.length && layout.width % run.length == 0).then_some(run)
    }

    /// Stores of such a tile; `None` of any other.
    pub(super) fn store_interleaved(
        &mut self,
        graph: &mut Graph,
        (buffer, sum): (NodeId, &Affine),
        layout: &Layout,
        (value, gate): (NodeId, Option<NodeId>),
        arg: &Arg,
    ) -> Result<Option<Vec<NodeId>>> {
        let (Some(run), Some(lane)) = (self.in_turn(sum, layout), layout.lane) else { return Ok(None) };
        let mut effects = Vec::new();
        for start in layout.starts().into_iter().filter(|start| run.starts_at(start)) {
            let mut rows = Vec::with_capacity(run.length as usize);
            for place in 0..run.length {
                let part = self.part(graph, value, layout, &run.at(&start, place))?;
                rows.push(splat(graph, part, layout.width)?);
            }
            for (piece, value) in (0..).zip(interleaved(graph, rows)?) {
                let mut at = start.clone();
                at[lane] += piece * layout.width / run.length;
                let gate = match gate {
                    Some(gate) => Some(self.gate_in_turn(graph, gate, &run, layout, &at)?),
                    None => None,
                };
                let Some(gate) = undecided(graph, gate) else { continue };
                let Address { base, .. } = self.address(graph, sum, layout, &at)?;
                let target = self.contiguous(graph, buffer, &base, layout.width)?;
                effects.push(store(graph, Op::Store, target, value, gate, arg.clone())?);
            }
        }
        Ok(Some(effects))
    }

    /// The parts of a load of pairs; `None` of any other.
    pub(super) fn load_interleaved(
        &mut self,
        graph: &mut Graph,
        (buffer, sum): (NodeId, &Affine),
        layout: &Layout,
        gated: Option<(NodeId, NodeId)>,
        arg: &Arg,
    ) -> Result<Option<Vec<NodeId>>> {
        let (Some(run), Some(lane)) = (self.in_turn(sum, layout), layout.lane) else { return Ok(None) };
        let width = layout.width;
        if run.length != 2 || gated.is_some_and(|(alt, _)| graph.as_const(alt).is_none()) {
            return Ok(None);
        }
        let mut blocks: FxHashMap<Dims, [NodeId; 2]> = FxHashMap::default();
        let mut parts = Vec::with_capacity(layout.count());
        for at in layout.starts() {
            let start = run.start(&at);
            let block = match blocks.get(&start) {
                Some(&block) => block,
                None => {
                    let mut halves = [buffer; 2];
                    for (half, value) in (0..).zip(&mut halves) {
                        let mut at = start.clone();
                        at[lane] += half * width / 2;
                        let Address { base, .. } = self.address(graph, sum, layout, &at)?;
                        let place = self.contiguous(graph, buffer, &base, width)?;
                        let mut operands: SmallVec<[NodeId; 3]> = SmallVec::from_iter([place]);
                        let gate = match gated {
                            Some((_, gate)) => Some(self.gate_in_turn(graph, gate, &run, layout, &at)?),
                            None => None,
                        };
                        let gate = gate.filter(|&gate| graph.as_int(gate) != Some(1));
                        if let (Some((alt, _)), Some(gate)) = (gated, gate) {
                            let alt = splat(graph, alt, width)?;
                            operands.extend([alt, gate]);
                        }
                        *value = graph.add(Op::Load, &operands, arg.clone())?;
                    }
                    let every = |first: i64| -> Lanes {
                        let lanes = (0..width).map(|lane| 2 * lane + first);
                        lanes.map(|lane| (halves[(lane / width) as usize], lane % width)).collect()
                    };
                    let block = [gathered(graph, &every(0))?, gathered(graph, &every(1))?];
                    blocks.insert(start, block);
                    block
                }
            };
            parts.push(block[run.place(&at) as usize % 2]);
        }
        Ok(Some(parts))
    }

    /// The gates of as many places as a vector holds, in the order of memory, from those at `at` on.
    fn gate_in_turn(&self, graph: &mut Graph, gate: NodeId, run: &Run, layout: &Layout, at: &[i64]) -> Result<NodeId> {
        let mut lanes = Lanes::new();
        for element in 0..layout.width {
            let mut at = run.at(at, element % run.length);
            layout.lane.into_iter().for_each(|lane| at[lane] += element / run.length);
            lanes.push(self.element(graph, gate, &at)?);
        }
        gathered(graph, &lanes)
    }
}

/// A lane of each vector in turn: pairs of those of even and of odd number, which come first.
fn interleaved(graph: &mut Graph, vectors: Vec<NodeId>) -> Result<Vec<NodeId>> {
    if vectors.len() < 2 {
        return Ok(vectors);
    }
    let every = |first: usize| vectors.iter().copied().skip(first).step_by(2).collect();
    let (even, odd) = (interleaved(graph, every(0))?, interleaved(graph, every(1))?);
    let mut all = Vec::with_capacity(vectors.len());
    for (a, b) in even.into_iter().zip(odd) {
        let width = super::lanes(graph, a);
        for half in 0..2 {
            let lanes = (half * width..(half + 1) * width).map(|lane| (if lane % 2 == 0 { a } else { b }, lane / 2));
            let lanes: Lanes = lanes.collect();
            let vector = gathered(graph, &lanes)?;
            all.push(splat(graph, vector, width)?);
        }
    }
    Ok(all)
}
