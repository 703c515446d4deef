//! Pipeline: software pipelining.

use super::{OptOp, Order, Transform, operand};
use crate::lower::optimize::{AxisName, Refusal, Scheduler, Space};
use std::fmt;
use tinyspec_ir::AxisType;

/// Software-pipelines a serial loop: the loops inside belong to different trips of it. While one stores, those before it work on
/// the trips that follow.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Pipeline {
    /// The axis.
    pub axis: AxisName,
}

impl Transform for Pipeline {
    const NAME: &'static str = "pipeline";
    const OPERANDS: &'static str = "axis";
    const EFFECT: &'static str =
        "software-pipelines a loop: while one of the loops inside stores, those before it work on later trips";
    const REQUIRES: &'static str = "the axis is a serial loop of known length over results, no sum is carried along it, and no transform that changes axes follows";
    const ORDER: Order = Order::FixesAxes;

    fn parse(operands: &[&str]) -> Option<Pipeline> {
        let &[axis] = operands else { return None };
        Some(Pipeline { axis: operand(axis)? })
    }

    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.axis)
    }

    fn apply(&self, space: &mut Space) -> Result<(), Refusal> {
        space.no_sums_of_rows()?;
        let position = space.position(self.axis)?;
        let old = &space.axes[position];
        if old.kind != AxisType::Loop || old.trips.is_none() {
            return Err(Refusal::NoLoop(self.axis));
        }
        if space.facts.carries {
            return Err(Refusal::Carries);
        }
        space.pipelined = Some(position);
        Ok(())
    }

    fn additions(scheduler: &Scheduler, space: &Space) -> Vec<Vec<OptOp>> {
        let walks_several_times = scheduler.kernel().reductions.len() > 1;
        let rows = space.loops().into_iter().filter(|&axis| space.axes[axis].kind == AxisType::Loop);
        rows.filter(|_| walks_several_times).map(|axis| vec![Pipeline { axis: space.name(axis) }.into()]).collect()
    }
}
