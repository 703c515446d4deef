//! Cache blocking of a product: a block that is copied or read stays in the caches while the other operand is streamed.

use super::super::super::axis::Axis;
use super::{Contraction, Planner};
use crate::lower::optimize::transforms::Split;
use tinyspec_ir::AxisType;

/// Registers of a processor whose tiles are small.
const FEW_REGISTERS: usize = 16;

impl Planner<'_> {
    /// A tile of rows is multiplied by all panels of a block before the next tile, and stays in the caches meanwhile.
    pub(super) fn block_inside(&mut self, tile: &Contraction) {
        let of_lane = |axis: &Axis| axis.origin == tile.lane && axis.kind == AxisType::Loop;
        let block = self.space.axes.iter().rposition(of_lane);
        let rows = tile.heights.first().and_then(|&(origin, _)| self.outermost(origin));
        if let (Some(block), Some(outer), Some(rows)) = (block, self.outermost(tile.lane), rows)
            && outer < block
            && block < rows
        {
            self.swap(block, rows);
        }
    }

    /// Rows come from the last cache for each panel anew, and tiles are too small to wait for them: with few registers
    /// an element of them is multiplied with two vectors, and few multiply-adds are underway.
    pub(super) fn are_rows_far(&self, tile: &Contraction) -> bool {
        let rows = self.footprint(tile.rows, 0, None, &self.shared(tile.panel, tile.rows));
        self.target.vector_registers <= FEW_REGISTERS && rows > self.target.cache_bytes[1] as i64 / 2
    }

    /// As many panels are packed at once as the second-level cache holds: their lines and pages lie side by side.
    pub(super) fn block_panels(&mut self, tile: &Contraction) {
        let Some(axis) = self.outermost(tile.lane) else { return };
        let trips = self.space.axes[axis].trips.unwrap_or(1);
        let cache = self.target.cache_bytes[1] as i64;
        let block = (2..=trips / 2).rev().find(|&block| {
            // Two panels already halve the traffic from the last-level cache.
            let limit = if block == 2 && self.are_rows_far(tile) { cache / 2 } else { cache / 4 };
            trips % block == 0
                && (trips / block) % self.target.threads as i64 == 0
                && self.footprint(tile.panel, axis + 1, Some((axis, block)), &[]) <= limit
        });
        if let Some(factor) = block {
            self.apply(Split { axis: self.space.name(axis), factor, target: AxisType::Loop, top: false });
        }
    }

    /// As many rows at once as the second-level cache holds beside the panels: neighbours share most of their windows.
    pub(super) fn block_rows(&mut self, tile: &Contraction) {
        let Some(panels) = self.outermost(tile.lane) else { return };
        // Fewer blocks of pairs of lines come out even, and short ones copy their neighbours' lines too (measured).
        let has_pairs = tile.heights.get(1).is_some_and(|&(lines, _)| self.is_windowed(tile.rows, lines));
        let limit = self.target.cache_bytes[1] as i64 / if has_pairs { 3 } else { 4 };
        let Some(outer) = (0..panels).rev().find(|&axis| {
            let axis = &self.space.axes[axis];
            axis.kind == AxisType::Loop && axis.trips.is_some_and(|trips| trips > 1)
        }) else {
            return;
        };
        if self.depends(tile.panel, self.space.axes[outer].origin) {
            return;
        }
        let trips = self.space.axes[outer].trips.unwrap_or(1);
        let threads = self.target.threads as i64;
        let is_outermost = (0..outer).all(|axis| self.space.axes[axis].trips == Some(1));
        let block = (2..=trips).rev().find(|&block| {
            let balanced = !is_outermost || (trips / block) % threads == 0;
            trips % block == 0 && balanced && self.footprint(tile.rows, panels, Some((outer, block)), &[]) <= limit
        });
        if let Some(factor) = block {
            self.apply(Split { axis: self.space.name(outer), factor, target: AxisType::Loop, top: false });
            // The panels go around the block.
            if factor < trips || trips > 1 {
                let panels = self.outermost(tile.lane).unwrap_or(panels);
                for axis in (outer + 2..=panels).rev() {
                    self.swap(axis - 1, axis);
                }
            }
        }
    }
}
