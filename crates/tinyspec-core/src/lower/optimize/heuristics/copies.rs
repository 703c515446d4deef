//! Large copies that all threads read: each is made once, by a kernel that runs before.

use super::Planner;
use crate::lower::optimize::axis::Axis;
use crate::lower::optimize::kernel::{Kernel, slot};
use crate::lower::optimize::space::Space;
use crate::lower::optimize::transforms::{Copier, OptOp, Stage};
use tinyspec_backends::Target;
use tinyspec_ir::{AxisType, Graph};

/// The size of a copy that takes about ten times as long as one more launch.
const LEAST_BYTES: i64 = 1 << 17;

/// Assigns to copy kernels the large copies that each thread would otherwise make for itself. `space` is the result of `ops`.
pub(in super::super) fn share_copies(graph: &Graph, kernel: &Kernel, space: Space, ops: &mut [OptOp], target: &Target) {
    let is_shared = space.axes.iter().any(|axis| axis.kind == AxisType::Thread && axis.trips != Some(1));
    if target.threads <= 1 || !space.facts.can_copy_before || !is_shared {
        return;
    }
    let planner = Planner { graph, kernel, target, space, ops: Vec::new() };
    for op in ops {
        if let OptOp::Stage(Stage::Param { slot, by: Copier::Loops, .. }) = *op
            && planner.is_worth_a_kernel(slot)
        {
            *op = Stage::Param { slot, at: None, by: Copier::Kernel }.into();
        }
    }
}

impl Planner<'_> {
    /// Whether the copy of a Param is large, invariant in the loops around it, and has work for every thread.
    fn is_worth_a_kernel(&self, of: u32) -> bool {
        let Some(packing) = self.space.packing(of) else { return false };
        let around = &self.space.axes[..self.space.around(&packing)];
        let reads = |access: &usize| slot(self.graph, self.kernel.accesses[*access].buffer) == Some(of);
        let is_worth = |number: usize| {
            let access = &self.kernel.accesses[number];
            let changes = |axis: &Axis| !axis.is_tile() && axis.trips != Some(1) && self.depends(number, axis.origin);
            let cast = self.kernel.widened(self.graph, access.node);
            let size = cast.map_or(access.dtype, |cast| self.graph.dtype(cast)).size() as i64;
            let bytes = self.footprint(number, 0, None, &[]) / access.dtype.size() as i64 * size;
            let is_enough = bytes >= LEAST_BYTES && self.outermost_trips(number) >= self.target.threads as i64;
            is_enough && !around.iter().any(changes)
        };
        (0..self.kernel.accesses.len()).filter(reads).all(is_worth)
    }

    /// Trips of the axis with the longest stride in an access, which becomes the outermost loop of its copy.
    fn outermost_trips(&self, access: usize) -> i64 {
        let step = |axis: &&Axis| self.coefficient(access, axis.origin).saturating_mul(axis.stride).saturating_abs();
        let axes = self.space.axes.iter().filter(|axis| axis.trips != Some(1) && step(axis) != 0);
        axes.max_by_key(step).and_then(|axis| axis.trips).unwrap_or(1)
    }
}
