//! A Reduce that the threads of a workgroup share (GROUP_REDUCE): each thread stores its partial sum in LOCAL memory. If there are
//! many, some of the threads first add an equal share of them each; every thread then adds the remaining ones.

use super::Stage;
use crate::lower::fold::{both, identity};
use crate::lower::live::trips;
use crate::lower::loops::closed;
use smallvec::SmallVec;
use tinyspec_ir::affine::{Affine, less};
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, Dim, Error, ErrorKind, Graph, NodeId, Op, Result};

/// The most partial sums that every thread adds by itself: another step would leave fewer, but its Barrier takes longer
/// than these additions.
const ALONE: i64 = 32;

/// Bytes of the widest access to LOCAL memory.
const VECTOR: i64 = 16;

impl Stage {
    pub(super) fn group_reduce(&mut self, graph: &mut Graph, node: NodeId) -> Result<NodeId> {
        let Arg::Reduce { op, ref axes } = *graph.arg(node) else {
            return Err(Error::new(ErrorKind::Verify, "reduce", "has no op"));
        };
        let (arg, old) = (Arg::Reduce { op, axes: axes.clone() }, SmallVec::<[NodeId; 4]>::from(graph.sources(node)));
        let mut own: SmallVec<[NodeId; 4]> = SmallVec::from_iter([self.new[old[0].index()]]);
        let mut parts = MixedRadix::default();
        for &range in &old[1..] {
            match self.index(range) {
                Some(index) => parts.add(index, trips(graph, range).unwrap_or(1)),
                None => own.push(self.new[range.index()]),
            }
        }
        let partial = if own.len() == 1 { own[0] } else { graph.add(Op::Reduce, &own, arg)? };
        // Each position along the other axes of the workgroup and those of the tile has a sum of its own.
        let shared = old[1..].iter().fold(0, |set, &range| set | self.live.bit(range));
        let others = self.live.of(old[0]) & !shared;
        let (mut results, mut tiles, mut serial) =
            (MixedRadix::default(), SmallVec::<[NodeId; 4]>::new(), SmallVec::<[NodeId; 4]>::new());
        for range in self.live.members(others) {
            let is_tile = matches!(graph.arg(range), Arg::Range { axis: AxisType::Upcast | AxisType::Unroll, .. });
            let index = self.new[range.index()];
            if self.threads.of(range).is_some() || is_tile {
                results.add(index, trips(graph, range).unwrap_or(1));
            }
            if is_tile {
                tiles.push(index);
            } else if graph.op(index) == Op::Range {
                serial.push(index);
            }
        }
        let count = parts.count;
        // The partial sums of each result are aligned, so that they can be loaded as vectors.
        let (dtype, lanes) = (graph.dtype(partial), VECTOR / (graph.dtype(partial).size() as i64).clamp(1, VECTOR));
        let row = (count + lanes - 1) / lanes * lanes;
        let first = results.sum.scale(row);
        let cell = first.plus(&parts.sum);
        let dims = graph.shape(&[Dim::from(results.count.saturating_mul(row))])?;
        let arg = Arg::Buffer { slot: self.next_local, dtype, device: None, addrspace: AddrSpace::Local };
        self.next_local += 1;
        let buffer = graph.add(Op::Buffer, &[dims], arg)?;
        let mut ready = buffer;
        if !serial.is_empty() {
            // No thread may start the next trip before all have read the sum of this one.
            let barrier = graph.add(Op::Barrier, &serial, Arg::None)?;
            ready = graph.add(Op::After, &[buffer, barrier], Arg::None)?;
        }
        // One thread stores each partial sum, even if several compute the same one.
        let exists = self.threads.gate(graph, others | shared, true)?;
        let mut ready = self.pass(graph, buffer, ready, &cell, partial, exists, &tiles)?;
        let nothing = identity(graph, op, dtype);
        let (mut sum, mut left) = (partial, count);
        while left > ALONE {
            let (before, rest) = (left, (left as f64).sqrt().ceil() as i64);
            let is_left = less(graph, &parts.sum, &Affine::number(rest))?;
            let stays = both(graph, exists, Some(is_left))?;
            // A thread still has the value of its own cell.
            for first in (rest..before).step_by(rest as usize) {
                let is_inside = less(graph, &parts.sum, &Affine::number(rest.min(before - first)))?;
                let gate = both(graph, exists, Some(is_inside))?;
                let other = load(graph, ready, &cell.offset(first), nothing, gate)?;
                sum = graph.alu(op, &[sum, other])?;
            }
            ready = self.pass(graph, buffer, ready, &cell, sum, stays, &tiles)?;
            left = rest;
        }
        let gate = self.threads.gate(graph, others, false)?;
        let mut sum = load(graph, ready, &first, nothing, gate)?;
        for other in 1..left {
            let other = load(graph, ready, &first.offset(other), nothing, gate)?;
            sum = graph.alu(op, &[sum, other])?;
        }
        Ok(sum)
    }

    /// Stores the partial sums of a step, and returns the buffer after the Barrier that follows.
    #[expect(clippy::too_many_arguments, reason = "the parts of one Store")]
    fn pass(
        &self,
        graph: &mut Graph,
        buffer: NodeId,
        ready: NodeId,
        cell: &Affine,
        value: NodeId,
        gate: Option<NodeId>,
        tiles: &[NodeId],
    ) -> Result<NodeId> {
        let cell = cell.emit(graph)?;
        let place = graph.add(Op::Index, &[ready, cell], Arg::None)?;
        let gate = gate.filter(|&gate| graph.as_int(gate).is_none());
        let sources: SmallVec<[NodeId; 3]> = [place, value].into_iter().chain(gate).collect();
        let stored = graph.add(Op::Store, &sources, Arg::None)?;
        let stored = closed(graph, stored, tiles)?;
        let barrier = graph.add(Op::Barrier, &[stored], Arg::None)?;
        graph.add(Op::After, &[buffer, barrier], Arg::None)
    }
}

fn load(graph: &mut Graph, buffer: NodeId, cell: &Affine, nothing: NodeId, gate: Option<NodeId>) -> Result<NodeId> {
    let cell = cell.emit(graph)?;
    let place = graph.add(Op::Index, &[buffer, cell], Arg::None)?;
    let arg = Arg::Load { device: None, addrspace: AddrSpace::Reg };
    match gate.filter(|&gate| graph.as_int(gate).is_none()) {
        Some(gate) => graph.add(Op::Load, &[place, nothing, gate], arg),
        None => graph.add(Op::Load, &[place], arg),
    }
}

/// A mixed-radix number with indices as its digits.
struct MixedRadix {
    sum: Affine,
    count: i64,
}

impl Default for MixedRadix {
    fn default() -> MixedRadix {
        MixedRadix { sum: Affine::number(0), count: 1 }
    }
}

impl MixedRadix {
    fn add(&mut self, index: NodeId, trips: i64) {
        self.sum = self.sum.plus(&Affine::atom(index).scale(self.count));
        self.count = self.count.saturating_mul(trips);
    }
}
