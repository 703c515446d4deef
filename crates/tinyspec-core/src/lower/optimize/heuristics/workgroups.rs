//! Schedules for a GPU: outputs are threads of workgroups, neighbours in memory neighbours in a workgroup.

use super::super::opt_op::OptOp;
use super::Planner;
use tinyspec_backends::Workgroups;
use tinyspec_ir::AxisType;

/// Warps of a workgroup.
const WARPS: i64 = 4;

impl Planner<'_> {
    /// All output axes but those that a sum is carried along are parallel.
    pub(super) fn workgroups(mut self, limits: &Workgroups) -> Vec<OptOp> {
        let carried = self.carried();
        let mut threads = (limits.warp as i64 * WARPS).min(limits.size as i64);
        let is_output = |origin: &usize| {
            let origin = &self.space.origins[*origin];
            !origin.merged && origin.trips.is_some_and(|trips| trips > 1)
        };
        let mut outputs: Vec<usize> = (self.kernel.nests.iter())
            .flat_map(|nest| nest.ranges.iter().rev().filter_map(|&range| self.space.origin(range)))
            .filter(is_output)
            .filter(|origin| !carried.contains(origin))
            .collect();
        let contiguous = self.contiguous_output();
        outputs.sort_by_key(|origin| Some(*origin) != contiguous);
        for origin in outputs {
            let trips = self.trips(origin);
            let members = trips.min(threads);
            if members > 1 {
                self.split(origin, members, AxisType::Local);
                threads /= members;
            }
            self.share_trips(origin);
        }
        self.ops
    }

    /// What is left of an output axis goes to workgroups.
    fn share_trips(&mut self, origin: usize) {
        let is_left = |axis: &super::super::space::Axis| axis.origin == origin && axis.kind == AxisType::Loop;
        if let Some(axis) = self.space.axes.iter().position(is_left)
            && let Some(factor) = self.space.axes[axis].trips.filter(|&trips| trips > 1)
        {
            self.apply(OptOp::Split { axis, factor, target: AxisType::Global, top: true });
        }
    }
}
