//! Stage: a value in LOCAL memory.

use super::{OptOp, Order, Transform, operand};
use crate::lower::optimize::space::Staged;
use crate::lower::optimize::{AxisName, Refusal, Scheduler, Space};
use std::fmt;

/// Computes a value into a LOCAL buffer, and reads it from there (Halide's `compute_at` and `store_at`).
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub enum Stage {
    /// Packing: a copy of what the axes inside of the loop `at` read from a Param.
    Param {
        /// Slot of the Param.
        slot: u32,
        /// The loop whose trips make a copy each; `None` stands for the root of the kernel, which makes one.
        at: Option<AxisName>,
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

/// Stands for the kernel outside of all loops.
const ROOT: &str = "root";

/// The places for a copy: the root of the kernel, and each loop.
fn places(space: &Space) -> Vec<Option<AxisName>> {
    let loops = space.axes.iter().filter(|axis| !axis.is_tile()).map(|axis| Some(axis.name()));
    std::iter::once(None).chain(loops).collect()
}

impl Transform for Stage {
    const NAME: &'static str = "stage";
    const OPERANDS: &'static str = "%slot, at axis [first] | %slot, at root [first] | value number | sums";
    const EFFECT: &'static str = "computes a value into LOCAL memory and reads it from there. `%slot`: what the axes inside of `axis` read from a \
         Param, or what the kernel does (packing); with `first` the first of the trips that read it makes the copy. `value`: what two loops compute (a \
         recomputation cache). `sums`: the register tile, whose rows a loop of their own finishes (epilogue fission)";
    const REQUIRES: &'static str = "no loop over terms is around one over results. `%slot`: the kernel reads the Param, does not write it, and has not staged \
         it. `value`: none that is staged needs it or replaces it. `sums`: the tile has rows and a contiguous axis";
    const ORDER: Order = Order::KeepsAxes;

    fn parse(operands: &[&str]) -> Option<Stage> {
        match operands {
            ["sums"] => Some(Stage::Sums),
            ["value", value] => Some(Stage::Value(operand(value)?)),
            [slot, "at", at, by @ ..] if matches!(by, [] | ["first"]) => {
                let at = if *at == ROOT { None } else { Some(operand(at)?) };
                Some(Stage::Param { slot: operand(slot.strip_prefix('%')?)?, at, first: !by.is_empty() })
            }
            _ => None,
        }
    }

    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stage::Param { slot, at, first } => {
                let at = at.map_or(ROOT.into(), |at| at.to_string());
                write!(f, "%{slot}, at {at}{}", if *first { " first" } else { "" })
            }
            Stage::Value(value) => write!(f, "value {value}"),
            Stage::Sums => f.write_str("sums"),
        }
    }

    fn apply(&self, space: &mut Space) -> Result<(), Refusal> {
        space.no_sums_of_rows()?;
        match *self {
            Stage::Param { slot, at, first } => {
                at.map(|at| space.position(at)).transpose()?;
                if !space.params().contains(&slot) {
                    return Err(Refusal::NotRead(slot));
                }
                if space.is_staged(slot) {
                    return Err(Refusal::StagedTwice(slot));
                }
                space.stages.push(Staged { slot, at, first });
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
        let loops = || places(space).into_iter();
        let slots = space.params().iter().filter(|&&slot| !space.is_staged(slot));
        let params = slots.flat_map(|&slot| loops().map(move |at| Stage::Param { slot, at, first: false }));
        let values = space.keepable().map(Stage::Value);
        let sums = space.epilogue().filter(|_| !space.stages_sums).map(|_| Stage::Sums);
        params.chain(values).chain(sums).map(|stage| vec![stage.into()]).collect()
    }

    fn replacements(&self, space: &Space) -> Vec<Stage> {
        let Stage::Param { slot, at, first } = *self else { return Vec::new() };
        let elsewhere = places(space).into_iter().filter(|&other| other != at);
        let elsewhere = elsewhere.map(|at| Stage::Param { slot, at, first });
        elsewhere.chain([Stage::Param { slot, at, first: !first }]).collect()
    }
}
