//! Swap: loop interchange.

use super::{OptOp, Transform, operand};
use crate::lower::optimize::{AxisName, Refusal, Scheduler, Space};
use std::fmt;
use tinyspec_ir::AxisType;

/// Exchanges two axes of the loop order. Where a loop over terms comes to stand around one over results, each of its trips adds
/// a few terms to every result; the sums are in LOCAL memory meanwhile (`rebuild/sums.rs`).
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Swap(
    /// One axis.
    pub AxisName,
    /// The other.
    pub AxisName,
);

impl Transform for Swap {
    const NAME: &'static str = "swap";
    const OPERANDS: &'static str = "axis, axis";
    const EFFECT: &'static str =
        "exchanges two axes; a loop over terms around one over results adds to sums in LOCAL memory, trip by trip";
    const REQUIRES: &'static str = "both axes are over results or both over terms; else both are serial loops, and all Reduces are over the same Ranges";

    fn parse(operands: &[&str]) -> Option<Swap> {
        let &[a, b] = operands else { return None };
        Some(Swap(operand(a)?, operand(b)?))
    }

    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.0, self.1)
    }

    fn apply(&self, space: &mut Space) -> Result<(), Refusal> {
        let (a, b) = (space.position(self.0)?, space.position(self.1)?);
        let (first, second) = (&space.axes[a], &space.axes[b]);
        let are_loops = [first.kind, second.kind].iter().all(|kind| matches!(kind, AxisType::Loop | AxisType::Reduce));
        if first.kind.is_reduce() != second.kind.is_reduce() && !(are_loops && space.can_sum_rows()) {
            return Err(Refusal::SwapWithReduce);
        }
        space.axes.swap(a, b);
        Ok(())
    }

    fn additions(_: &Scheduler, space: &Space) -> Vec<Vec<OptOp>> {
        let loops = space.loops();
        let pairs = loops.iter().flat_map(|&a| loops.iter().filter(move |&&b| b > a).map(move |&b| (a, b)));
        pairs.map(|(a, b)| vec![Swap(space.name(a), space.name(b)).into()]).collect()
    }
}
