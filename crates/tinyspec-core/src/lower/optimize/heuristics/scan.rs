//! Kernels with running Reduces: the carried axis is a serial loop within all others, one vector a trip.

use super::Planner;
use crate::lower::optimize::transforms::OptOp;
use tinyspec_ir::AxisType;

impl Planner<'_> {
    /// The output ranges along which some Reduce is carried.
    pub(super) fn carried(&self) -> Vec<usize> {
        let carried = self.kernel.reductions.iter().filter_map(|reduction| reduction.carried.as_ref());
        let ranges = carried.flat_map(|place| place.atoms());
        let mut origins: Vec<usize> = ranges.filter_map(|range| self.space.origin(range)).collect();
        origins.sort_unstable();
        origins.dedup();
        origins
    }

    /// Vectors along the contiguous axis: lanes that are carried side by side, or places that follow each other.
    pub(super) fn scan(mut self, carried: &[usize]) -> Vec<OptOp> {
        let lanes = self.lanes();
        let lane = self.contiguous_output();
        if lanes > 1
            && let Some(lane) = lane
        {
            let vectors = if carried.contains(&lane) { 1 } else { self.accumulated(lane, lanes) };
            self.split_by_vectors(lane, lanes, vectors, AxisType::Upcast);
        }
        // The carried axes go inside of all other loops, one step at a time, so that the others keep their order.
        let is_loop = |axis: &super::super::axis::Axis| axis.kind == AxisType::Loop;
        let mut places: Vec<usize> =
            (0..self.space.axes.len()).filter(|&axis| is_loop(&self.space.axes[axis])).collect();
        while let Some(last) = places.pop() {
            let Some(from) = places.iter().rposition(|&axis| carried.contains(&self.space.axes[axis].origin)) else {
                break;
            };
            if carried.contains(&self.space.axes[last].origin) {
                continue;
            }
            let mut steps: Vec<usize> = places[from..].to_vec();
            steps.push(last);
            for pair in steps.windows(2) {
                self.swap(pair[0], pair[1]);
            }
        }
        let outermost = self.space.axes.iter().find(|axis| axis.trips != Some(1) && is_loop(axis));
        if outermost.is_some_and(|axis| !carried.contains(&axis.origin)) {
            self.share();
        }
        self.ops
    }
}
