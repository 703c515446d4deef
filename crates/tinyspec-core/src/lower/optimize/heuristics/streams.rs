//! Sums that memory bounds: which places of a large buffer are read side by side.

use super::super::kernel::{Reduction, is_index};
use super::super::opt_op::OptOp;
use super::Planner;
use smallvec::SmallVec;
use tinyspec_ir::{Arg, AxisType, NodeId};

/// Bytes of a row from which on its start, which the processor does not foresee, is rare.
const LONG: i64 = 4096;
/// Operations for each element, below which the processor sees the loads of several trips ahead of itself.
const LABOUR: usize = 6;

/// Rows that are summed at once.
pub(super) struct Beside {
    /// The axis that they follow each other on.
    pub rows: usize,
    /// How many.
    pub count: i64,
    /// Vectors of each in a trip.
    pub vectors: i64,
}

impl Planner<'_> {
    /// Is this a large buffer of which every element is read once? Then no tile shares its elements.
    pub(super) fn is_stream(&self, access: usize) -> bool {
        self.bytes_read_once(access) > self.target.cache_bytes[1] as i64 && self.windows(access).is_empty()
    }

    /// Bytes that an access reads, if each trip of the loops around reads another element; else 0.
    fn bytes_read_once(&self, access: usize) -> i64 {
        let mut origins = self.outputs().into_iter().chain(self.reduced());
        let is_once = origins.all(|origin| self.trips(origin) <= 1 || self.depends(access, origin));
        if is_once { self.footprint(access, 0, None, &[]) } else { 0 }
    }

    /// The output axis of which several rows are summed at once, and how many. The processor reads ahead of each of them by
    /// itself, up to the end of its page: while one begins a page another is in the midst of one. Where the work hides
    /// the loads to come, more rows are more loads in sight.
    pub(super) fn rows_beside(&self, axis: usize) -> Option<Beside> {
        let computes = |node: &&NodeId| self.graph.op(**node).is_elementwise() && !is_index(self.graph, **node);
        let is_laboured = self.kernel.order.iter().filter(computes).count() >= LABOUR;
        let (count, vectors) = if is_laboured { (4, 1) } else { (2, 4) };
        if self.kernel.reductions.len() != 1 {
            return None;
        }
        let last = self.target.cache_bytes[2] as i64;
        let is_long = |access: usize| {
            let row = self.trips(axis).saturating_mul(self.kernel.accesses[access].dtype.size() as i64);
            row >= LONG && self.coefficient(access, axis) == 1 && self.bytes_read_once(access) > last
        };
        let access = (0..self.kernel.accesses.len()).find(|&access| is_long(access))?;
        let rows = self.outputs().into_iter().rfind(|&origin| self.trips(origin) > 1)?;
        let shares = self.trips(rows) % count == 0 && self.trips(rows) >= 4 * count * self.target.threads as i64;
        (shares && self.depends(access, rows)).then_some(Beside { rows, count, vectors })
    }

    /// Sums across rows of a large matrix: blocks of columns, whose sums the first cache holds, are walked row after row,
    /// a few at once. False where that is no way to do it.
    pub(super) fn sum_rows(&mut self, lane: usize, lanes: i64) -> bool {
        /// Rows at once: as many streams that the processor reads ahead of, and loads for each load of a sum.
        const ROWS: i64 = 4;
        /// Vectors of each row in a trip.
        const VECTORS: i64 = 4;
        /// Bytes of a run, below which much of what the processor reads ahead is beyond its end.
        const RUN: i64 = 1024;
        let &[rows] = &self.reduced().collect::<SmallVec<[usize; 2]>>()[..] else { return false };
        let [first, second, last] = self.target.cache_bytes.map(|bytes| bytes as i64);
        let keeps = |reduction: &Reduction| {
            let dtype = self.graph.dtype(reduction.node);
            matches!(self.graph.arg(reduction.node), Arg::Reduce { op, .. } if dtype.accumulator_of(*op) == dtype)
        };
        let size = self.kernel.dtypes(self.graph).map(|dtype| dtype.size() as i64).max().unwrap_or(1);
        // From the last cache, too, long runs are better than the short ones that few registers hold.
        let is_short = self.accumulated(lane, lanes) * lanes * size < RUN;
        let near = if is_short { second } else { last };
        let is_stream = |access: usize| self.coefficient(access, lane) == 1 && self.bytes_read_once(access) > near;
        let (columns, tile) = (self.trips(lane), VECTORS * lanes);
        let room = first / 3 / (size * self.kernel.reductions.len().max(1) as i64);
        let threads = self.target.threads.max(1) as i64;
        let all = self.outputs().into_iter().all(|origin| origin == lane || self.trips(origin) <= 1);
        if !all
            || !self.space.can_sum_rows()
            || !self.kernel.reductions.iter().all(keeps)
            || !(0..self.kernel.accesses.len()).any(is_stream)
            || columns * size < LONG * threads
            || self.trips(rows) % ROWS != 0
        {
            return false;
        }
        let blocks = ((columns + room - 1) / room + threads - 1) / threads * threads;
        let block = ((columns + blocks - 1) / blocks + tile - 1) / tile * tile;
        // Where columns leave a rest each load has a mask. With those the sums are better in registers, and two threads
        // are better with longer runs, as are machines without masks: only the last run has some.
        let has_rest = columns % block != 0;
        if has_rest && (threads > 1 || !self.target.masked_access) {
            return false;
        }
        if let Some(axis) = self.axis(lane).filter(|_| has_rest) {
            self.apply(OptOp::Padto { axis, multiple: block });
        }
        if let Some(axis) = self.axis(lane).filter(|_| columns > block) {
            self.apply(OptOp::Split { axis, factor: block, target: AxisType::Loop, top: false });
            self.share();
        }
        if let Some(axis) = self.axis(lane) {
            self.apply(OptOp::Split { axis, factor: tile, target: AxisType::Upcast, top: false });
        }
        self.far_apart(rows, ROWS, AxisType::Unroll);
        if let (Some(columns), Some(rows)) = (self.axis_of_loop(lane), self.axis_of(rows, AxisType::Reduce))
            && !has_rest
        {
            self.apply(OptOp::Swap(columns, rows));
        }
        true
    }

    /// Some trips of an axis at once, as far from each other as can be: streams that begin side by side are taken for one.
    pub(super) fn far_apart(&mut self, origin: usize, factor: i64, target: AxisType) {
        if let Some(axis) = self.axis(origin) {
            self.apply(OptOp::Split { axis, factor, target, top: true });
        }
    }

    /// Vectors that a sum across rows keeps in registers: the more there are, the longer are the runs in which a row is
    /// read, and the less is read ahead in vain beyond their ends.
    pub(super) fn accumulated(&self, lane: usize, lanes: i64) -> i64 {
        // The rest is for what is added.
        let registers = self.target.vector_registers as i64 * 3 / 4;
        let columns = self.trips(lane);
        let threads = self.target.threads as i64;
        // Each of several threads has some runs.
        let shared = if threads > 1 { columns / (2 * lanes * threads) } else { columns / lanes };
        let most = (registers / self.kernel.reductions.len().max(1) as i64).min(shared).max(1);
        if columns >= 8 * most * lanes && self.target.masked_access {
            return most;
        }
        (1..=most)
            .rev()
            .find(|vectors| columns % (vectors * lanes) == 0)
            .filter(|vectors| 2 * vectors > most)
            .unwrap_or(most)
    }
}
