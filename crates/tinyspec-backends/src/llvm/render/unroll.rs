//! Innermost loops of multiply-adds whose instructions are there several times. Counting, comparing and stepping
//! along the operands take four instructions a trip, which a tile of few registers notices: it has twelve multiply-adds and
//! eight loads.

use super::control::trips_of;
use super::emit::{Kind, Result};
use super::{Placed, Renderer};
use llvm_sys::LLVMOpcode::LLVMAdd;
use tinyspec_ir::address::register;
use tinyspec_ir::{Arg, AxisType, NodeId, Op};

/// Trips that become one; the first that divides their number.
const TIMES: [i64; 4] = [4, 3, 2, 5];
/// Loads and multiply-adds of a trip, beside which its counting is less than a tenth.
const LARGE: usize = 40;
/// Multiply-adds of a trip, below which it waits for their latency.
const LEAST: usize = 4;
/// Trips of a launch, below which the gain is not worth the time that compiling more instructions takes.
const LEAST_TRIPS: i64 = 1 << 14;

/// The loop whose trips are written out one after the other, and which of these it is.
#[derive(Clone, Copy)]
pub(super) struct Unrolled {
    pub(super) range: NodeId,
    pub(super) trip: i64,
}

impl Renderer<'_, '_> {
    /// The instructions of a loop that begins here, the last of which ends it, and how often they shall be there.
    pub(super) fn unrolled<'i>(&self, instructions: &'i [NodeId]) -> Option<(&'i [NodeId], i64)> {
        let graph = self.graph;
        if self.is_gpu() {
            return None;
        }
        let (&range, rest) = instructions.split_first().filter(|(first, _)| graph.op(**first) == Op::Range)?;
        if matches!(graph.arg(range), Arg::Range { axis: AxisType::Global, .. }) {
            return None;
        }
        let trips = trips_of(self.graph, range)?;
        let times = TIMES.into_iter().find(|times| trips % times == 0 && trips >= 2 * times)?;
        let (mut products, mut loads) = (0, 0);
        for (position, &node) in rest.iter().enumerate() {
            match graph.op(node) {
                Op::End => {
                    let around = self.levels.iter().filter(|level| graph.op(level.node) == Op::Range);
                    // Loops without a number of trips serve many sizes.
                    let around = around.map(|level| trips_of(self.graph, level.node).unwrap_or(LEAST_TRIPS));
                    let all = around.fold(trips, i64::saturating_mul);
                    let is_tile = products >= LEAST && products > loads && products + loads < LARGE;
                    return (is_tile && all >= LEAST_TRIPS).then_some((&instructions[..position + 2], times));
                }
                Op::Mulacc => products += 1,
                Op::Load if register(graph, graph.source(node, 0)).is_some() => {}
                Op::Load => {
                    let gate = graph.sources(node).get(2);
                    if gate.is_some_and(|&gate| self.is_open(gate).is_none()) {
                        return None;
                    }
                    loads += 1;
                }
                Op::Store if register(graph, graph.source(node, 0)).is_some() => {}
                Op::Range | Op::If | Op::Store | Op::AtomicAdd | Op::Custom => return None,
                _ => {}
            }
        }
        None
    }

    /// A loop, several trips at once.
    pub(super) fn unroll(&mut self, instructions: &[NodeId], times: i64) -> Result<()> {
        let [range, body @ .., end] = instructions else { return Ok(()) };
        self.fetch_behind(*end)?;
        self.open_loop(*range, times)?;
        // Addresses count from the first of these trips.
        let first = self.wide(*range)?.value;
        for trip in 0..times {
            if trip > 0 {
                self.forget_trip(*range);
                // Instructions are put in order block by block: loads of all trips at once would need more registers.
                let next = self.emit.new_block();
                self.emit.jump(next);
                self.emit.enter(next);
                let further = self.emit.int(Kind::I64, 1, trip);
                let value = self.emit.binary(LLVMAdd, first, further)?;
                self.values[range.index()] = Some(Placed { value, depth: self.levels.len() });
            }
            self.unrolled = Some(Unrolled { range: *range, trip });
            body.iter().try_for_each(|&node| self.instruction(node))?;
        }
        self.unrolled = None;
        self.close_loop(*end)
    }

    /// What was computed in a trip is not that of the next one.
    fn forget_trip(&mut self, range: NodeId) {
        let inside = self.levels.len();
        for value in &mut self.values {
            if value.is_some_and(|placed| placed.depth >= inside) {
                *value = None;
            }
        }
        self.whole.retain(|_, placed| placed.depth < inside);
        self.addresses.forget(inside, range);
        self.fetched.retain(|row, _| row.around != range);
    }
}
