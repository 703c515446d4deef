//! Sums of products over a register tile.

use super::super::kernel::slot;
use super::super::opt_op::OptOp;
use super::super::space::Space;
use super::Planner;
use tinyspec_ir::{Arg, AxisType, Op};

/// `C[m, n] = Σk A[m, k] · B[k, n]`, by positions of the original ranges.
pub(super) struct MatrixProduct {
    rows: usize,
    columns: usize,
    /// The access that reads the panel.
    panel: usize,
    right: u32,
    right_is_contiguous: bool,
}

impl Planner<'_> {
    pub(super) fn matrix_product(&self) -> Option<MatrixProduct> {
        let [reduction] = self.kernel.reductions.as_slice() else { return None };
        let Arg::Reduce { op: Op::Add, .. } = self.graph.arg(reduction.node) else { return None };
        let product = self.graph.source(reduction.node, 0);
        if self.graph.op(product) != Op::Mul || self.target.vector_bytes == 0 {
            return None;
        }
        let (a, b) = (self.loaded(self.graph.source(product, 0))?, self.loaded(self.graph.source(product, 1))?);
        let outputs = self.outputs();
        let store = self.kernel.accesses.iter().position(|access| access.is_store)?;
        let columns = *outputs.iter().find(|&&origin| self.coefficient(store, origin) == 1)?;
        let (left, right) = match (self.depends(a, columns), self.depends(b, columns)) {
            (false, true) => (a, b),
            (true, false) => (b, a),
            _ => return None,
        };
        // The innermost other axis that only the left operand depends on.
        let rows = *outputs.iter().rev().find(|&&origin| {
            origin != columns && self.depends(left, origin) && !self.depends(right, origin) && self.trips(origin) > 1
        })?;
        // A row may have one element a step, but the panel must be regular.
        let regular = self.kernel.accesses[right].index.terms.iter().all(|&(atom, _)| self.graph.op(atom) == Op::Range);
        let right_slot = slot(self.graph, self.kernel.accesses[right].buffer)?;
        let only_use =
            self.kernel.accesses.iter().filter(|access| slot(self.graph, access.buffer) == Some(right_slot)).count()
                == 1;
        (regular && only_use).then(|| MatrixProduct {
            rows,
            columns,
            panel: right,
            right: right_slot,
            right_is_contiguous: self.coefficient(right, columns) == 1,
        })
    }

    /// A register tile of rows × vectors, over a packed panel of the right operand.
    pub(super) fn tile(mut self, product: &MatrixProduct) -> Vec<OptOp> {
        let lanes = self.lanes();
        let (rows, columns) = (self.trips(product.rows), self.trips(product.columns));
        if columns * 4 < lanes * 3 && !self.target.masked_access || columns < 2 {
            return self.vectorize();
        }
        let width = panel_width(columns, lanes);
        let vectors = width / lanes;
        let greatest = ((self.target.vector_registers as i64 - 1 - vectors) / vectors).clamp(1, 14);
        let height = tile_height(rows, greatest);
        self.split(product.columns, width, AxisType::Upcast);
        self.split(product.rows, height, AxisType::Upcast);

        // Column panels outside, so that each is packed once; rows walk over it.
        let outer = |space: &Space, origin: usize| space.axes.iter().position(|axis| axis.origin == origin);
        let panels = (columns + width - 1) / width;
        let row_tiles = (rows + height - 1) / height;
        let windows = self.windows(product.panel);
        // Packed, an element would be copied for every window that it lies in.
        let pack = windows.is_empty() && (row_tiles >= 8 || !product.right_is_contiguous && row_tiles >= 2);
        let parallel = self.target.threads as i64;
        if (pack || windows.is_empty() && panels >= parallel)
            && let (Some(a), Some(b)) = (outer(&self.space, product.rows), outer(&self.space, product.columns))
            && panels > 1
            && a < b
        {
            self.apply(OptOp::Swap(a, b));
        }
        self.outside(&windows);
        self.share();
        if pack && let Some(at) = outer(&self.space, product.columns) {
            self.apply(OptOp::Stage { slot: product.right, at });
        }
        self.ops
    }

    /// Reduction ranges that an access walks in the same steps as an output range: those of overlapping windows.
    fn windows(&self, access: usize) -> Vec<usize> {
        let outputs = self.outputs();
        let ranges = self.kernel.reductions.iter().flat_map(|reduction| &reduction.ranges);
        ranges
            .filter_map(|&range| self.space.origin(range))
            .filter(|&origin| {
                let step = self.coefficient(access, origin);
                step != 0 && outputs.iter().any(|&output| self.coefficient(access, output) == step)
            })
            .collect()
    }

    /// Moves reduction ranges outside of all others: what depends on them, such as the gates of a padded window, is
    /// then computed once for a whole loop.
    fn outside(&mut self, ranges: &[usize]) {
        let places: Vec<usize> =
            (0..self.space.axes.len()).filter(|&axis| self.space.axes[axis].kind.is_reduce()).collect();
        let is_first = |space: &Space, axis: usize| ranges.contains(&space.axes[axis].origin);
        for (position, &place) in places.iter().enumerate() {
            // One step at a time, so that the others keep their order.
            let Some(from) = (position..places.len()).find(|&other| is_first(&self.space, places[other])) else {
                return;
            };
            for step in (position..from).rev() {
                self.apply(OptOp::Swap(places[step], places[step + 1]));
            }
            debug_assert!(is_first(&self.space, place));
        }
    }
}

/// Two vectors make good use of each loaded row element; another width where it pads less.
fn panel_width(columns: i64, lanes: i64) -> i64 {
    let cost = |vectors: i64| {
        let width = vectors * lanes;
        let padded = (columns + width - 1) / width * width;
        padded * if vectors == 1 { 5 } else { 4 }
    };
    lanes * [2, 3, 1].into_iter().min_by_key(|&vectors| cost(vectors)).unwrap_or(1)
}

/// The tallest tile that divides the rows, unless that is much lower than what the registers hold.
fn tile_height(rows: i64, greatest: i64) -> i64 {
    let divisor = (1..=greatest).rev().find(|height| rows % height == 0).unwrap_or(1);
    if divisor * 2 >= greatest.min(rows).min(8) {
        return divisor;
    }
    let height = greatest.min(8).min(rows);
    // Of the heights that need as many tiles, the lowest.
    let tiles = (rows + height - 1) / height;
    (rows + tiles - 1) / tiles
}
