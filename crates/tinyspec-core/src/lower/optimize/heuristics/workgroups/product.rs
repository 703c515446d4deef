//! Sums of products on a GPU: a workgroup copies blocks of both operands to LOCAL memory, from which each thread reads
//! for a register tile of its own.

use super::super::super::kernel::slot;
use super::super::Planner;
use crate::lower::optimize::transforms::{Copier, OptOp, Split, Stage};
use tinyspec_backends::Workgroups;
use tinyspec_ir::AxisType;

/// Threads along the columns and along the rows of a workgroup's tile.
const THREADS: [i64; 2] = [16, 16];
/// Outputs of a thread along each of them, where there are enough for workgroups everywhere, and where there are few.
const TILES: [i64; 2] = [8, 4];
/// Processors for each tile, at most.
const PROCESSORS: i64 = 8;
/// Columns and rows of a product that is worth copies of its operands.
const LEAST: [i64; 2] = [64, 32];
/// Terms of a block.
const BLOCK: i64 = 16;

/// `out[…, row, …, column, …] = Σ a[row, …, k] · b[k, …, column]`, by positions of the original ranges.
pub(super) struct Product {
    column: usize,
    row: usize,
    term: usize,
    slots: [u32; 2],
}

impl Planner<'_> {
    /// The kernel as a product of two matrices that are worth their copies; where there are few results, threads
    /// share each sum instead.
    pub(super) fn product(&self, limits: &Workgroups) -> Option<Product> {
        let [reduction] = self.kernel.reductions.as_slice() else { return None };
        let [a, b] = self.factors()?;
        let term = self.space.origin(*reduction.ranges.last()?)?;
        let column = self.contiguous_output()?;
        let (panel, rows) = match (self.depends(a, column), self.depends(b, column)) {
            (true, false) => (a, b),
            (false, true) => (b, a),
            _ => return None,
        };
        let is_row = |origin: &usize| self.depends(rows, *origin) && !self.depends(panel, *origin);
        let row = self.outputs().into_iter().filter(is_row).max_by_key(|&origin| self.trips(origin))?;
        let slot = |access: usize| slot(self.graph, self.kernel.accesses[access].buffer);
        let slots = [slot(panel)?, slot(rows)?];
        let tiles = self.trips_of(&self.outputs()) / (THREADS[0] * THREADS[1] * TILES[1].pow(2));
        let is_large = tiles * PROCESSORS >= limits.processors as i64
            && self.trips(column) >= LEAST[0]
            && self.trips(row) >= LEAST[1]
            && self.trips(term) >= BLOCK
            && !self.space.origins[term].merged;
        (is_large && slots[0] != slots[1]).then_some(Product { column, row, term, slots })
    }

    pub(super) fn tile_product(mut self, product: &Product, limits: &Workgroups) -> Vec<OptOp> {
        let results = self.trips_of(&self.outputs());
        let size = |tile: &i64| THREADS[0] * THREADS[1] * tile * tile;
        let is_enough = |tile: &i64| results / size(tile) >= limits.processors as i64;
        let tile = TILES.into_iter().find(is_enough).unwrap_or(TILES[1]);
        for (origin, threads) in [(product.column, THREADS[0]), (product.row, THREADS[1])] {
            let threads = threads.min((limits.size as i64).isqrt());
            let needed = ((self.trips(origin) + threads - 1) / threads) as u64;
            let tile = tile.min(needed.next_power_of_two() as i64);
            let vector = self.lanes().min(tile);
            self.split(origin, threads * tile, AxisType::Upcast);
            // Vectors of neighbours lie side by side: together they read all banks of LOCAL memory.
            for (factor, target) in [(threads * vector, AxisType::Local), (vector, AxisType::Upcast)] {
                if let Some(axis) = self.axis(origin) {
                    self.apply(Split { axis: self.space.name(axis), factor, target, top: false });
                }
            }
        }
        for origin in self.outputs() {
            self.share_trips(origin);
        }
        self.split(product.term, BLOCK, AxisType::Reduce);
        if let Some(at) = self.axis(product.term) {
            for slot in product.slots {
                self.apply(Stage::Param { slot, at: self.space.innermost_loop(at), by: Copier::Loops });
            }
        }
        self.ops
    }
}
