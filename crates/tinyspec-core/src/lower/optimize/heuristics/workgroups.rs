//! Schedules for a GPU: outputs are threads of workgroups, neighbours in memory neighbours in a workgroup; where there are
//! few outputs, a workgroup shares the sum of each.

mod product;

use super::super::axis::Axis;
use super::Planner;
use crate::lower::optimize::transforms::{OptOp, Split};
use tinyspec_backends::Workgroups;
use tinyspec_ir::AxisType;

/// Warps of a workgroup.
const WARPS: i64 = 4;
/// Outputs that keep a GPU busy with one thread each.
const BUSY: i64 = 4096;

impl Planner<'_> {
    /// All output axes but those that a sum is carried along are parallel.
    pub(super) fn workgroups(mut self, limits: &Workgroups) -> Vec<OptOp> {
        if let Some(product) = self.product() {
            return self.tile_product(&product);
        }
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
        let mut shared = 1;
        if carried.is_empty() {
            shared = self.share_sums(&outputs, limits.warp as i64, threads);
        }
        for origin in outputs {
            // Sums of a whole row: its elements are as many threads as share the sum.
            let is_inside = shared > 1 && !self.is_outside_of_sums(origin);
            let members = self.trips(origin).min(if is_inside { shared } else { threads / shared });
            if members > 1 {
                self.split(origin, members, AxisType::Local);
                if !is_inside {
                    threads = (threads / members).max(1);
                }
            }
            // A second workgroup would add up the same again.
            if !is_inside {
                self.share_trips(origin);
            }
        }
        self.ops
    }

    /// Gives sums to whole workgroups, where there are few of them; the threads of each.
    fn share_sums(&mut self, outputs: &[usize], warp: i64, threads: i64) -> i64 {
        let outside = outputs.iter().filter(|&&origin| self.is_outside_of_sums(origin));
        let sums: i64 = outside.map(|&origin| self.trips(origin)).product();
        let mut origins: Vec<usize> = (self.kernel.reductions.iter())
            .filter_map(|reduction| self.space.origin(*reduction.ranges.last()?))
            .filter(|&origin| !self.space.origins[origin].merged)
            .collect();
        origins.sort_unstable();
        origins.dedup();
        let least = origins.iter().map(|&origin| self.trips(origin)).min().unwrap_or(0);
        if sums >= BUSY || least < warp {
            return 1;
        }
        let mut shared = threads;
        while shared > least {
            shared /= 2;
        }
        for origin in origins {
            self.split(origin, shared, AxisType::GroupReduce);
        }
        shared
    }

    /// Every sum is another one along this axis.
    fn is_outside_of_sums(&self, origin: usize) -> bool {
        let bit = self.kernel.live.bit(self.space.origins[origin].range);
        self.kernel.reductions.iter().all(|reduction| reduction.outer & bit != 0)
    }

    /// What is left of an output axis goes to workgroups.
    fn share_trips(&mut self, origin: usize) {
        let is_left = |axis: &Axis| axis.origin == origin && axis.kind == AxisType::Loop;
        if let Some(axis) = self.space.axes.iter().position(is_left)
            && let Some(factor) = self.space.axes[axis].trips.filter(|&trips| trips > 1)
        {
            self.apply(Split { axis: self.space.name(axis), factor, target: AxisType::Global, top: true });
        }
    }
}
