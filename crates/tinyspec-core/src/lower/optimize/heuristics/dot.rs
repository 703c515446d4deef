//! Sums of products whose operands are both contiguous along the reduction, such as a convolution's weight gradient:
//! vectors lie along the reduction, and each element of the tile has a vector of partial sums.

use super::super::cost::MASKED;
use super::Planner;
use super::window::MAX_TAP_STRIDE;
use smallvec::SmallVec;
use tinyspec_ir::AxisType;

/// A tile of `a × b` sums. Axes are positions of original ranges.
pub(super) struct Dot {
    /// The reduction range that vectors lie along.
    lane: usize,
    /// Heights of the tile along output axes.
    heights: SmallVec<[(usize, i64); 4]>,
    /// The operand to pack, which is not contiguous along the reduction.
    packed: Option<usize>,
    /// Output axes to exchange, so that the operand that fits in a cache is the one in the inner loop.
    exchanged: Option<(usize, usize)>,
}

/// Cycles of a horizontal sum, where several are computed together.
const HORIZONTAL: f64 = 4.0;
/// Bytes in one way of the first-level cache.
const SETS: i64 = 4096;
/// Cycles per line from the second-level cache, and from beyond it, with several loads in flight (measured).
pub(super) const NEAR_CYCLES: f64 = 1.0;
const FAR_CYCLES: f64 = 4.0;

impl Planner<'_> {
    /// The cheapest such tile of a product, either of whose operands may be packed.
    pub(super) fn shared_dot(&self, [a, b]: [usize; 2]) -> Option<Dot> {
        let dots = [(a, b), (b, a)].into_iter().filter_map(|(a, b)| self.dot(a, b));
        dots.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, dot)| dot)
    }

    /// The cheapest such tile of the product of two accesses, and cycles for each vector of useful products. The second one may be
    /// packed.
    pub(super) fn dot(&self, a: usize, b: usize) -> Option<(f64, Dot)> {
        let lanes = self.lanes();
        // Where vectors can be masked, those of strided windows step over a few elements.
        let steps = |access: usize, origin: usize| match self.target.masked_access && !self.windows(access).is_empty() {
            true => (1..=MAX_TAP_STRIDE).contains(&self.coefficient(access, origin)),
            false => self.coefficient(access, origin) == 1,
        };
        let is_lane = |&origin: &usize| {
            let is_contiguous = [a, b].iter().any(|&access| self.coefficient(access, origin) == 1);
            is_contiguous && steps(a, origin) && (steps(b, origin) || self.packs_dot(a, b, origin))
        };
        let lane = self.reduced().find(is_lane)?;
        let packed = (!steps(b, lane)).then_some(b);
        let trips = self.trips(lane);
        if trips * 4 < lanes * 3 && !self.target.masked_access || trips < lanes / 2 {
            return None;
        }
        let only = |of: usize, not: usize| {
            let mut axes: SmallVec<[usize; 4]> = self.outputs().into_iter().collect();
            axes.retain(|&mut origin| self.depends(of, origin) && !self.depends(not, origin) && self.trips(origin) > 1);
            axes.sort_by_key(|&origin| self.coefficient(of, origin).unsigned_abs());
            axes
        };
        let (of_a, of_b) = (only(a, b), only(b, a));
        // Without reuse of either operand, this is an ordinary reduction.
        if of_a.is_empty() && of_b.is_empty() {
            return None;
        }
        // Overlapping windows are read across cache lines; gates that vary along a vector become masks.
        let masks = |access: usize| {
            let gate = self.graph.sources(self.kernel.accesses[access].node).get(2);
            let range = self.kernel.live.bit(self.space.origins[lane].range);
            !self.target.masked_access && gate.is_some_and(|&gate| self.kernel.live.of(gate) & range != 0)
        };
        let dear = |access: usize| match self.windows(access).is_empty() {
            _ if masks(access) => MASKED as i64,
            true => 1,
            // Strided loads also read the skipped elements, and select lanes from them.
            false => 2 * self.coefficient(access, lane),
        };
        let registers = self.target.vector_registers as i64 - 1;
        // Packing reads and writes each element once, for all rows together.
        let packing = packed.map_or(0.0, |b| (2 * lanes) as f64 / self.sharing(b).1 as f64);
        let mut best: Option<(f64, Dot)> = None;
        // Rows that map to the same L1 sets evict each other if there are more of them than ways.
        let ways = self.ways();
        let is_crowded = [(a, &of_a), (b, &of_b)].iter().all(|(access, axes)| self.rows_share_sets(*access, axes));
        for room in 1..=8 {
            let second = self.fill(&of_b, room);
            let width: i64 = second.iter().map(|height| height.1).product();
            let room = (registers - width) / width;
            let first = self.fill(&of_a, if is_crowded { room.min((ways - width).max(1)) } else { room });
            let height: i64 = first.iter().map(|height| height.1).product();
            let products = (height * width) as f64;
            let loads = (height * dear(a) + width * dear(b)) as f64;
            let step = products.max(loads).max(self.target.accumulators as f64) / 2.0;
            let (lines, is_exchanged) = self.lines_of_dot([(a, height), (b, width)], [&of_a, &of_b]);
            let step = step.max(lines);
            let exchanged = is_exchanged.then(|| (of_a[0], of_b[0]));
            let steps: i64 = self.reduced().map(|origin| self.trips(origin)).product();
            // The lanes of several vectors are added up together.
            let end = products * HORIZONTAL * lanes as f64 / steps.max(1) as f64;
            let heights: SmallVec<[(usize, i64); 4]> = first.into_iter().chain(second).collect();
            let filled: f64 = heights.iter().map(|&(origin, height)| self.share_filled(origin, height)).product();
            let cost = (step + end) / (products * filled * self.share_filled(lane, lanes));
            let cost = cost + packing;
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, Dot { lane, heights, packed, exchanged }));
            }
        }
        best
    }

    /// Cycles per step of the reduction for loading the lines of a tile, given the number of rows of each operand, and whether exchanging
    /// the loops over the output axes lowers them.
    fn lines_of_dot(&self, tile: [(usize, i64); 2], axes: [&[usize]; 2]) -> (f64, bool) {
        // Rows of overlapping windows share lines.
        if tile.iter().any(|&(access, _)| !self.windows(access).is_empty()) {
            return (0.0, false);
        }
        let [first, second, _] = self.target.cache_bytes.map(|bytes| bytes as i64);
        let outputs = self.outputs();
        let shared = self.shared(tile[0].0, tile[1].0);
        let rows: i64 = tile.iter().map(|&(access, rows)| rows * self.footprint(access, 0, None, &outputs)).sum();
        let crowded: i64 = tile
            .iter()
            .zip(axes)
            .filter(|((access, _), axes)| self.rows_share_sets(*access, axes))
            .map(|(rows, _)| rows.1)
            .sum();
        let is_crowded = crowded > self.ways();
        let cycles = |bytes: i64| match bytes {
            _ if bytes <= first => 0.0,
            _ if is_crowded => FAR_CYCLES,
            _ if bytes <= second / 2 => NEAR_CYCLES,
            _ => FAR_CYCLES,
        };
        // The outer operand's rows stay cached, as far as they fit, while the inner operand streams by.
        let around = |outer: usize, inner: usize| {
            let all = self.footprint(tile[inner].0, 0, None, &shared);
            let (stays, passes) = (cycles(rows), cycles(rows).max(cycles(all)));
            (tile[outer].1 as f64 * stays).max(tile[inner].1 as f64 * passes)
        };
        match axes {
            [&[of_a], &[of_b]] => {
                // By default the loop over the first output axis is the outer one.
                let is_a_outside =
                    outputs.iter().position(|&axis| axis == of_a) < outputs.iter().position(|&axis| axis == of_b);
                let (outer, inner) = if is_a_outside { (0, 1) } else { (1, 0) };
                let (kept, exchanged) = (around(outer, inner), around(inner, outer));
                (kept.min(exchanged), exchanged < kept)
            }
            _ => (0.0, false),
        }
    }

    /// Associativity of the first-level cache.
    pub(super) fn ways(&self) -> i64 {
        self.target.cache_bytes[0] as i64 / SETS
    }

    /// Whether adjacent rows along the innermost of these axes map to the same L1 sets.
    fn rows_share_sets(&self, access: usize, axes: &[usize]) -> bool {
        axes.first().is_some_and(|&origin| self.shares_sets(access, origin))
    }

    /// Whether adjacent elements along an axis map to the same L1 sets.
    pub(super) fn shares_sets(&self, access: usize, origin: usize) -> bool {
        const LINE: i64 = 64;
        let size = self.kernel.accesses[access].dtype.size() as i64;
        let step = self.coefficient(access, origin).saturating_mul(size).saturating_abs();
        step >= SETS && (step % SETS < LINE || step % SETS > SETS - LINE)
    }

    /// Whether packing makes the second operand contiguous along the reduction.
    fn packs_dot(&self, a: usize, b: usize, lane: usize) -> bool {
        let is_contiguous = self.coefficient(a, lane) == 1 && self.coefficient(b, lane) != 0;
        is_contiguous && self.windows(a).is_empty() && self.shared(a, b).is_empty() && self.packs_whole(b)
    }

    /// The kernel under a register tile of partial sums.
    pub(super) fn tile_dot(mut self, dot: &Dot) -> Self {
        self.split(dot.lane, self.lanes(), AxisType::Unroll);
        for &(origin, height) in &dot.heights {
            self.split(origin, height, AxisType::Upcast);
        }
        if let Some((of_a, of_b)) = dot.exchanged
            && let (Some(a), Some(b)) = (self.outermost(of_a), self.outermost(of_b))
        {
            self.swap(a, b);
        }
        // The gates along the vectors are computed once for all the rest.
        self.outside(&[dot.lane]);
        self.share();
        if let Some(operand) = dot.packed {
            self.stage(operand, 0);
        }
        self
    }
}
