//! Sums of products on a GPU: a workgroup copies blocks of both operands to LOCAL memory, from which each thread reads
//! for a register tile of its own.

use super::super::super::kernel::slot;
use super::super::Planner;
use crate::lower::optimize::transforms::{Copier, OptOp, Split, Stage};
use tinyspec_ir::{Arg, AxisType, Op};

/// Threads along the columns and along the rows of a workgroup's tile.
const THREADS: [i64; 2] = [16, 8];
/// Outputs of a thread along each of them.
const TILE: i64 = 4;
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
    /// The kernel as a product of two matrices that are worth their copies.
    pub(super) fn product(&self) -> Option<Product> {
        let [reduction] = self.kernel.reductions.as_slice() else { return None };
        let Arg::Reduce { op: Op::Add, .. } = self.graph.arg(reduction.node) else { return None };
        let product = self.graph.source(reduction.node, 0);
        if self.graph.op(product) != Op::Mul {
            return None;
        }
        let (a, b) = (self.loaded(self.graph.source(product, 0))?, self.loaded(self.graph.source(product, 1))?);
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
        let is_large = self.trips(column) >= THREADS[0] * TILE
            && self.trips(row) >= THREADS[1] * TILE
            && self.trips(term) >= BLOCK
            && !self.space.origins[term].merged;
        (is_large && slots[0] != slots[1]).then_some(Product { column, row, term, slots })
    }

    pub(super) fn tile_product(mut self, product: &Product) -> Vec<OptOp> {
        for (origin, threads) in [(product.column, THREADS[0]), (product.row, THREADS[1])] {
            self.split(origin, threads * TILE, AxisType::Local);
            if let Some(axis) = self.axis(origin) {
                self.apply(Split { axis: self.space.name(axis), factor: TILE, target: AxisType::Upcast, top: false });
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
