//! Schedules made by hand-written rules; the search will start from them.

use super::kernel::{Kernel, slot};
use super::opt_op::OptOp;
use super::space::Space;
use crate::lower::select::decompose::Sizes;
use tinyspec_backends::Target;
use tinyspec_ir::{Arg, AxisType, Graph, NodeId, Op};

/// The schedule of a kernel for this target.
pub fn choose(graph: &Graph, kernel: &Kernel, target: &Target) -> Vec<OptOp> {
    let planner = Planner { graph, kernel, target, space: Space::new(graph, kernel), ops: Vec::new() };
    match planner.matrix_product() {
        Some(product) => planner.tile(&product),
        None => planner.vectorize(),
    }
}

struct Planner<'a> {
    graph: &'a Graph,
    kernel: &'a Kernel,
    target: &'a Target,
    space: Space,
    ops: Vec<OptOp>,
}

/// `C[m, n] = Σk A[m, k] · B[k, n]`, by positions of the original ranges.
struct MatrixProduct {
    rows: usize,
    columns: usize,
    /// The access that reads the panel.
    panel: usize,
    right: u32,
    right_is_contiguous: bool,
}

impl Planner<'_> {
    fn apply(&mut self, op: OptOp) {
        if self.space.apply(&op).is_ok() {
            self.ops.push(op);
        }
    }

    /// Lanes of a vector: as many as of the smallest type in memory, but bytes do not set the pace.
    fn lanes(&self) -> i64 {
        super::super::lanes(self.target, self.kernel.accesses.iter().map(|access| access.dtype)) as i64
    }

    /// Position of the innermost axis of an original range.
    fn axis(&self, origin: usize) -> Option<usize> {
        self.space.axes.iter().rposition(|axis| axis.origin == origin)
    }

    fn trips(&self, origin: usize) -> i64 {
        self.space.origins[origin].trips.unwrap_or(0)
    }

    fn coefficient(&self, access: usize, origin: usize) -> i64 {
        self.kernel.accesses[access].index.coefficient(self.space.origins[origin].range)
    }

    fn depends(&self, access: usize, origin: usize) -> bool {
        self.kernel.accesses[access].open & self.kernel.live.bit(self.space.origins[origin].range) != 0
    }

    /// The access of a Load, looked for through Casts.
    fn loaded(&self, value: NodeId) -> Option<usize> {
        let mut value = value;
        while self.graph.op(value) == Op::Cast {
            value = self.graph.source(value, 0);
        }
        self.kernel.accesses.iter().position(|access| access.node == value)
    }

    /// Output ranges of the only nest that were not merged away.
    fn outputs(&self) -> Vec<usize> {
        let [nest] = self.kernel.nests.as_slice() else { return Vec::new() };
        let origins = nest.ranges.iter().filter_map(|&range| self.space.origin(range));
        origins.filter(|&origin| !self.space.origins[origin].merged).collect()
    }

    fn matrix_product(&self) -> Option<MatrixProduct> {
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
    fn tile(mut self, product: &MatrixProduct) -> Vec<OptOp> {
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

    /// Vectors along the axis that memory is contiguous in: an output axis, or that of a reduction.
    fn vectorize(mut self) -> Vec<OptOp> {
        let lanes = self.lanes();
        if lanes > 1 {
            let last = self.contiguous_output();
            let (mut veto, mut accumulates) = (false, false);
            let mut split: Vec<(usize, i64)> = Vec::new();
            for reduction in &self.kernel.reductions {
                let Some(axis) = reduction.ranges.last().and_then(|&range| self.space.origin(range)) else { continue };
                let inside = self.kernel.live.bit(self.space.origins[axis].range);
                let inside: Vec<usize> = (0..self.kernel.accesses.len())
                    .filter(|&access| self.kernel.accesses[access].open & inside != 0)
                    .collect();
                let contiguous =
                    |origin: usize| inside.iter().filter(|&&access| self.coefficient(access, origin) == 1).count();
                let crossed = last.is_some_and(|last| inside.iter().any(|&access| self.depends(access, last)));
                let along = contiguous(axis);
                let across = last.filter(|_| crossed).map_or(0, contiguous);
                if across > 0 && (across >= along || self.trips(axis) < 2 * lanes) {
                    accumulates = true;
                    continue;
                }
                if along > 0 || inside.is_empty() {
                    split.push((axis, self.target.accumulators.clamp(1, 8) as i64 / 2));
                }
                veto |= crossed;
            }
            for (axis, vectors) in split {
                self.split_by_vectors(axis, lanes, vectors.max(1), AxisType::Unroll);
            }
            if let Some(last) = last.filter(|_| !veto) {
                let sizes = Sizes::of(self.target);
                let computed = self.kernel.order.iter().filter(|&&node| self.graph.op(node).is_elementwise());
                let work: usize = computed.map(|&node| sizes.size(self.graph, node)).sum();
                let vectors = match work {
                    // Enough work to keep the units busy, and as much code as is good for one loop.
                    60.. => 1,
                    _ if accumulates => self.target.accumulators.clamp(1, 8) as i64,
                    _ => 4,
                };
                self.split_by_vectors(last, lanes, vectors, AxisType::Upcast);
                self.block(last);
            }
        }
        self.share();
        self.ops
    }

    /// The output axis that stores, or else loads, are contiguous in.
    fn contiguous_output(&self) -> Option<usize> {
        let outputs = self.outputs();
        let stores: Vec<usize> =
            (0..self.kernel.accesses.len()).filter(|&access| self.kernel.accesses[access].is_store).collect();
        outputs
            .into_iter()
            .rev()
            .find(|&origin| self.trips(origin) > 1 && stores.iter().all(|&store| self.coefficient(store, origin) == 1))
    }

    /// Where reads cross the vectors, as in a transpose: walks blocks, so that every line read is used while cached.
    fn block(&mut self, lane: usize) {
        const BLOCK: i64 = 16;
        let crossing = (0..self.kernel.accesses.len()).find_map(|access| {
            let is_crossed = !self.kernel.accesses[access].is_store && self.coefficient(access, lane).abs() > 1;
            let mut outputs = self.outputs().into_iter();
            outputs.find(|&origin| is_crossed && self.coefficient(access, origin) == 1)
        });
        let Some(other) = crossing.filter(|&other| self.trips(other) % BLOCK == 0 && self.trips(other) > BLOCK) else {
            return;
        };
        if let Some(axis) = self.axis(other) {
            self.apply(OptOp::Split { axis, factor: BLOCK, target: AxisType::Loop, top: false });
        }
        // The inside of the block becomes the innermost loop.
        let loops = |space: &Space, origin: usize| {
            space.axes.iter().rposition(|axis| axis.origin == origin && axis.kind == AxisType::Loop)
        };
        if let (Some(inner), Some(outer)) = (loops(&self.space, other), loops(&self.space, lane))
            && inner < outer
        {
            self.apply(OptOp::Swap(inner, outer));
        }
    }

    /// Splits off up to `vectors` vectors; pads where that costs little, else leaves the axis alone.
    fn split_by_vectors(&mut self, origin: usize, lanes: i64, vectors: i64, target: AxisType) {
        let trips = self.trips(origin);
        let mut factor = lanes * vectors;
        while factor > lanes && (trips < factor || trips % factor != 0 && trips < 8 * factor) {
            factor /= 2;
        }
        // Without masks a narrower vector that divides is better than a padded one.
        while !self.target.masked_access && factor > 1 && trips % factor != 0 {
            factor /= 2;
        }
        if factor > 1 && trips * 2 >= lanes {
            self.split(origin, factor, target);
        }
    }

    fn split(&mut self, origin: usize, factor: i64, target: AxisType) {
        let trips = self.trips(origin);
        if factor <= 1 || trips <= 1 {
            return;
        }
        if let Some(axis) = self.axis(origin) {
            if trips % factor != 0 {
                self.apply(OptOp::Padto { axis, multiple: factor });
            }
            self.apply(OptOp::Split { axis, factor, target, top: false });
        }
    }

    /// The outermost loop goes to the threads.
    fn share(&mut self) {
        if self.kernel.nests.len() != 1 {
            return;
        }
        let outermost = self.space.axes.iter().position(|axis| axis.trips != Some(1) && axis.kind == AxisType::Loop);
        if let Some(axis) = outermost
            && let Some(trips) = self.space.axes[axis].trips
        {
            self.apply(OptOp::Split { axis, factor: trips, target: AxisType::Global, top: true });
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
