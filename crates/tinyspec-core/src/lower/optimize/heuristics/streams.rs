//! Sums that memory bounds: which places of a large buffer are read side by side.

use super::super::kernel::is_index;
use super::Planner;
use tinyspec_ir::NodeId;

/// Bytes of a row from which on its start, which the processor does not foresee, is rare.
const LONG: i64 = 4096;
/// Operations for each element, below which the processor sees the loads of several trips ahead of itself.
const LABOUR: usize = 6;

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

    /// The output axis of which two rows are summed at once. The processor reads ahead of each of them by itself, up to
    /// the end of its page: while one begins a page the other is in the midst of one.
    pub(super) fn rows_beside(&self, axis: usize) -> Option<usize> {
        let computes = |node: &&NodeId| self.graph.op(**node).is_elementwise() && !is_index(self.graph, **node);
        let is_laboured = self.kernel.order.iter().filter(computes).count() >= LABOUR;
        if is_laboured || self.kernel.reductions.len() != 1 {
            return None;
        }
        let last = self.target.cache_bytes[2] as i64;
        let is_long = |access: usize| {
            let row = self.trips(axis).saturating_mul(self.kernel.accesses[access].dtype.size() as i64);
            row >= LONG && self.coefficient(access, axis) == 1 && self.bytes_read_once(access) > last
        };
        let access = (0..self.kernel.accesses.len()).find(|&access| is_long(access))?;
        let rows = self.outputs().into_iter().rfind(|&origin| self.trips(origin) > 1)?;
        let shares = self.trips(rows) % 2 == 0 && self.trips(rows) >= 8 * self.target.threads as i64;
        (shares && self.depends(access, rows)).then_some(rows)
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
