//! Stage: a value in LOCAL memory.

use super::{OptOp, Order, Transform, number};
use crate::lower::optimize::space::Staged;
use crate::lower::optimize::{Refusal, Scheduler, Space};
use std::fmt;

/// Computes a value into a LOCAL buffer, and reads it from there (Halide's `compute_at` and `store_at`).
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub enum Stage {
    /// Packing: a copy of what the axes from `at` on read from a Param.
    Param {
        /// Slot of the Param.
        slot: u32,
        /// How many of the axes, the outermost ones, are around the copy.
        at: usize,
        /// Pack on first use: the copy has no loops of its own, but is made by the first of the trips that read it, so that
        /// copying and computing overlap. Where that is not regular the copy has its own loops.
        first: bool,
    },
    /// Recomputation cache: a value that two loops of the kernel compute, by its number in
    /// [`Kernel::recomputed`](crate::lower::optimize::Kernel::recomputed). The loop of a Reduce stores it, the other one loads it.
    Value(usize),
    /// Epilogue fission: the sums of a register tile. A loop over the tile's rows computes what follows from them, so that its
    /// instructions are emitted once, not once a row.
    Sums,
}

impl Transform for Stage {
    const NAME: &'static str = "stage";
    const OPERANDS: &'static str = "%slot, at axis [first] | value number | sums";
    const EFFECT: &'static str = "computes a value into LOCAL memory and reads it from there. `%slot`: what the axes from `axis` on read from a Param \
         (packing); with `first` the first of the trips that read it makes the copy. `value`: what two loops compute (a \
         recomputation cache). `sums`: the register tile, whose rows a loop of their own finishes (epilogue fission)";
    const REQUIRES: &'static str = "no loop over terms is around one over results. `%slot`: the kernel reads the Param, does not write it, and has not staged \
         it. `value`: none that is staged needs it or replaces it. `sums`: the tile has rows and a contiguous axis";
    const ORDER: Order = Order::KeepsAxes;

    fn parse(operands: &[&str]) -> Option<Stage> {
        match operands {
            ["sums"] => Some(Stage::Sums),
            ["value", value] => Some(Stage::Value(number(value)?)),
            [slot, "at", at, by @ ..] if matches!(by, [] | ["first"]) => {
                Some(Stage::Param { slot: number(slot.strip_prefix('%')?)?, at: number(at)?, first: !by.is_empty() })
            }
            _ => None,
        }
    }

    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stage::Param { slot, at, first } => write!(f, "%{slot}, at {at}{}", if *first { " first" } else { "" }),
            Stage::Value(value) => write!(f, "value {value}"),
            Stage::Sums => f.write_str("sums"),
        }
    }

    fn apply(&self, space: &mut Space) -> Result<(), Refusal> {
        if space.sums_rows() {
            return Err(Refusal::AroundResults);
        }
        match *self {
            Stage::Param { slot, at, first } => {
                let count = space.axes.len();
                if at > count {
                    return Err(Refusal::TooDeep { at, count });
                }
                if !space.params().contains(&slot) {
                    return Err(Refusal::NotRead(slot));
                }
                if space.is_staged(slot) {
                    return Err(Refusal::StagedTwice(slot));
                }
                space.stages.push(Staged { slot, around: at, first });
            }
            Stage::Value(value) => {
                if !space.may_keep(value) {
                    return Err(Refusal::NoRepeat(value));
                }
                space.kept.push(value);
            }
            Stage::Sums => space.stages_sums = true,
        }
        Ok(())
    }

    fn additions(_: &Scheduler, space: &Space) -> Vec<Vec<OptOp>> {
        let around = || (0..space.axes.len()).filter(|&axis| !space.axes[axis].is_tile());
        let slots = space.params().iter().filter(|&&slot| !space.is_staged(slot));
        let params = slots.flat_map(|&slot| around().map(move |at| Stage::Param { slot, at, first: false }));
        let values = space.keepable().map(Stage::Value);
        let sums = space.epilogue().filter(|_| !space.stages_sums).map(|_| Stage::Sums);
        params.chain(values).chain(sums).map(|stage| vec![stage.into()]).collect()
    }

    fn replacements(&self) -> Vec<Stage> {
        let Stage::Param { slot, at, first } = *self else { return Vec::new() };
        let elsewhere = (0..at + 3).filter(|&other| other != at).map(|at| Stage::Param { slot, at, first });
        elsewhere.chain([Stage::Param { slot, at, first: !first }]).collect()
    }
}
