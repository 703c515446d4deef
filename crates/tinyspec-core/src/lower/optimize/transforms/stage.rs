//! Stage: a value in LOCAL memory.

use super::{OptOp, Order, Transform, operand};
use crate::lower::optimize::{AxisName, Refusal, Scheduler, Space};
use std::fmt;

/// Computes a value into a LOCAL buffer, and reads it from there (Halide's `compute_at` and `store_at`).
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub enum Stage {
    /// Packing: copies the elements of a Param that the loops inside `at` read.
    Param {
        /// Slot of the Param.
        slot: u32,
        /// The loop whose trips make a copy each; `None` stands for the root of the kernel, which makes one.
        at: Option<AxisName>,
        /// The code that makes the copy.
        by: Copier,
    },
    /// Recomputation cache: a value that two loops of the kernel compute, by its number in
    /// [`Kernel::recomputed`](crate::lower::optimize::Kernel::recomputed). The loop of a Reduce stores it, the other one loads it.
    Value(usize),
    /// Epilogue fission: the sums of a register tile. A loop over the tile's rows computes the epilogue, so that its
    /// instructions are emitted once, not once per row.
    Sums,
}

/// The code that makes the copy of a Param.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Copier {
    /// Loops of the copy's own, before those that read it. Each thread makes the copies that it reads.
    Loops,
    /// Pack on first use: the first of the trips that read the copy makes it, so that copying and computing overlap. Where that
    /// is not regular the copy has its own loops.
    First,
    /// A kernel that runs before this one, whose threads share the work. The copy is a temporary in GLOBAL memory.
    Kernel,
}

impl Copier {
    const ALL: [Copier; 3] = [Copier::Loops, Copier::First, Copier::Kernel];

    /// The word behind the place of the copy.
    fn word(self) -> &'static str {
        match self {
            Copier::Loops => "",
            Copier::First => "first",
            Copier::Kernel => "global",
        }
    }
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
    const OPERANDS: &'static str = "%slot, at axis [first] | %slot, at root [first | global] | value number | sums";
    const EFFECT: &'static str = "computes a value into LOCAL memory and reads it from there. `%slot`: what the axes inside of `axis` read from a \
         Param, or what the kernel does (packing); with `first` the first of the trips that read it makes the copy, with `global` a kernel that runs \
         before, whose threads share the work. `value`: what two loops compute (a recomputation cache). `sums`: the register tile, whose rows a loop of their own finishes (epilogue fission)";
    const REQUIRES: &'static str = "no loop over terms is around one over results. `%slot`: the kernel reads the Param, does not write it, and has not staged \
         it; for `global`, the device has no workgroups, and no size is a named dim. `value`: none that is staged needs it or replaces it. `sums`: the \
         tile has rows and a contiguous axis";
    const ORDER: Order = Order::KeepsAxes;

    fn parse(operands: &[&str]) -> Option<Stage> {
        match operands {
            ["sums"] => Some(Stage::Sums),
            ["value", value] => Some(Stage::Value(operand(value)?)),
            [slot, "at", at, by @ ..] if by.len() <= 1 => {
                let at = if *at == ROOT { None } else { Some(operand(at)?) };
                let word = by.first().copied().unwrap_or_default();
                let by = Copier::ALL.into_iter().find(|by| by.word() == word)?;
                Some(Stage::Param { slot: operand(slot.strip_prefix('%')?)?, at, by })
            }
            _ => None,
        }
    }

    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stage::Param { slot, at, by } => {
                let at = at.map_or(ROOT.into(), |at| at.to_string());
                let space = if *by == Copier::Loops { "" } else { " " };
                write!(f, "%{slot}, at {at}{space}{}", by.word())
            }
            Stage::Value(value) => write!(f, "value {value}"),
            Stage::Sums => f.write_str("sums"),
        }
    }

    fn apply(&self, space: &mut Space) -> Result<(), Refusal> {
        space.no_sums_of_rows()?;
        match *self {
            Stage::Param { slot, at, by } => {
                at.map(|at| space.position(at)).transpose()?;
                if !space.params().contains(&slot) {
                    return Err(Refusal::NotRead(slot));
                }
                if space.packing(slot).is_some() {
                    return Err(Refusal::StagedTwice(slot));
                }
                if by == Copier::Kernel && (at.is_some() || !space.facts.can_copy_before) {
                    return Err(Refusal::NoCopyBefore(slot));
                }
            }
            Stage::Value(value) if !space.may_keep(value) => return Err(Refusal::NoRepeat(value)),
            Stage::Value(_) | Stage::Sums => {}
        }
        if !space.staged.contains(self) {
            space.staged.push(self.clone());
        }
        Ok(())
    }

    fn additions(_: &Scheduler, space: &Space) -> Vec<Vec<OptOp>> {
        let loops = || places(space).into_iter();
        let slots = space.params().iter().filter(|&&slot| space.packing(slot).is_none());
        let params = slots.flat_map(|&slot| loops().map(move |at| Stage::Param { slot, at, by: Copier::Loops }));
        let values = space.keepable().map(Stage::Value);
        let sums = space.epilogue().filter(|_| !space.staged.contains(&Stage::Sums)).map(|_| Stage::Sums);
        params.chain(values).chain(sums).map(|stage| vec![stage.into()]).collect()
    }

    fn replacements(&self, space: &Space) -> Vec<Stage> {
        let Stage::Param { slot, at, by } = *self else { return Vec::new() };
        let elsewhere = places(space).into_iter().filter(|&other| other != at);
        let elsewhere = elsewhere.map(|at| Stage::Param { slot, at, by });
        let others = Copier::ALL.into_iter().filter(|&other| other != by);
        let others = others.map(|by| Stage::Param { slot, at: at.filter(|_| by != Copier::Kernel), by });
        elsewhere.chain(others).collect()
    }
}
