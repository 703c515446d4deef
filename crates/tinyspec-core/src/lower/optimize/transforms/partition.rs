//! Partition: loop partitioning.

use super::{OptOp, Order, Transform, operand};
use crate::lower::optimize::{AxisName, Refusal, Scheduler, Space};
use std::fmt;
use tinyspec_ir::AxisType;

/// Partitions the loop of a Reduce where its conditions change (loop partitioning, index-set splitting): trips in which they hold for
/// a whole tile test nothing, and those in which they fail for a whole tile add only terms that do not depend on the tile, or do not
/// run.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Partition {
    /// The axis.
    pub axis: AxisName,
}

impl Transform for Partition {
    const NAME: &'static str = "partition";
    const OPERANDS: &'static str = "axis";
    const EFFECT: &'static str = "partitions the loop of a Reduce where its conditions change: trips in which they hold for a whole tile test nothing, and those in \
         which they fail for a whole tile add only what does not depend on the tile, or do not run";
    const REQUIRES: &'static str = "the axis is a serial loop over terms, conditions on indices bound it, no copy is made on first use, and no transform that \
         changes axes follows";
    const ORDER: Order = Order::FixesAxes;

    fn parse(operands: &[&str]) -> Option<Partition> {
        let &[axis] = operands else { return None };
        Some(Partition { axis: operand(axis)? })
    }

    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.axis)
    }

    fn apply(&self, space: &mut Space) -> Result<(), Refusal> {
        let position = space.position(self.axis)?;
        if !space.can_partition(position) {
            return Err(Refusal::NotBounded(self.axis));
        }
        space.partitioned = Some(position);
        Ok(())
    }

    fn additions(_: &Scheduler, space: &Space) -> Vec<Vec<OptOp>> {
        let axes = (0..space.axes.len()).filter(|&axis| space.partitioned.is_none() && space.can_partition(axis));
        axes.map(|axis| vec![Partition { axis: space.name(axis) }.into()]).collect()
    }
}

impl Space {
    /// Whether the axis is a serial loop over terms whose trips conditions bound.
    pub(in super::super) fn can_partition(&self, axis: usize) -> bool {
        let axis = &self.axes[axis];
        axis.kind == AxisType::Reduce
            && axis.trips.is_some_and(|trips| trips > 1)
            && self.facts.bounded.contains(&axis.origin)
    }
}
