//! Kernels whose pace memory or single ops set: vectors along the contiguous axis.

use super::Planner;
use crate::lower::optimize::transforms::{Padto, Pipeline, Split};
use crate::lower::select::decompose::Sizes;
use crate::lower::select::devectorize::stride::MAX_STRIDE;
use smallvec::SmallVec;
use tinyspec_ir::{AxisType, NodeId, Op};

/// The number of full tiles beside which the cost of a partial one is negligible.
const FULL: i64 = 4;

impl Planner<'_> {
    /// Vectors along the axis that memory is contiguous in: an output axis, or that of a reduction.
    pub(super) fn vectorize(mut self) -> Self {
        let lanes = self.lanes();
        let last = self.contiguous_output().filter(|_| lanes > 1);
        if let Some(last) = last
            && !self.kernel.reductions.is_empty()
            && self.in_turn(last, lanes, self.instructions())
        {
            self.share();
            return self;
        }
        let mut split: Vec<(usize, i64)> = Vec::new();
        if lanes > 1 {
            let (mut veto, mut accumulates) = (false, false);
            for reduction in &self.kernel.reductions {
                let Some(axis) = reduction.ranges.last().and_then(|&range| self.space.origin(range)) else { continue };
                let inside = self.kernel.live.bit(self.space.origins[axis].range);
                let inside: Vec<usize> = (0..self.kernel.accesses.len())
                    .filter(|&access| self.kernel.accesses[access].open & inside != 0)
                    .collect();
                let contiguous =
                    |origin: usize| inside.iter().filter(|&&access| self.coefficient(access, origin) == 1).count();
                // Terms may be computed from the output's index alone.
                let terms = self.kernel.live.of(self.graph.source(reduction.node, 0));
                let crossed =
                    last.is_some_and(|last| terms & self.kernel.live.bit(self.space.origins[last].range) != 0);
                // For the lanes of one vector: an element each where they lie apart, else one load.
                let loads = |origin: usize| -> i64 {
                    let is_apart = |&&access: &&usize| {
                        let is_near = self.coefficient(access, origin) == 1 || self.is_packed_along(access, origin);
                        self.depends(access, origin) && !is_near
                    };
                    let apart = inside.iter().filter(is_apart).count();
                    (inside.len() - apart) as i64 + apart as i64 * lanes
                };
                let filled = |origin: usize| match (self.trips(origin), self.lanes_along(origin, lanes)) {
                    (trips, along) if trips * 2 < along => 1,
                    (trips, along) => trips.min(along),
                };
                let is_shared = |last: usize| !inside.iter().any(|&access| self.depends(access, last));
                let may_cross = |last: &usize| crossed && (contiguous(*last) > 0 || is_shared(*last));
                let across = last.filter(may_cross).is_some_and(|last| {
                    self.trips(axis) < 2 * lanes || loads(last) * filled(axis) <= loads(axis) * filled(last)
                });
                if across {
                    accumulates = true;
                    continue;
                }
                // Strided terms that fill a vector get several accumulators too: with a single one, each addition depends on the
                // previous one.
                if contiguous(axis) > 0 || inside.is_empty() || self.trips(axis) >= lanes {
                    split.push((axis, self.target.accumulators.clamp(1, 8) as i64 / 2));
                }
                veto |= crossed;
            }
            let last = last.filter(|_| !veto);
            let rows = last.and_then(|last| self.rows_in_stages(last, &split));
            let beside = if let [(axis, _)] = split[..] { self.parallel_rows(axis) } else { None };
            for &(axis, vectors) in &split {
                let vectors = beside.as_ref().map_or(vectors, |beside| vectors.min(beside.vectors));
                self.split_by_vectors(axis, lanes, vectors.max(1), AxisType::Unroll);
            }
            if let Some(beside) = beside {
                self.share_elements(&beside.sharing);
                self.far_apart(beside.rows, beside.count, AxisType::Upcast);
            }
            if let (Some(last), Some(rows), [(_, vectors), ..]) = (last, rows, &split[..]) {
                // As the sums, so that they share a loop.
                self.split_by_vectors(last, lanes, *vectors.max(&1), AxisType::Upcast);
                self.pipeline(rows);
                return self;
            }
            if let Some(last) = last.filter(|_| accumulates && split.is_empty())
                && self.sum_rows(last, lanes)
            {
                return self;
            }
            if let Some(last) = last {
                let work = self.instructions();
                let vectors = match work {
                    // Enough work to keep the units busy, and as much code as is good for one loop.
                    60.. => 1,
                    _ if accumulates => self.accumulated(last, lanes),
                    _ => 4,
                };
                if !self.take_turns(last, lanes) && !self.turn(last, lanes, work) && !self.in_turn(last, lanes, work) {
                    self.places_beside(last, work);
                    if accumulates && self.trips(last) >= 8 * vectors * lanes {
                        // Of many runs only the last has masks.
                        self.split(last, vectors * lanes, AxisType::Upcast);
                    } else if let Some(whole) = self.row_of_parts(last, lanes).filter(|_| !accumulates) {
                        self.split(last, whole, AxisType::Upcast);
                    } else {
                        self.split_by_vectors(last, lanes, vectors, AxisType::Upcast);
                    }
                    self.block(last);
                }
            }
        }
        self.share();
        if let [(axis, _)] = split[..] {
            self.pack_strided(axis);
        }
        self
    }

    /// Packs the operands that should be contiguous along the axis of a reduction.
    fn pack_strided(&mut self, axis: usize) {
        let packed: SmallVec<[usize; 2]> =
            (0..self.kernel.accesses.len()).filter(|&access| self.is_packed_along(access, axis)).collect();
        packed.into_iter().for_each(|access| self.stage(access, 0));
    }

    /// Whether this is a small operand, shared by many sums, that is not contiguous along their axis.
    fn is_packed_along(&self, access: usize, axis: usize) -> bool {
        /// Sums that must share an operand to repay packing it.
        const MANY: i64 = 16;
        let is_strided = !matches!(self.coefficient(access, axis), 0 | 1);
        is_strided && self.packs_whole(access) && self.sharing(access).1 >= MANY
    }

    /// Whether all elements that the kernel reads of an operand can be packed into half of the first-level cache.
    pub(super) fn packs_whole(&self, access: usize) -> bool {
        let found = &self.kernel.accesses[access];
        let is_plain = !found.is_store && found.is_regular(self.graph) && self.windows(access).is_empty();
        let bytes = || self.footprint(access, 0, None, &[]);
        is_plain && self.is_read_once(access) && bytes() <= self.target.cache_bytes[0] as i64 / 2
    }

    /// Instructions per element.
    fn instructions(&self) -> usize {
        let sizes = Sizes::of(self.target);
        let computed = self.kernel.order.iter().filter(|&&node| self.graph.op(node).is_elementwise());
        computed.map(|&node| sizes.size(self.graph, node)).sum()
    }

    /// The rows of a kernel that walks along each several times, and how many a loop takes. They must be short enough
    /// for several to stay in the first cache, and all of them together worth the code.
    fn rows_in_stages(&self, last: usize, split: &[(usize, i64)]) -> Option<(usize, i64)> {
        const FEW: i64 = 8;
        const MANY: i64 = 64;
        let outputs = self.outputs();
        let rows = outputs.iter().copied().rfind(|&origin| origin != last)?;
        let (count, length) = (self.trips(rows), self.trips(last));
        let size = self.kernel.accesses.iter().map(|access| access.dtype.size()).max()?;
        let bytes = length.checked_mul(size as i64)?;
        let [first, second, _] = self.target.cache_bytes.map(|bytes| bytes as i64);
        let all: i64 = outputs.iter().map(|&origin| self.trips(origin)).product();
        let are_alike = self.kernel.reductions.len() == split.len()
            && self.kernel.reductions.iter().all(|reduction| reduction.ranges.len() == 1)
            && split.iter().all(|&(axis, vectors)| self.trips(axis) == length && vectors == split[0].1);
        if !are_alike || split.is_empty() || bytes < first / 64 || bytes > first / 4 || all / length * bytes < second {
            return None;
        }
        let shares = |rows: i64| all / length / rows >= 4 * self.target.threads as i64;
        let factor = (FEW..=MANY).rev().find(|&factor| count % factor == 0 && shares(factor))?;
        Some((rows, factor))
    }

    /// The threads take blocks of rows, whose loops are software-pipelined.
    fn pipeline(&mut self, (rows, factor): (usize, i64)) {
        self.split(rows, factor, AxisType::Loop);
        self.share();
        if let Some(axis) = self.axis_of_loop(rows) {
            self.apply(Pipeline { axis: self.space.name(axis) });
        }
    }

    /// The output axis that stores, or else loads, are contiguous in.
    pub(super) fn contiguous_output(&self) -> Option<usize> {
        let outputs = self.outputs();
        let stores: Vec<usize> =
            (0..self.kernel.accesses.len()).filter(|&access| self.kernel.accesses[access].is_store).collect();
        outputs
            .into_iter()
            .rev()
            .find(|&origin| self.trips(origin) > 1 && stores.iter().all(|&store| self.coefficient(store, origin) == 1))
    }

    /// Where a read is contiguous across the vectors, as in a transpose: a square tile, which is turned in registers.
    /// A few squares beside each other make the runs that are read long enough, and each line that is written goes on
    /// where the loop around comes next. False where that cannot be.
    fn turn(&mut self, lane: usize, lanes: i64, work: usize) -> bool {
        // As many registers hold the tile, as many are left to compute in.
        const WORK: usize = 24;
        // Four lines: what the processor fetches together.
        const BESIDE: i64 = 4;
        /// The side of the smallest block: shorter vectors are no faster than single elements.
        const SHORTEST: i64 = 4;
        let Some(other) = self.crossing(lane) else { return false };
        // The last square may be partial.
        let fits = |origin: usize, lanes: i64| match self.trips(origin) {
            trips if trips % lanes == 0 => trips > lanes,
            trips => self.may_leave_out_lanes() && trips >= FULL * lanes,
        };
        let mut sizes =
            std::iter::successors(Some(lanes), |lanes| Some(lanes / 2)).take_while(|&lanes| lanes >= SHORTEST);
        let Some(lanes) = sizes.find(|&lanes| fits(lane, lanes) && fits(other, lanes)) else { return false };
        if work > WORK || !self.kernel.reductions.is_empty() {
            return false;
        }
        self.split(other, lanes, AxisType::Upcast);
        if self.turn_lines(other, lane, lanes) {
            return true;
        }
        self.split(lane, lanes, AxisType::Upcast);
        if let Some(axis) = self.axis_of_loop(other)
            && self.space.axes[axis].trips.is_some_and(|squares| squares % BESIDE == 0 && squares > BESIDE)
        {
            self.apply(Split { axis: self.space.name(axis), factor: BESIDE, target: AxisType::Loop, top: false });
            let outer = self.space.axes.iter().position(|axis| axis.origin == other && axis.kind == AxisType::Loop);
            if let (Some(outer), Some(lane)) = (outer, self.axis_of_loop(lane))
                && lane < outer
            {
                self.swap(lane, outer);
            }
        }
        self.walk(other, lane);
        true
    }

    /// Whether the target has masked loads for all dtypes that the kernel accesses. Without them, each lane of a partial tile
    /// takes a branch.
    fn may_leave_out_lanes(&self) -> bool {
        self.kernel.accesses.iter().all(|access| self.target.masks_loads(access.dtype))
    }

    /// Where a line takes several vectors: whole lines are written, two beside each other, and the walk goes along the rows
    /// that are read. Halves of lines that bypass the caches would each go to memory. False where that cannot be.
    fn turn_lines(&mut self, other: usize, lane: usize, lanes: i64) -> bool {
        const LINE: i64 = 64;
        const BESIDE: i64 = 2;
        let size = self.kernel.accesses.iter().map(|access| access.dtype.size() as i64).max().unwrap_or(LINE);
        let line = LINE / size;
        if line <= lanes || self.trips(lane) % (BESIDE * line) != 0 || self.trips(lane) == BESIDE * line {
            return false;
        }
        self.split(lane, line, AxisType::Upcast);
        if let Some(axis) = self.axis_of_loop(lane) {
            self.apply(Split { axis: self.space.name(axis), factor: BESIDE, target: AxisType::Loop, top: false });
        }
        if let (Some(lane), Some(other)) = (self.outermost(lane), self.outermost(other))
            && other < lane
        {
            self.swap(other, lane);
        }
        true
    }

    /// Where the contiguous axis is shorter than a vector: vectors lie along the axis that steps over the short ones,
    /// which fill its places in turn. False where that cannot be.
    fn in_turn(&mut self, last: usize, lanes: i64, work: usize) -> bool {
        /// The most instructions per tile, which bounds the code size of a loop. The first limit is for kernels with reductions, which
        /// have other ways to be vectorised; the second for all others.
        const MOST: [usize; 2] = [768, 4096];
        /// The largest stride between lanes of elements smaller than 4 bytes.
        const SMALL: i64 = 4;
        let (mut short, mut step): (SmallVec<[usize; 4]>, i64) = (SmallVec::new(), 1);
        let mut lane = last;
        // An axis that fills a narrow vector stays contiguous, unless lanes would have to be added up or a read is contiguous across it.
        let is_wide = self.kernel.accesses.iter().all(|access| access.dtype.size() >= size_of::<f32>());
        if !is_wide && !self.kernel.reductions.is_empty() {
            return false;
        }
        let is_short = |origin: usize| {
            let trips = self.trips(origin);
            let fills = match self.target.masked_access {
                true => trips * 4 > lanes,
                false => trips >= self.narrowest(lanes) && trips.count_ones() == 1,
            };
            let crosses = self.crossing(origin).is_some();
            let is_across = !self.kernel.reductions.is_empty() || crosses;
            // A shuffle of small elements takes several instructions unless it moves whole words.
            let is_cheap = is_wide || crosses || trips <= SMALL && trips.count_ones() == 1;
            is_cheap && trips <= MAX_STRIDE.min(lanes) && (!fills || trips * 2 <= lanes && is_across)
        };
        while is_short(lane) && step * self.trips(lane) <= MAX_STRIDE {
            step *= self.trips(lane);
            short.push(lane);
            let is_next = |origin: &usize| {
                let mut stores =
                    (0..self.kernel.accesses.len()).filter(|&access| self.kernel.accesses[access].is_store);
                self.trips(*origin) > 1 && stores.all(|store| self.coefficient(store, *origin) == step)
            };
            let Some(next) = self.outputs().into_iter().find(is_next) else { return false };
            lane = next;
        }
        let is_filled = self.trips(lane) * 4 >= lanes;
        // Reductions over so few terms are unrolled into the tile; outside, each would take a vector of its own.
        let terms: SmallVec<[usize; 4]> = self.reduced().collect();
        let places = |access: usize| -> i64 {
            let inside = short.iter().chain(&terms).filter(|&&origin| self.depends(access, origin));
            inside.fold(1, |places, &origin| places.saturating_mul(self.trips(origin)))
        };
        let is_near = |access: usize| {
            self.kernel.accesses[access].is_regular(self.graph) && self.coefficient(access, lane).abs() <= MAX_STRIDE
        };
        let is_small = terms.iter().all(|&origin| self.trips(origin) <= MAX_STRIDE)
            && (0..self.kernel.accesses.len()).all(|access| places(access) <= MAX_STRIDE && is_near(access));
        let most = MOST[usize::from(self.kernel.reductions.is_empty())];
        if short.is_empty() || !is_filled || work * step as usize > most || !is_small {
            return false;
        }
        for origin in short {
            self.split(origin, self.trips(origin), AxisType::Upcast);
        }
        for origin in terms {
            self.split(origin, self.trips(origin), AxisType::Unroll);
        }
        let few = self.trips(lane) * 2 < lanes;
        self.split(lane, if few { self.trips(lane) } else { lanes }, AxisType::Upcast);
        true
    }

    /// Where neighbours are read from different places in turn, as by the gradient of a pool: the places are side by side
    /// in the tile, so that vectors lie along contiguous memory. False where that is impossible.
    fn take_turns(&mut self, last: usize, lanes: i64) -> bool {
        /// Places of a tile, at most.
        const PLACES: i64 = 8;
        let whole = |origin: usize| self.turn_of(origin, MAX_STRIDE).filter(|turn| self.trips(origin) % turn == 0);
        let turns: SmallVec<[(usize, i64); 2]> =
            self.outputs().into_iter().filter_map(|origin| Some((origin, whole(origin)?))).collect();
        let Some(turn) = turns.iter().find(|turn| turn.0 == last).map(|turn| turn.1) else { return false };
        let places: i64 = turns.iter().map(|turn| turn.1).product();
        let rest = self.trips(last) / turn;
        let is_padded = self.target.masked_access || self.may_leave_out_lanes() && rest >= FULL * lanes;
        let fits = rest <= lanes || rest % lanes == 0 || is_padded;
        if places > PLACES || rest * 4 < lanes || !fits || !self.kernel.reductions.is_empty() {
            return false;
        }
        for (origin, turn) in turns {
            self.split(origin, turn, AxisType::Upcast);
        }
        if let Some(axis) = self.axis_of_loop(last) {
            let factor = rest.min(lanes);
            if rest % factor != 0 {
                self.apply(Padto { axis: self.space.name(axis), multiple: factor });
            }
            self.apply(Split { axis: self.space.name(axis), factor, target: AxisType::Upcast, top: false });
        }
        true
    }

    /// Where reads step over a few places, puts all of these side by side in the tile, so that the reads are
    /// contiguous.
    fn places_beside(&mut self, lane: usize, work: usize) {
        const WORK: usize = 24;
        const PLACES: i64 = 8;
        let places = self.crossing(lane).filter(|&other| {
            let steps = |access: usize| {
                self.coefficient(access, other) == 1 && self.coefficient(access, lane) == self.trips(other)
            };
            self.trips(other) <= PLACES && (0..self.kernel.accesses.len()).any(steps)
        });
        if let Some(places) = places.filter(|_| work <= WORK && self.kernel.reductions.is_empty()) {
            self.split(places, self.trips(places), AxisType::Upcast);
        }
    }

    /// The length of a row, padded to whole vectors, if comparisons with the position in the row select the elements read:
    /// with the whole row in the tile, they are constants for most vectors.
    fn row_of_parts(&self, last: usize, lanes: i64) -> Option<i64> {
        /// The most instructions of a tile, which limits the code size of one loop.
        const MOST: i64 = 2048;
        /// Vectors of a tile, at most.
        const VECTORS: i64 = 16;
        let range = self.space.origins[last].range;
        let moves = |side: &NodeId| self.kernel.sums.get(side).is_some_and(|sum| sum.coefficient(range) != 0);
        let decides = |&node: &NodeId| self.graph.op(node) == Op::CmpLt && self.graph.sources(node).iter().any(moves);
        let vectors = (self.trips(last) + lanes - 1) / lanes;
        let is_whole = self.target.masked_access || self.trips(last) % lanes == 0;
        let fits = is_whole && (2..=VECTORS).contains(&vectors) && self.instructions() as i64 * vectors <= MOST;
        (fits && self.kernel.order.iter().any(decides)).then_some(vectors * lanes)
    }

    /// The output axis that some read is contiguous in, while it steps from line to line along `lane`.
    fn crossing(&self, lane: usize) -> Option<usize> {
        (0..self.kernel.accesses.len()).find_map(|access| {
            let is_crossed = !self.kernel.accesses[access].is_store && self.coefficient(access, lane).abs() > 1;
            let mut outputs = self.outputs().into_iter();
            outputs.find(|&origin| is_crossed && self.coefficient(access, origin) == 1)
        })
    }

    /// Where reads cross the vectors, as in a transpose: walks blocks, so that every line read is used while cached.
    fn block(&mut self, lane: usize) {
        const BLOCK: i64 = 16;
        let Some(other) =
            self.crossing(lane).filter(|&other| self.trips(other) % BLOCK == 0 && self.trips(other) > BLOCK)
        else {
            return;
        };
        if let Some(axis) = self.axis(other) {
            self.apply(Split { axis: self.space.name(axis), factor: BLOCK, target: AxisType::Loop, top: false });
        }
        // The inside of the block becomes the innermost loop.
        self.walk(other, lane);
    }

    /// Position of the innermost loop of an original range.
    pub(super) fn axis_of_loop(&self, origin: usize) -> Option<usize> {
        self.axis_of(origin, AxisType::Loop)
    }

    /// Position of the innermost axis of a type.
    pub(super) fn axis_of(&self, origin: usize, kind: AxisType) -> Option<usize> {
        self.space.axes.iter().rposition(|axis| axis.origin == origin && axis.kind == kind)
    }

    /// Makes the innermost loop of `inner` walk inside of that of `outer`.
    fn walk(&mut self, inner: usize, outer: usize) {
        if let (Some(inner), Some(outer)) = (self.axis_of_loop(inner), self.axis_of_loop(outer))
            && inner < outer
        {
            self.swap(inner, outer);
        }
    }
}
