//! Loops whose conditions leave out many terms.

use crate::lower::optimize::kernel::{Bounded, Kernel};
use crate::lower::optimize::space::Space;
use crate::lower::optimize::transforms::Partition;
use tinyspec_ir::AxisType;

/// The shortest loop that is partitioned: of a shorter one the bounds cost as much as the trips.
const LEAST_TRIPS: i64 = 16;
/// Results of a tile that must share the remaining terms, to repay the loops over these.
const LEAST_SHARED: i64 = 4;

/// Partitions the innermost loop that conditions bound, once the axes are final, where most of the work is left out.
pub(in super::super) fn partition(kernel: &Kernel, space: &Space) -> Option<Partition> {
    let axis = (0..space.axes.len()).rev().find(|&axis| space.can_partition(axis))?;
    let own = &space.axes[axis];
    let bounded = kernel.bounded().find(|bounded| space.origin(bounded.range) == Some(own.origin))?;
    let pays = own.trips? >= LEAST_TRIPS && (bounded.is_rest_empty || shared(kernel, space, bounded) >= LEAST_SHARED);
    pays.then(|| Partition { axis: own.name() })
}

/// Results of the register tile for which the rest of the terms is the same.
fn shared(kernel: &Kernel, space: &Space, bounded: &Bounded) -> i64 {
    let is_shared = |origin: usize| kernel.live.bit(space.origins[origin].range) & bounded.shared != 0;
    let tile = space.axes.iter().filter(|axis| axis.kind == AxisType::Upcast && is_shared(axis.origin));
    tile.fold(1, |tile, axis| tile * axis.trips.unwrap_or(1))
}
