//! Copies that are made on the way, by the first of the trips that read them: memory is then waited for while multiply-adds
//! have work, and no loop but theirs is run.

use super::walk::CopyWalk;
use super::{Group, Rebuild};
use crate::lower::fold::both;
use smallvec::SmallVec;
use tinyspec_ir::affine::{Affine, less};
use tinyspec_ir::{AxisType, Graph, Result};

impl Rebuild<'_> {
    /// Copies by the axes that read, in the first trips of those that move along no dim of the source. Whatever the
    /// order of the loops is, an element is copied before it is read again. `None` where an axis does not reach every
    /// element once, or where threads have trips of their own.
    pub(super) fn first_trip(&self, graph: &mut Graph, groups: &[Group], inside: &[usize]) -> Result<Option<CopyWalk>> {
        // Of several nests, not every loop is around the read.
        if self.kernel.nests.len() != 1 {
            return Ok(None);
        }
        let is_tile = |axis: usize| matches!(self.space.axes[axis].kind, AxisType::Upcast | AxisType::Unroll);
        let is_loop = |axis: usize| matches!(self.space.axes[axis].kind, AxisType::Loop | AxisType::Reduce);
        let mut positions = Vec::with_capacity(groups.len());
        for group in groups {
            match group.steps.as_slice() {
                [(axis, 1)] if group.low == 0 => positions.extend(self.axes[*axis].map(Affine::atom)),
                _ => return Ok(None),
            }
        }
        // Nor is the loop of a Reduce.
        let is_again = |axis: usize| {
            self.space.axes[axis].kind == AxisType::Loop && groups.iter().all(|group| group.step(axis) == 0)
        };
        let again: SmallVec<[usize; 8]> = inside.iter().copied().filter(|&axis| is_again(axis)).collect();
        let is_regular = inside.iter().all(|&axis| is_tile(axis) || is_loop(axis));
        if positions.len() != groups.len() || again.is_empty() || !is_regular {
            return Ok(None);
        }
        let mut holds = None;
        for range in again.iter().filter_map(|&axis| self.axes[axis]) {
            let first = less(graph, &Affine::atom(range), &Affine::number(1))?;
            holds = both(graph, holds, Some(first))?;
        }
        Ok(Some(CopyWalk { positions, loops: Vec::new(), inside_source: holds, inside_copy: holds }))
    }
}
