//! Matrix-vector products and other sums over a large operand that is read once (GEMV), which memory bounds: how many rows are read at
//! a time, and in which order.

use super::super::kernel::{Reduction, is_index};
use super::Planner;
use crate::lower::optimize::transforms::{Padto, Split};
use smallvec::SmallVec;
use tinyspec_ir::{Arg, AxisType, NodeId};

/// Bytes of a row from which on few loads are at the start of one, where the hardware prefetcher has nothing to go by.
const LONG: i64 = 4096;
/// Bytes of a run; for a shorter one, many of the hardware's prefetches lie beyond its end.
const RUN: i64 = 1024;
/// Bytes of a line of the caches.
const LINE: usize = 64;
/// Operations per element below which out-of-order execution reaches the loads of several later trips.
const MIN_OPS_PER_LOAD: usize = 6;

/// The most results that may share each element of a large matrix if reading it is to set the pace: with short vectors, which take
/// more instructions per element, and with long ones.
const MAX_GEMV_ROWS: [i64; 2] = [4, 8];

/// Rows that one trip reads together.
pub(super) struct ParallelRows {
    /// The axis over them.
    pub rows: usize,
    /// How many.
    pub count: i64,
    /// Vectors of each in a trip.
    pub vectors: i64,
    /// Output axes whose results share what is read.
    pub sharing: SmallVec<[usize; 2]>,
}

/// How sums across the rows of a large matrix are computed.
struct Rows {
    /// The axis over the rows.
    rows: usize,
    /// How many are added at once.
    count: i64,
    /// Columns whose sums a cache holds.
    block: i64,
    /// Columns of a trip.
    tile: i64,
    /// Output axes whose results share what is read.
    sharing: SmallVec<[usize; 2]>,
}

impl Planner<'_> {
    /// Whether this is a large buffer whose elements are each read once, so that no tile shares them.
    pub(super) fn is_stream(&self, access: usize) -> bool {
        self.bytes_read_once(access) > self.target.cache_bytes[1] as i64 && self.windows(access).is_empty()
    }

    /// Bytes that an access reads, if each trip of the loops around reads another element; else 0.
    fn bytes_read_once(&self, access: usize) -> i64 {
        let mut origins = self.outputs().into_iter().chain(self.reduced());
        let is_once = origins.all(|origin| self.trips(origin) <= 1 || self.depends(access, origin));
        if is_once { self.footprint(access, 0, None, &[]) } else { 0 }
    }

    /// Output axes that an access does not depend on, and the results along them: as many share each of its elements.
    pub(super) fn sharing(&self, access: usize) -> (SmallVec<[usize; 2]>, i64) {
        let mut axes: SmallVec<[usize; 2]> = self.outputs().into_iter().collect();
        axes.retain(|&mut origin| self.trips(origin) > 1 && !self.depends(access, origin));
        let results = axes.iter().map(|&origin| self.trips(origin)).product();
        (axes, results)
    }

    /// Bytes that an access reads, if no more than a few results share each element; else 0.
    fn bytes_read_by_few(&self, access: usize) -> i64 {
        let [short, long] = MAX_GEMV_ROWS;
        let most = if self.has_short_vectors() { short } else { long };
        let is_few = self.sharing(access).1 <= most;
        let is_once = self.reduced().all(|origin| self.trips(origin) <= 1 || self.depends(access, origin));
        if is_few && is_once { self.footprint(access, 0, None, &[]) } else { 0 }
    }

    /// Whether this is a product of a few rows and a large matrix, which is read as for one row.
    pub(super) fn is_for_few(&self) -> bool {
        let &[axis] = &self.reduced().collect::<SmallVec<[usize; 2]>>()[..] else { return false };
        let is_shared = |&access: &usize| {
            let is_few = self.sharing(access).1 > 1 && self.bytes_read_by_few(access) > 0;
            is_few && self.windows(access).is_empty()
        };
        let Some(access) = (0..self.kernel.accesses.len()).find(is_shared) else { return false };
        match self.contiguous_output().filter(|&lane| self.coefficient(access, lane) == 1) {
            Some(lane) => self.rows_to_sum(lane, self.lanes()).is_some(),
            None => self.parallel_rows(axis).is_some(),
        }
    }

    /// The output axis of which one trip reads several rows, and how many. The hardware prefetches each row as a stream of its own, up to
    /// the end of its page; while one row begins a page, the others are in the middle of theirs. Where the arithmetic of a trip keeps
    /// later loads out of the reorder window, more rows put more loads in flight.
    pub(super) fn parallel_rows(&self, axis: usize) -> Option<ParallelRows> {
        let computes = |node: &&NodeId| self.graph.op(**node).is_elementwise() && !is_index(self.graph, **node);
        let has_long_terms = self.kernel.order.iter().filter(computes).count() >= MIN_OPS_PER_LOAD;
        if self.kernel.reductions.len() != 1 {
            return None;
        }
        let second = self.target.cache_bytes[1] as i64;
        let is_long = |access: usize| {
            let row = self.trips(axis).saturating_mul(self.kernel.accesses[access].dtype.size() as i64);
            row >= RUN && self.coefficient(access, axis) == 1 && self.bytes_read_by_few(access) > second
        };
        let access = (0..self.kernel.accesses.len()).find(|&access| is_long(access))?;
        let (sharing, results) = self.sharing(access);
        let rows = self.outputs().into_iter().rfind(|&origin| self.trips(origin) > 1 && !sharing.contains(&origin))?;
        let is_shared = (0..self.kernel.accesses.len()).any(|other| !self.depends(other, rows));
        let (count, vectors) = match self.has_short_vectors() {
            _ if has_long_terms && results == 1 => (4, 1),
            // Registers hold eight sums and their operands.
            true if results > 2 => (2, 1),
            true if is_shared => (4, 2 / results),
            // With four vectors each lane adds fewer terms, and rounds less, than with two.
            _ if results == 1 => (2, 4),
            // As many sums as fit in registers beside their operands.
            _ => ((self.target.vector_registers as i64 * 3 / 4 / results).clamp(1, 3), 1),
        };
        // Where the rows leave a remainder, trips beyond the end read a neighbouring row.
        let shares = self.trips(rows) >= 4 * count * self.target.threads as i64;
        (shares && self.depends(access, rows)).then_some(ParallelRows { rows, count, vectors, sharing })
    }

    /// How sums across rows of a large matrix are made, if they can be.
    fn rows_to_sum(&self, lane: usize, lanes: i64) -> Option<Rows> {
        /// The most rows per trip. Each row is a stream for the hardware prefetcher, and one sum is loaded for that many rows. The
        /// second number applies if there are sums of several results, which share the first-level cache with the rows.
        const ROWS: [i64; 2] = [4, 8];
        /// Vectors of each row in a trip.
        const VECTORS: i64 = 4;
        /// Sums of a trip: the factor of each row is loaded once for the vectors of a result.
        const SUMS: [i64; 2] = [8, 16];
        /// Columns for each one that is padded, if blocks cannot end in the last trip.
        const WASTE: i64 = 64;
        let &[rows] = &self.reduced().collect::<SmallVec<[usize; 2]>>()[..] else { return None };
        let second = self.target.cache_bytes[1] as i64;
        let keeps = |reduction: &Reduction| {
            let dtype = self.graph.dtype(reduction.node);
            matches!(self.graph.arg(reduction.node), Arg::Reduce { op, .. } if dtype.accumulator_of(*op) == dtype)
        };
        let size = self.kernel.dtypes(self.graph).map(|dtype| dtype.size() as i64).max().unwrap_or(1);
        let is_short = self.has_short_vectors();
        let is_stream =
            |&access: &usize| self.coefficient(access, lane) == 1 && self.bytes_read_by_few(access) > second;
        let access = (0..self.kernel.accesses.len()).find(is_stream)?;
        let (sharing, results) = self.sharing(access);
        // Long runs of each row, whose sums come from the second cache, are read faster than short ones whose sums the first
        // holds: [2048, 5632] at 29 GB/s instead of 17 (Zen 4).
        let room = match results {
            _ if is_short => second / 2,
            1 => second / 16,
            _ => second / 8,
        };
        let room = (room / (size * results * self.kernel.reductions.len().max(1) as i64)).max(1);
        let [least, greatest] = SUMS;
        let vectors = match results {
            _ if is_short => VECTORS / results,
            results => (least / results).max(2).min(greatest / results),
        };
        let (columns, tile) = (self.trips(lane), vectors.clamp(1, VECTORS) * lanes);
        let threads = self.target.threads.max(1) as i64;
        let all = |origin: &usize| *origin == lane || self.trips(*origin) <= 1 || sharing.contains(origin);
        // Rows that are walked whole follow each other.
        let long = if columns <= room && threads == 1 { RUN } else { LONG * threads };
        if !self.outputs().iter().all(all)
            || !self.space.can_sum_rows()
            || !self.kernel.reductions.iter().all(keeps)
            || columns * size < long
        {
            return None;
        }
        let [some, many] = ROWS;
        // Beyond `held` rows the factors no longer fit in registers: each trip loads them from the first-level cache.
        let held = self.target.vector_registers as i64 * 3 / 4 / results;
        let (fewest, most) = match results {
            _ if is_short => (2, some),
            1 => (some, some),
            _ if held < some => (some, many),
            _ => (some, held.min(many)),
        };
        let count = (fewest..=most).rev().find(|count| self.trips(rows) % count == 0)?;
        let least = ((columns + room - 1) / room + threads - 1) / threads * threads;
        let even = |blocks: i64| ((columns + blocks - 1) / blocks + tile - 1) / tile * tile;
        let (block, tile) = if columns % even(least) == 0 {
            (even(least), tile)
        } else {
            // Blocks take as many trips each. Where they end in the last trip, only that one has masks.
            let most = (columns * size / (2 * RUN)).max(least);
            let plan = |tile: i64, fewest: i64, most: i64, waste: i64| {
                let trips = (columns + tile - 1) / tile;
                let length = |blocks: i64| (trips + blocks - 1) / blocks * tile;
                let fits = |blocks: &i64| length(*blocks) * blocks - columns <= waste;
                let shares = |blocks: &i64| blocks % threads == 0 || *blocks >= 8 * threads;
                let blocks = (fewest..=most).find(|blocks| fits(blocks) && shares(blocks))?;
                Some((blocks, -tile, length(blocks)))
            };
            let tiles = || (1..=tile / lanes).map(|vectors| vectors * lanes);
            let exact = tiles().filter_map(|tile| plan(tile, least, 2 * least, tile)).min();
            let padded = || tiles().filter_map(|tile| plan(tile, least, most, tile.max(columns / WASTE))).min();
            let (_, tile, block) = exact.or_else(padded)?;
            (block, -tile)
        };
        Some(Rows { rows, count, block, tile, sharing })
    }

    /// Sums across rows of a large matrix: blocks of columns, whose sums a cache holds, are walked row after row, a few at
    /// once. False where that does not apply.
    pub(super) fn sum_rows(&mut self, lane: usize, lanes: i64) -> bool {
        let Some(Rows { rows, count, block, tile, sharing }) = self.rows_to_sum(lane, lanes) else {
            return false;
        };
        let columns = self.trips(lane);
        self.share_elements(&sharing);
        if let Some(axis) = self.axis(lane).filter(|_| columns % block != 0) {
            self.apply(Padto { axis: self.space.name(axis), multiple: block });
        }
        if let Some(axis) = self.axis(lane).filter(|_| columns > block) {
            self.apply(Split { axis: self.space.name(axis), factor: block, target: AxisType::Loop, top: false });
            self.share();
        }
        if let Some(axis) = self.axis(lane) {
            self.apply(Split { axis: self.space.name(axis), factor: tile, target: AxisType::Upcast, top: false });
        }
        self.far_apart(rows, count, AxisType::Unroll);
        if let (Some(columns), Some(rows)) = (self.axis_of_loop(lane), self.axis_of(rows, AxisType::Reduce)) {
            self.swap(columns, rows);
        }
        true
    }

    /// Puts all results that share the elements read into the tile.
    pub(super) fn share_elements(&mut self, sharing: &[usize]) {
        for &origin in sharing {
            self.split(origin, self.trips(origin), AxisType::Upcast);
        }
    }

    /// Runs some trips of an axis at once, as far apart as possible: the prefetcher takes streams that begin side by side
    /// for one.
    pub(super) fn far_apart(&mut self, origin: usize, factor: i64, target: AxisType) {
        if let Some(axis) = self.axis(origin) {
            if self.trips(origin) % factor != 0 {
                self.apply(Padto { axis: self.space.name(axis), multiple: factor });
            }
            self.apply(Split { axis: self.space.name(axis), factor, target, top: true });
        }
    }

    /// Whether a cache line holds several vectors. Then there are more instructions per line, and registers hold less.
    pub(super) fn has_short_vectors(&self) -> bool {
        self.target.vector_bytes < LINE
    }

    /// Vectors that a sum across rows keeps in registers: the more there are, the longer are the runs in which a row is
    /// read, and the less is prefetched in vain beyond their ends.
    pub(super) fn accumulated(&self, lane: usize, lanes: i64) -> i64 {
        // The other registers hold the terms.
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
