//! Schedules for a GPU: neighbours in memory are neighbours in a workgroup, and a thread loads a vector at a time.
//!
//! The threads of a workgroup share each sum of the kernel, and the results that follow from it. If the terms of a sum lie
//! side by side in memory, as in a sum of rows, neighbours take neighbouring terms; if the results do, as in a sum of
//! columns, neighbours take neighbouring results, and only as many threads share a sum as it takes to fill the device.

mod product;

use super::super::axis::Axis;
use super::super::kernel::Reduction;
use super::Planner;
use crate::lower::live::RangeSet;
use crate::lower::optimize::transforms::{OptOp, Split};
use crate::lower::select::decompose::Sizes;
use smallvec::SmallVec;
use tinyspec_backends::Workgroups;
use tinyspec_ir::AxisType;

/// Warps of a workgroup: as many as a processor has schedulers.
const WARPS: i64 = 4;
/// Bytes of a memory transaction. Rows of up to this size are left to one thread.
const SECTOR: i64 = 32;
/// Elements that a thread holds in registers: its part of a row, which is then loaded only once, or loads in flight. They take a
/// quarter of 64 registers, with which 1024 threads fit on a processor.
const HELD: i64 = 16;
/// The minimum and the maximum number of results in the register tile of a thread.
const TILE: [i64; 2] = [4, 8];
/// Instructions of a thread that fit in the instruction cache: loops are not unrolled beyond them.
const CODE: i64 = 2048;

/// The sums that workgroups share.
struct Sums {
    /// The Ranges of each, as positions among the original ranges, inner ones first.
    terms: Vec<SmallVec<[usize; 4]>>,
    /// The number of terms of the longest sum.
    count: i64,
    /// The output ranges that all sums depend on.
    outside: Vec<usize>,
    /// The output ranges that none of them depends on.
    inside: Vec<usize>,
    /// The terms, rather than the results, are contiguous in memory.
    has_rows: bool,
}

/// How ranges are shared.
#[derive(Clone, Copy)]
struct Part {
    /// Threads of a workgroup.
    threads: i64,
    /// Workgroups, at most.
    workgroups: i64,
    /// Lanes of a vector, at most.
    lanes: i64,
    /// Elements that a thread may hold in registers.
    held: i64,
}

impl Planner<'_> {
    /// Output axes that a sum is carried along stay loops; all others are parallel.
    pub(super) fn workgroups(mut self, limits: &Workgroups) -> Vec<OptOp> {
        if let Some(product) = self.product(limits) {
            return self.tile_product(&product, limits);
        }
        let carried = self.carried();
        let is_output = |origin: &usize| {
            let origin = &self.space.origins[*origin];
            !origin.merged && origin.trips.is_some_and(|trips| trips > 1)
        };
        let mut outputs: Vec<usize> = (self.kernel.nests.iter())
            .flat_map(|nest| nest.ranges.iter().rev().filter_map(|&range| self.space.origin(range)))
            .filter(is_output)
            .filter(|origin| !carried.contains(origin))
            .collect();
        outputs.sort_by_key(|&origin| !self.is_contiguous(origin));
        let threads = (limits.warp as i64 * WARPS).min(limits.size as i64);
        match self.sums(&outputs, limits).filter(|_| carried.is_empty()) {
            Some(sums) => return self.share_sums_in_local(&sums, limits, threads),
            None => self.share_results(&outputs, if carried.is_empty() { self.lanes() } else { 1 }, threads),
        }
        self.ops
    }

    /// As [`Planner::share_sums`], with as many threads per sum as LOCAL memory has room for.
    fn share_sums_in_local(self, sums: &Sums, limits: &Workgroups, threads: i64) -> Vec<OptOp> {
        let mut most = limits.size as i64;
        loop {
            let mut shared = self.clone();
            shared.share_sums(sums, limits, threads, most);
            if most <= 1 || shared.partial_sums_bytes() <= limits.local_bytes as i64 {
                return shared.ops;
            }
            most /= 2;
        }
    }

    /// Bytes of LOCAL memory for the partial sums that the threads of a workgroup exchange.
    fn partial_sums_bytes(&self) -> i64 {
        let trips = |kinds: &[AxisType], ranges: RangeSet| {
            let is_own = |axis: &&Axis| kinds.contains(&axis.kind) && self.bit(axis.origin) & ranges != 0;
            let own = self.space.axes.iter().filter(is_own).filter_map(|axis| axis.trips);
            own.fold(1i64, i64::saturating_mul)
        };
        let bytes = self.kernel.reductions.iter().map(|reduction| {
            let terms = reduction.ranges.iter().fold(0, |set, &range| set | self.kernel.live.bit(range));
            let parts = trips(&[AxisType::GroupReduce], terms);
            let results = trips(&[AxisType::Local, AxisType::Warp, AxisType::Upcast], reduction.outer);
            let size = self.graph.dtype(reduction.node).size() as i64;
            if parts > 1 { parts.saturating_mul(results).saturating_mul(size) } else { 0 }
        });
        bytes.fold(0, i64::saturating_add)
    }

    /// The sums that are long enough to share; none where there are none.
    fn sums(&self, outputs: &[usize], limits: &Workgroups) -> Option<Sums> {
        let bits = |origins: &[usize]| origins.iter().fold(0, |set, &origin| set | self.bit(origin));
        let ranges = |reduction: &Reduction| {
            let origins = reduction.ranges.iter().rev().filter_map(|&range| self.space.origin(range));
            origins.filter(|&origin| !self.space.origins[origin].merged).collect::<SmallVec<[usize; 4]>>()
        };
        let count = |reduction: &Reduction| self.trips_of(&ranges(reduction));
        let all: RangeSet = self.kernel.reductions.iter().fold(0, |set, reduction| set | bits(&ranges(reduction)));
        let is_long = |reduction: &&Reduction| {
            let size = self.graph.dtype(reduction.node).size().max(1) as i64;
            reduction.outer & all == 0 && count(reduction) > SECTOR / size
        };
        let long: SmallVec<[&Reduction; 4]> = self.kernel.reductions.iter().filter(is_long).collect();
        let is_outside = |origin: &usize| long.iter().all(|reduction| reduction.outer & self.bit(*origin) != 0);
        let (outside, inside): (Vec<usize>, Vec<usize>) = outputs.iter().partition(|origin| is_outside(origin));
        let shared = || long.iter().filter(|reduction| reduction.outer & bits(&inside) == 0);
        let count = shared().map(|reduction| count(reduction)).max()?;
        let mut terms: Vec<SmallVec<[usize; 4]>> = shared().map(|reduction| ranges(reduction)).collect();
        terms.sort_unstable();
        terms.dedup();
        let all = terms.concat();
        let has_rows = self.read_along(&all, &all, limits) > self.read_along(&all, &outside, limits);
        Some(Sums { terms, count, outside, inside, has_rows })
    }

    /// Elements that sums over `terms` read contiguously along one of the axes, weighted by the share of a warp that the axis fills.
    fn read_along(&self, terms: &[usize], axes: &[usize], limits: &Workgroups) -> f64 {
        let filled = |access: usize| {
            let along = axes.iter().filter(|&&origin| self.coefficient(access, origin) == 1);
            let longest = along.map(|&origin| self.trips(origin)).max().unwrap_or(0);
            longest.min(limits.warp as i64) as f64 / limits.warp.max(1) as f64
        };
        self.read_by(terms).map(|access| self.elements(access) * filled(access)).sum()
    }

    /// The accesses of sums over `terms`.
    fn read_by(&self, terms: &[usize]) -> impl Iterator<Item = usize> {
        let is_inside = |&access: &usize| terms.iter().any(|&origin| self.depends(access, origin));
        (0..self.kernel.accesses.len()).filter(is_inside)
    }

    /// Elements that an access loads, counting repeated loads of the same one.
    fn elements(&self, access: usize) -> f64 {
        let origins = (0..self.space.origins.len()).filter(|&origin| self.depends(access, origin));
        origins.map(|origin| self.trips(origin).max(1) as f64).product()
    }

    /// Trips of all these ranges together.
    fn trips_of(&self, origins: &[usize]) -> i64 {
        origins.iter().fold(1, |product: i64, &origin| product.saturating_mul(self.trips(origin)))
    }

    fn bit(&self, origin: usize) -> RangeSet {
        self.kernel.live.bit(self.space.origins[origin].range)
    }

    /// All that is stored along this axis lies side by side.
    fn is_contiguous(&self, origin: usize) -> bool {
        let stores = || {
            let accesses = 0..self.kernel.accesses.len();
            accesses.filter(|&access| self.kernel.accesses[access].is_store && self.depends(access, origin))
        };
        stores().next().is_some() && stores().all(|store| self.coefficient(store, origin) == 1)
    }

    /// Gives each thread a tile of results that share the loads of the operand that is read most, as long as the remaining threads
    /// fill the device. Returns the size of the tile.
    fn tile_sharing(&mut self, sums: &Sums, limits: &Workgroups) -> i64 {
        let terms = sums.terms.concat();
        let most = self.read_by(&terms).max_by(|&a, &b| self.elements(a).total_cmp(&self.elements(b)));
        let Some(most) = most.filter(|_| sums.inside.is_empty() && self.kernel.reductions.len() == 1) else { return 1 };
        let team = if sums.has_rows { limits.size } else { limits.size / limits.warp.max(1) };
        let threads = self.trips_of(&sums.outside).saturating_mul((sums.count / HELD).clamp(1, team as i64));
        let enough = (threads / limits.capacity() as i64).min(TILE[1]);
        // The contiguous output stays with neighbouring threads, unless these share a sum.
        let others =
            sums.outside.iter().copied().filter(|&origin| sums.has_rows || Some(&origin) != sums.outside.first());
        let shared = others.filter(|&origin| !self.depends(most, origin)).max_by_key(|&origin| self.trips(origin));
        let Some(shared) = shared else { return 1 };
        let Some(factor) = divisor(self.trips(shared), TILE[0], enough) else { return 1 };
        self.split(shared, factor, AxisType::Upcast);
        factor
    }

    /// A team of at most `most_threads` threads shares each sum, and the results that follow from it.
    fn share_sums(&mut self, sums: &Sums, limits: &Workgroups, threads: i64, most_threads: i64) {
        let tile = self.tile_sharing(sums, limits);
        let (outside, inside) = (self.trips_of(&sums.outside) / tile, self.trips_of(&sums.inside));
        let fills = |results: i64, threads: i64| results.saturating_mul(threads) >= limits.capacity() as i64;
        let (least, most, lanes) = match sums.outside.first().filter(|_| !sums.has_rows) {
            None => {
                let most = (sums.count / self.lanes()).clamp(1, limits.size as i64);
                ((sums.count.saturating_add(HELD - 1) / HELD).max(self.whole_line()).min(most), most, 1)
            }
            // Whole warps along the results, and a few terms per thread. Vectors only if enough threads remain.
            Some(_) => {
                let most = (limits.size / limits.warp.max(1)) as i64;
                let most = most.min(sums.count / (HELD / self.lanes()).max(1)).max(1);
                (1, most, if fills(outside / self.lanes(), most) { self.lanes() } else { 1 })
            }
        };
        let (least, most) = (least.min(most_threads), most.min(most_threads));
        let mut team = least;
        while team * 2 <= most && !fills(outside / lanes, team) {
            team *= 2;
        }
        let vector = if sums.has_rows { self.lanes() } else { 1 };
        let part = Part { threads: team, workgroups: 1, lanes: vector, held: HELD / lanes };
        let mut team = 1;
        for terms in &sums.terms {
            team = self.spread(terms, part, AxisType::GroupReduce).max(team);
        }
        // Enough workgroups per sum to fill the device, as long as each computes at least as many results as it adds terms.
        let needed = limits.capacity() as i64 / (outside / lanes).saturating_mul(team).max(1);
        let workgroups = needed.min(inside / sums.count);
        self.spread(&sums.inside, Part { threads: team, workgroups, ..part }, AxisType::Local);
        match sums.outside.split_first().filter(|_| !sums.has_rows && team > 1) {
            Some((&column, others)) => {
                let taken = self.take(column, lanes, limits.warp as i64, AxisType::Warp);
                self.share_trips(column);
                self.share_results(others, 1, (threads / taken / team).max(1));
            }
            None => self.share_results(&sums.outside, lanes, (threads / team).max(1)),
        }
    }

    /// Threads that together read a whole line of memory.
    fn whole_line(&self) -> i64 {
        const SECTORS: i64 = 4;
        SECTORS * SECTOR / self.target.vector_bytes.max(1) as i64
    }

    /// Distributes ranges over threads, in order, and unrolls the trips that are left to each thread. Returns the number of
    /// threads.
    fn spread(&mut self, origins: &[usize], part: Part, kind: AxisType) -> i64 {
        let Part { threads, mut workgroups, mut lanes, mut held } = part;
        let mut taken = 1;
        let is_whole = |origin: &&usize| self.space.axes.iter().filter(|axis| axis.origin == **origin).count() == 1;
        for &origin in origins.iter().filter(is_whole).collect::<SmallVec<[&usize; 4]>>() {
            taken *= self.take(origin, lanes, threads / taken, kind);
            lanes = 1;
            if let Some(axis) = self.axis_of_loop(origin)
                && let Some(factor) = self.space.axes[axis].trips.and_then(|trips| divisor(trips, 2, workgroups))
            {
                self.apply(Split { axis: self.space.name(axis), factor, target: AxisType::Global, top: true });
                workgroups /= factor;
            }
            held /= self.held(origin);
            // Overlapping windows need few elements for many terms.
            let overlaps = (0..self.kernel.accesses.len()).any(|access| self.windows(access).contains(&origin));
            held /= self.unroll(origin, if overlaps { HELD } else { held });
            held = held.max(1);
        }
        taken
    }

    /// Trips of the tile along an original range.
    fn held(&self, origin: usize) -> i64 {
        let tile = self.space.axes.iter().filter(|axis| axis.origin == origin && axis.is_tile());
        tile.filter_map(|axis| axis.trips).product()
    }

    /// Unrolls the loop of a range by at most this factor. Returns the factor.
    fn unroll(&mut self, origin: usize, most: i64) -> i64 {
        let most = most.min(CODE / self.work());
        let is_loop = |axis: &Axis| axis.origin == origin && matches!(axis.kind, AxisType::Loop | AxisType::Reduce);
        let Some(position) = self.space.axes.iter().position(is_loop) else { return 1 };
        let axis = &self.space.axes[position];
        let Some(factor) = axis.trips.and_then(|trips| divisor(trips, 2, most)) else { return 1 };
        let target = tile_type(axis.kind);
        let axis = axis.name();
        self.apply(Split { axis, factor, target, top: false });
        factor
    }

    /// Instructions per element.
    fn work(&self) -> i64 {
        let sizes = Sizes::of(self.target);
        let computed = self.kernel.order.iter().filter(|&&node| self.graph.op(node).is_elementwise());
        computed.map(|&node| sizes.size(self.graph, node) as i64).sum::<i64>().max(1)
    }

    /// Distributes output ranges over threads, in order; a thread takes up to `lanes` results along the first one.
    fn share_results(&mut self, origins: &[usize], lanes: i64, threads: i64) {
        let mut left = threads;
        for (place, &origin) in origins.iter().enumerate() {
            left /= self.take(origin, if place == 0 { lanes } else { 1 }, left, AxisType::Local);
            self.share_trips(origin);
        }
    }

    /// Distributes a range over at most this many threads, with a vector for each thread where memory is contiguous along the
    /// range. Returns the number of threads.
    fn take(&mut self, origin: usize, lanes: i64, threads: i64, kind: AxisType) -> i64 {
        let trips = self.trips(origin);
        // Vectors only where most accesses are contiguous: others are coalesced better with an element per thread.
        let moved = (0..self.kernel.accesses.len()).filter(|&access| self.depends(access, origin));
        let (contiguous, apart): (Vec<usize>, Vec<usize>) =
            moved.partition(|&access| self.coefficient(access, origin) == 1);
        let whole = 1 << trips.trailing_zeros().min(6);
        let mut lanes = if contiguous.len() > apart.len() { lanes.min(whole) } else { 1 };
        while lanes > 1 && lanes * self.work() > CODE {
            lanes /= 2;
        }
        let vectors = trips / lanes;
        let most = threads.min(vectors).max(1);
        // Without a remainder if possible.
        let members = divisor(vectors, most / 2 + 1, most).unwrap_or(most);
        self.split(origin, members * lanes, kind);
        if lanes > 1
            && let Some(axis) = self.axis(origin)
        {
            let target = tile_type(kind);
            self.apply(Split { axis: self.space.name(axis), factor: lanes, target, top: false });
        }
        members
    }

    /// Distributes the remaining trips of an output axis over workgroups.
    fn share_trips(&mut self, origin: usize) {
        let is_left = |axis: &Axis| axis.origin == origin && axis.kind == AxisType::Loop;
        if let Some(axis) = self.space.axes.iter().position(is_left)
            && let Some(factor) = self.space.axes[axis].trips.filter(|&trips| trips > 1)
        {
            self.apply(Split { axis: self.space.name(axis), factor, target: AxisType::Global, top: true });
        }
    }
}

/// The largest divisor of a number within these bounds.
fn divisor(number: i64, least: i64, most: i64) -> Option<i64> {
    (least.max(1)..=most.min(number)).rev().find(|factor| number % factor == 0)
}

/// The type of a tile of an axis of this type.
fn tile_type(kind: AxisType) -> AxisType {
    if kind.is_reduce() { AxisType::Unroll } else { AxisType::Upcast }
}
