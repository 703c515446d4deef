//! The analytical cost of a schedule: a roofline model over the core's units and the levels of its memory.
//!
//! The model sees only the axes, so a schedule is judged in microseconds, without building it. It is made to rank
//! schedules of one kernel; its nanoseconds are those of a nominal core.

mod core;
mod footprint;
mod loops;
pub(super) mod standing;

use super::kernel::{Access, Kernel, Reduction, slot};
use super::space::Space;
use crate::lower::live::RangeSet;
use crate::lower::select::decompose::Sizes;
use crate::lower::select::devectorize::stride::is_near;
use crate::lower::select::is_shared;
pub(super) use core::Core;
use footprint::{LINE, Walk, power_of_two};
use loops::Loops;
pub(crate) use loops::NAMED_TRIPS;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::fmt;
use tinyspec_backends::Target;
use tinyspec_ir::affine::{Affine, Footprint};
use tinyspec_ir::{Arg, AxisType, Builder, DType, Graph, NodeId, Op, words};

/// Cycles of a spilled accumulator: it goes through memory with each trip, and others wait for it.
const SPILLED: f64 = 5.0;
/// Vector loads that take as long as one masked load on machines without vector masks: the mask is computed and applied.
pub(super) const MASKED: f64 = 6.0;
/// Instructions of a step of a horizontal sum that halves one vector, and of a step that combines two vectors.
const ACROSS: f64 = 2.0;
const TOGETHER: f64 = 3.0;
/// Cycles of a copy per element where it is scalar: the load, the store, their addresses, and the loop.
const SCALAR_COPY: f64 = 4.0;
/// The same where a contiguous load is scattered lane by lane.
const SCATTERED_COPY: f64 = 2.0;
/// The same where the copy is transposed in registers (measured).
const TRANSPOSED_COPY: f64 = 0.6;
/// Instructions to compute the mask of a vector that is copied under a gate.
const MASK: f64 = 24.0;
/// How often a byte passes a cache that cannot hold the copy: the source is read, and the copy allocated, written and read.
const COPY_PASSES: f64 = 4.0;
/// Instructions of a loop body beyond which the front end falls behind.
const LARGE_BODY: f64 = 2500.0;

/// Cycles of one thread, by the resource that could limit the kernel, and how many threads share them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// Cycles per nanosecond.
    pub clock: f64,
    /// Vector arithmetic.
    pub arithmetic: f64,
    /// Loads and stores that hit the first-level cache.
    pub accesses: f64,
    /// Issuing instructions: loop control, scalarised lanes.
    pub instructions: f64,
    /// Latency of loop-carried accumulations.
    pub latency: f64,
    /// Lines from the second-level cache.
    pub second_level: f64,
    /// Lines from beyond it.
    pub memory: f64,
    /// Threads at work, on average.
    pub threads: f64,
    /// Vector instructions of the loop bodies: the code to compile.
    pub code: f64,
}

impl Estimate {
    /// An estimate of zero, on one thread of a core.
    pub(super) fn on(core: &Core) -> Estimate {
        Estimate {
            clock: core.clock,
            arithmetic: 0.0,
            accesses: 0.0,
            instructions: 0.0,
            latency: 0.0,
            second_level: 0.0,
            memory: 0.0,
            threads: 1.0,
            code: 0.0,
        }
    }

    /// The estimate for `count` executions, on the same threads, by the same code.
    pub(crate) fn times(self, count: f64) -> Estimate {
        Estimate {
            arithmetic: self.arithmetic * count,
            accesses: self.accesses * count,
            instructions: self.instructions * count,
            latency: self.latency * count,
            second_level: self.second_level * count,
            memory: self.memory * count,
            ..self
        }
    }

    fn limits(&self) -> [(&'static str, f64); 6] {
        [
            ("arithmetic", self.arithmetic),
            ("loads and stores", self.accesses),
            ("instructions", self.instructions),
            ("latency", self.latency),
            ("second-level cache", self.second_level),
            ("memory", self.memory),
        ]
    }

    /// The resource that limits the kernel.
    pub fn limit(&self) -> &'static str {
        self.limits().into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("nothing", |limit| limit.0)
    }

    /// Nanoseconds on one thread.
    pub fn on_one_thread(&self) -> f64 {
        let cycles = self.limits().map(|limit| limit.1);
        // The others are hidden behind the longest, though never quite.
        let longest = cycles.into_iter().fold(0.0, f64::max);
        (0.9 * longest + 0.1 * cycles.into_iter().sum::<f64>()) / self.clock
    }

    /// Nanoseconds.
    pub fn nanoseconds(&self) -> f64 {
        self.on_one_thread() / self.threads.max(1.0)
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} µs on {:.1} threads, limited by {}", self.nanoseconds() / 1e3, self.threads, self.limit())?;
        let longest = self.limits().into_iter().map(|limit| limit.1).fold(1.0, f64::max);
        let others = self.limits().into_iter().filter(|limit| limit.0 != self.limit() && limit.1 * 4.0 > longest);
        for (position, (name, cycles)) in others.enumerate() {
            write!(f, "{} {name} {:.0} %", if position == 0 { ";" } else { "," }, 100.0 * cycles / longest)?;
        }
        Ok(())
    }
}

/// Threads at work on average, where so many trips are shared among them.
pub(crate) fn threads(trips: f64, threads: usize) -> f64 {
    let trips = trips.max(1.0);
    trips / (trips / threads.max(1) as f64).ceil()
}

/// Estimates a kernel under the schedule that led to `space`.
pub(crate) fn estimate(graph: &Graph, kernel: &Kernel, space: &Space, target: &Target) -> Estimate {
    let loops = Loops::new(kernel, space);
    let carried = Carried::under(kernel, &loops);
    let accesses = carried.accesses(kernel);
    Model::new(graph, kernel, loops, target, carried, &accesses).estimate()
}

/// A lower bound for any schedule of the kernel: full vectors on one thread, each value computed once per trip of the Ranges that it
/// depends on, each element read from memory once. `space` is unscheduled.
pub(crate) fn bound(graph: &Graph, kernel: &Kernel, space: &Space, target: &Target) -> Estimate {
    let carried = Carried::of(kernel, |_| true);
    let accesses = carried.accesses(kernel);
    let model = Model::new(graph, kernel, Loops::new(kernel, space), target, carried, &accesses);
    let core = &model.core;
    let walks: Vec<Walk> = accesses.iter().map(|access| model.walk(access)).collect();
    let computed = kernel.order.iter().map(|&node| match graph.op(node) {
        Op::Reduce => model.loops.combinations(model.open(graph.source(node, 0))),
        _ => model.loops.combinations(model.open(node)) * model.size(node),
    });
    let accessed = accesses
        .iter()
        .map(|access| model.loops.combinations(access.open) / if access.is_store { core.stores } else { core.loads });
    let distinct = footprint::distinct(&walks, &model.loops);
    Estimate {
        arithmetic: computed.sum::<f64>() / core.arithmetic / model.lanes,
        accesses: accessed.sum::<f64>() / model.lanes,
        memory: core.beyond_second_level(distinct, if distinct > core.caches[2] { distinct } else { 0.0 }),
        ..Estimate::on(core)
    }
}

struct Model<'a> {
    graph: &'a Graph,
    kernel: &'a Kernel,
    carried: Carried,
    accesses: &'a [Access],
    space: &'a Space,
    target: &'a Target,
    core: Core,
    loops: Loops<'a>,
    sizes: Sizes,
    lanes: f64,
    /// Lanes that vectors may have along each axis.
    widths: SmallVec<[f64; 12]>,
    /// Axes that vectors may lie along.
    along: SmallVec<[bool; 12]>,
    /// The places computed so far; many nodes share one.
    places: RefCell<FxHashMap<RangeSet, Place>>,
}

/// The properties that nodes inside the same Ranges share.
#[derive(Clone, Copy)]
struct Place {
    /// How often they are executed.
    times: f64,
    /// Elements of their tile.
    elements: f64,
    /// Machine vectors of their tile.
    parts: f64,
    /// The axis that the vectors lie along.
    lane: Option<usize>,
}

/// Loop-carried Reduces take one term per trip of the loop that carries them, which replaces the loops over their own
/// Ranges.
struct Carried(SmallVec<[(NodeId, Affine); 1]>);

impl Carried {
    /// Those for which `keeps` holds.
    fn of(kernel: &Kernel, keeps: impl Fn(&Reduction) -> bool) -> Carried {
        let pair = |reduction: &Reduction| match (&reduction.ranges[..], &reduction.carried) {
            (&[range], Some(place)) if keeps(reduction) => Some((range, place.clone())),
            _ => None,
        };
        Carried(kernel.reductions.iter().filter_map(pair).collect())
    }

    /// Those that the schedule carries. The others start from their first term at each place.
    fn under(kernel: &Kernel, loops: &Loops) -> Carried {
        Carried::of(kernel, |reduction| {
            let places = reduction.carried.iter().flat_map(Affine::atoms);
            loops.carry(places.fold(0, |set, range| set | kernel.live.bit(range)), reduction.outer)
        })
    }

    fn ranges(&self, kernel: &Kernel) -> RangeSet {
        self.0.iter().fold(0, |set, (range, _)| set | kernel.live.bit(*range))
    }

    /// The accesses, indexed by the loops that carry the Reduces.
    fn accesses(&self, kernel: &Kernel) -> Vec<Access> {
        kernel.accesses.iter().map(|access| self.access(kernel, access)).collect()
    }

    fn open(&self, kernel: &Kernel, open: RangeSet) -> RangeSet {
        self.0.iter().fold(open, |open, (range, place)| match open & kernel.live.bit(*range) {
            0 => open,
            bit => place.atoms().fold(open & !bit, |open, output| open | kernel.live.bit(output)),
        })
    }

    fn access(&self, kernel: &Kernel, access: &Access) -> Access {
        let mut access = access.clone();
        access.open = self.open(kernel, access.open);
        access.irregular = self.open(kernel, access.irregular);
        for (range, place) in &self.0 {
            let factor = access.index.coefficient(*range);
            let moved = place.minus(&Affine::atom(*range)).scale(factor);
            access.index = access.index.plus(&moved);
        }
        access
    }
}

impl<'a> Model<'a> {
    fn new(
        graph: &'a Graph,
        kernel: &'a Kernel,
        loops: Loops<'a>,
        target: &'a Target,
        carried: Carried,
        accesses: &'a [Access],
    ) -> Model<'a> {
        let mut model = Model {
            graph,
            kernel,
            space: loops.space,
            loops: loops.carrying(carried.ranges(kernel)),
            carried,
            accesses,
            target,
            core: Core::of(target),
            sizes: Sizes::of(target),
            lanes: crate::lower::lanes(target, kernel.dtypes(graph)) as f64,
            widths: SmallVec::new(),
            along: SmallVec::new(),
            places: RefCell::default(),
        };
        model.widths = (0..model.loops.count()).map(|axis| model.width(axis)).collect();
        model.along = model.choose_lanes();
        model
    }

    /// Ranges that are open at a node.
    fn open(&self, node: NodeId) -> RangeSet {
        self.carried.open(self.kernel, self.kernel.live.of(node))
    }

    fn estimate(&self) -> Estimate {
        let core = &self.core;
        let mut estimate = Estimate { threads: self.loops.threads(self.target.threads), ..Estimate::on(core) };
        let (mut single, mut body) = (0.0, 0.0);
        // Bytes that copies move through each level of memory.
        let mut copies = [0.0; 3];
        let needed = self.needed();
        for &node in self.kernel.order.iter().filter(|node| needed[node.index()]) {
            match self.graph.op(node) {
                Op::Reduce => body += self.add_reduce(node, &mut estimate),
                _ => {
                    let Place { times, parts, lane, .. } = self.place(self.open(node));
                    let vectors = self.size(node) * parts;
                    // Only the tiles at the ends of an axis test conditions on indices.
                    let share = lane.filter(|_| self.is_gate(node)).map_or(1.0, |lane| self.share_of_ends(lane));
                    estimate.arithmetic += (times * share * vectors + self.extracted_lanes(node)) / core.arithmetic;
                    body += vectors;
                }
            }
        }
        for access in self.accesses {
            let staged = self.stage(access);
            let (vectors, lanes) = self.instructions(access, staged.is_some());
            let times = self.place(access.open).times;
            let masked = if staged.is_some() { 1.0 } else { self.masked(access) };
            let lines = vectors * self.lines(access) * masked;
            let rate = match (access.is_store, self.lane(access)) {
                (true, _) => core.stores,
                (false, Some(_)) => core.loads,
                (false, None) => core.scalar_loads,
            };
            estimate.accesses += times * lines / rate;
            single += times * lanes;
            body += vectors + 2.0 * lanes;
            if let Some(around) = staged {
                let walk = self.walk(access);
                let (elements, bytes) = (walk.elements(&self.loops, around), walk.size);
                let copied = elements * self.loops.trips_of_first(around);
                estimate.accesses += copied * self.copying(access, around);
                for (level, traffic) in copies.iter_mut().enumerate() {
                    if elements * bytes > core.caches[level] {
                        *traffic += COPY_PASSES * copied * bytes;
                    }
                }
            }
        }
        // Lanes that are moved one by one take two instructions each: the move and its place in a vector.
        estimate.accesses += single;
        let vectors = estimate.arithmetic * core.arithmetic + estimate.accesses * core.loads;
        estimate.code = body;
        let crowded = (body / LARGE_BODY).max(1.0);
        estimate.instructions = crowded * (vectors + single + 3.0 * self.loops.iterations()) / core.instructions;
        let walks: Vec<Walk> = self.accesses.iter().map(|access| self.walk(access)).collect();
        let missed = |level: usize| footprint::traffic(&walks, &self.loops, core.caches[level]) + copies[level];
        estimate.second_level = missed(0) / core.bytes[0];
        estimate.memory = core.beyond_second_level(missed(1), missed(2));
        estimate
    }

    /// Adds the cost of a Reduce; returns its vector instructions.
    fn add_reduce(&self, node: NodeId, estimate: &mut Estimate) -> f64 {
        let Place { times, parts, .. } = self.place(self.open(self.graph.source(node, 0)));
        let core = &self.core;
        let rate = if self.is_contraction(node) { core.multiply_adds } else { core.arithmetic };
        estimate.arithmetic += times * parts / rate;
        let accumulators = self.accumulators(node, parts);
        // Every accumulator waits for its own last sum.
        let each = (parts / accumulators).max(1.0) * core.latency;
        estimate.latency += times * each.max(parts / rate);
        estimate.accesses += times * self.spilled(node, accumulators) * SPILLED;
        if !self.is_across(node) {
            return parts;
        }
        let results = self.place(self.open(node));
        let together = results.elements.clamp(1.0, self.lanes);
        let steps = TOGETHER * (together - 1.0) + ACROSS * (self.lanes / together).log2();
        let horizontal = results.elements / together * steps;
        estimate.arithmetic += results.times * horizontal / core.arithmetic;
        parts + horizontal
    }

    /// Cycles that a copy takes per element.
    fn copying(&self, access: &Access, around: usize) -> f64 {
        let each = 1.0 / self.core.loads + 1.0 / self.core.stores;
        let is_inside =
            |axis: &usize| (self.loops.is_tile(*axis) || *axis >= around) && self.loops.moves(*axis, access.open);
        let inside = (0..self.loops.count()).filter(is_inside);
        let numbers = self.at_once(access);
        let step = |axis: usize| self.step(access, axis) / numbers;
        let run = Footprint::of(inside.map(|axis| (step(axis), self.loops.trips(axis) as i64))).run as f64;
        let innermost = self.innermost_of_copy(access);
        let is_gated = self.graph.sources(access.node).len() > 2;
        let each = each + if is_gated { MASK / self.core.arithmetic } else { 0.0 };
        match innermost.map(|axis| (step(axis).abs(), self.loops.trips(axis))) {
            None if run >= self.lanes => each / self.lanes,
            // Vectors lie along the same axis in the source and in the copy.
            Some((1, trips)) if trips > 1.0 => each / trips.min(self.lanes),
            Some((_, trips)) if run >= self.lanes && trips % self.lanes == 0.0 => TRANSPOSED_COPY,
            Some(_) if run >= self.lanes => SCATTERED_COPY,
            _ => SCALAR_COPY,
        }
    }

    /// Whether a node takes vector instructions: an elementwise value that is not index arithmetic.
    fn is_computed(&self, node: NodeId) -> bool {
        self.graph.op(node).is_elementwise() && self.graph.dtype(node) != DType::Index
    }

    /// Instructions per vector of a node; 0 if it takes none.
    fn size(&self, node: NodeId) -> f64 {
        if self.is_computed(node) && !self.is_contracted(node) { self.sizes.size(self.graph, node) as f64 } else { 0.0 }
    }

    /// Lanes that are extracted from sources and broadcast, because the node's vectors lie along an axis that these do not have.
    fn extracted_lanes(&self, node: NodeId) -> f64 {
        let Some(own) = self.place(self.open(node)).lane.filter(|_| self.is_computed(node)) else { return 0.0 };
        let sources = self.graph.sources(node).iter().map(|&source| self.open(source));
        let extracted = sources.filter(|&open| {
            let is_other = self.place(open).lane.is_some_and(|lane| lane != own && self.widths[lane] > 1.0);
            is_other && !self.loops.moves(own, open)
        });
        extracted.map(|open| self.place(open)).map(|place| place.times * place.elements).sum()
    }

    /// Nodes that the loops compute: a read of a copy has no gate.
    fn needed(&self) -> Vec<bool> {
        let mut needed = vec![false; self.graph.len()];
        needed[self.kernel.sink.index()] = true;
        for &node in self.kernel.order.iter().rev().filter(|&&node| self.graph.op(node) != Op::Param) {
            let sources = self.graph.sources(node);
            let is_copied = self.graph.op(node) == Op::Load
                && self.accesses.iter().any(|access| access.node == node && self.stage(access).is_some());
            let sources = if is_copied { &sources[..1] } else { sources };
            if needed[node.index()] {
                sources.iter().for_each(|source| needed[source.index()] = true);
            }
        }
        needed
    }

    /// Machine vectors of a value's tile.
    fn parts(&self, node: NodeId) -> f64 {
        self.place(self.open(node)).parts
    }

    fn place(&self, open: RangeSet) -> Place {
        *self.places.borrow_mut().entry(open).or_insert_with(|| {
            let tile = self.loops.tile(open);
            let elements: f64 = tile.iter().map(|&axis| self.loops.trips(axis)).product();
            let lane = tile.into_iter().rfind(|&axis| self.is_lane(axis));
            let width = lane.map_or(1.0, |lane| self.widths[lane]);
            Place { times: self.loops.times(open), elements, parts: elements / width, lane }
        })
    }

    /// As Select does: vectors lie along axes that some access is contiguous in; of those of one tile, along the ones
    /// with longer vectors.
    fn choose_lanes(&self) -> SmallVec<[bool; 12]> {
        let is_contiguous = |axis| self.accesses.iter().any(|access| self.is_contiguous(access, axis));
        let mut along: SmallVec<[bool; 12]> = (0..self.loops.count()).map(is_contiguous).collect();
        for access in self.accesses {
            let mut tile = self.loops.tile(access.open);
            tile.retain(|axis| along[*axis]);
            let widest = tile.iter().map(|&axis| self.widths[axis]).fold(0.0, f64::max);
            tile.into_iter().filter(|&axis| self.widths[axis] < widest).for_each(|axis| along[axis] = false);
        }
        along
    }

    /// Lanes of a vector along an axis, and along those that Expand makes one with it.
    fn width(&self, axis: usize) -> f64 {
        let is_upcast = |axis: usize| self.space.axes[axis].kind == AxisType::Upcast;
        let (mut last, mut trips) = (axis, self.loops.trips(axis));
        while trips < self.lanes && trips > 1.0 && is_upcast(last) {
            let mut others = (0..self.loops.count()).filter(|&other| other != last && is_upcast(other));
            let Some(outer) = others.find(|&outer| self.are_one(outer, last)) else { break };
            (last, trips) = (outer, trips * self.loops.trips(outer));
        }
        (power_of_two(trips as i64) as f64).min(self.lanes)
    }

    /// Each access, or the copy that it reads, has two axes of a tile in it as if they were one.
    fn are_one(&self, outer: usize, inner: usize) -> bool {
        self.loops.trips(outer) > 1.0
            && self.accesses.iter().all(|access| {
                let (far, near) = (self.step(access, outer), self.step(access, inner));
                let whole = near.saturating_mul(self.space.axes[inner].trips.unwrap_or(0));
                let is_between = |axis: usize| {
                    self.space.axes[axis].kind == AxisType::Upcast && (near + 1..far).contains(&self.step(access, axis))
                };
                far == whole
                    || self.stage(access).is_some()
                        && near > 0
                        && far > whole
                        && !(0..self.loops.count()).any(is_between)
            })
    }

    fn is_lane(&self, axis: usize) -> bool {
        self.along[axis]
    }

    /// Whether an access is contiguous along an axis in memory, or in the copy that is read.
    fn is_contiguous(&self, access: &Access, axis: usize) -> bool {
        let copied = self.stage(access).and_then(|_| self.innermost_of_copy(access));
        copied.map_or_else(|| self.step(access, axis) == self.numbers(access, axis), |innermost| innermost == axis)
    }

    /// A copy has the tile innermost: the axis with the least step, of those that nothing else moves along as well.
    fn innermost_of_copy(&self, access: &Access) -> Option<usize> {
        let moves = |axis: usize| self.loops.moves(axis, access.open) && self.step(access, axis) != 0;
        let is_alone = |axis: usize| {
            let same = |other: usize| self.step(access, other).abs() == self.step(access, axis).abs();
            !(0..self.loops.count()).any(|other| other != axis && moves(other) && same(other))
        };
        let tile = (0..self.loops.count()).filter(|&axis| self.space.axes[axis].kind == AxisType::Upcast);
        tile.filter(|&axis| moves(axis) && is_alone(axis)).min_by_key(|&axis| self.step(access, axis).abs())
    }

    /// How many neighbours an access reads at once: the numbers of a word, or 1.
    fn at_once(&self, access: &Access) -> i64 {
        let is_word = |&origin: &usize| {
            access.index.coefficient(self.space.origins[origin].range) == 1
                && self.kernel.product.as_ref().is_some_and(|product| product.loads.contains(&access.node))
        };
        let numbers = self.space.words.filter(is_word).and(self.space.facts.numbers);
        numbers.map_or(1, |numbers| words::count(numbers) as i64)
    }

    /// How many of them lie along an axis.
    fn numbers(&self, access: &Access, axis: usize) -> i64 {
        if self.space.words == Some(self.space.axes[axis].origin) { self.at_once(access) } else { 1 }
    }

    /// Elements that a trip of an axis moves an access by.
    fn step(&self, access: &Access, axis: usize) -> i64 {
        let axis = &self.space.axes[axis];
        access.index.coefficient(self.space.origins[axis.origin].range).saturating_mul(axis.stride)
    }

    /// An access moves along its vectors, and by single elements.
    fn has_lanes(&self, access: &Access) -> bool {
        self.lane(access).is_some_and(|axis| self.is_contiguous(access, axis))
    }

    /// The axis that the vectors of an access lie along.
    fn lane(&self, access: &Access) -> Option<usize> {
        self.place(access.open).lane
    }

    /// Accumulators of a Reduce that has `parts` machine vectors of terms; see
    /// [`share_accumulators`](crate::lower::select::share_accumulators).
    fn accumulators(&self, reduce: NodeId, parts: f64) -> f64 {
        let results = self.parts(reduce);
        let is_shared = !self.is_across(reduce) && is_shared(results as usize, parts as usize, self.target);
        if is_shared { results } else { parts }
    }

    /// Whether the lanes of a vector are terms of one result.
    fn is_across(&self, reduce: NodeId) -> bool {
        let lane = self.place(self.open(self.graph.source(reduce, 0))).lane;
        lane.is_some_and(|axis| !self.loops.moves(axis, self.open(reduce)))
    }

    /// Lines of the caches that a vector lies in, on average.
    fn lines(&self, access: &Access) -> f64 {
        let Some(lane) = self.lane(access).filter(|&axis| self.is_contiguous(access, axis)) else { return 1.0 };
        let lanes = self.widths[lane] as i64;
        // Where a vector fills a cache line, overlapping neighbours are vector shifts of aligned loads.
        let overlaps = |axis: usize| (1..lanes).contains(&self.step(access, axis).abs());
        let mut others = self.loops.tile(access.open).into_iter().filter(|&axis| axis != lane);
        if !access.is_store && self.target.vector_bytes as f64 >= LINE && others.any(overlaps) {
            return 1.0;
        }
        let is_whole = |axis: usize| axis == lane || self.step(access, axis) % lanes == 0;
        if (0..self.loops.count()).filter(|&axis| self.loops.moves(axis, access.open)).all(is_whole) {
            return 1.0;
        }
        let size = access.dtype.size() as f64;
        1.0 + (self.widths[lane] * size - size) / LINE
    }

    /// How much longer a vector access takes whose gate differs from lane to lane, where vectors have no masks: the tiles at both ends of
    /// an axis are masked, those between are full.
    fn masked(&self, access: &Access) -> f64 {
        let gate = self.graph.sources(access.node).get(2).filter(|_| !self.target.masked_access);
        let lane = self.lane(access).filter(|&lane| gate.is_some_and(|&gate| self.loops.moves(lane, self.open(gate))));
        lane.map_or(1.0, |lane| 1.0 + (MASKED - 1.0) * self.share_of_ends(lane))
    }

    /// The share of an axis' tiles that lie at its ends.
    fn share_of_ends(&self, lane: usize) -> f64 {
        let origin = self.space.axes[lane].origin;
        let outer = (0..self.loops.count()).filter(|&axis| axis != lane && self.space.axes[axis].origin == origin);
        let tiles: f64 = outer.map(|axis| self.loops.trips(axis)).product();
        (2.0 / tiles).min(1.0)
    }

    /// Whether a node is a condition computed from indices alone.
    fn is_gate(&self, node: NodeId) -> bool {
        let is_index = |&source: &NodeId| matches!(self.graph.dtype(source), DType::Index | DType::Bool);
        self.graph.dtype(node) == DType::Bool && self.graph.sources(node).iter().all(is_index)
    }

    /// Machine vectors that a tile of an access has: shared elements are read once.
    fn parts_of(&self, access: &Access) -> f64 {
        let tile = self.loops.tile(access.open);
        let lane = self.lane(access);
        let steps = tile.iter().map(|&axis| {
            let (step, trips) = (self.step(access, axis), self.loops.trips(axis) as i64);
            let lanes = if Some(axis) == lane { self.widths[axis] as i64 } else { 1 };
            (step.saturating_mul(lanes), trips / lanes)
        });
        let distinct = Footprint::of(steps).elements() as f64;
        distinct.min(self.place(access.open).parts)
    }

    /// Vector accesses and single lanes of one execution.
    fn instructions(&self, access: &Access, staged: bool) -> (f64, f64) {
        let regular = access.irregular == 0;
        let parts = if regular { self.parts_of(access) } else { self.place(access.open).parts };
        let lane = self.lane(access);
        // Data may decide where a vector starts, but not where each of its lanes lies.
        let is_affine = lane.is_none_or(|lane| !self.loops.moves(lane, access.irregular));
        let vectors = lane.is_some();
        let near = lane.map(|axis| self.step(access, axis));
        let near = near.filter(|&step| regular && is_near(step, self.lanes as i64));
        match () {
            () if staged || is_affine && (!vectors || self.has_lanes(access)) => (parts, 0.0),
            // Lanes that read one element, each under its own gate: one load, and a select for each vector.
            () if regular && !access.is_store && self.is_broadcast(access) => (1.0, 0.0),
            // The tile has all elements between the lanes, too: whole vectors, interleaved by shuffles.
            () if let Some(step) = near.filter(|&step| self.is_interleaved(access, step)) => {
                (parts * (1.0 + (step as f64).log2()), 0.0)
            }
            // Lanes a few elements apart are picked from whole vectors.
            () if let Some(step) = near.filter(|_| !access.is_store) => (parts * 2.0 * step.abs() as f64, 0.0),
            // Turned in registers: as many exchanges as a lane's number has bits.
            () if regular && self.is_turned(access) => (parts * (1.0 + self.lanes.log2()), 0.0),
            () => (0.0, parts * if vectors { self.lanes } else { 1.0 }),
        }
    }

    /// Whether the tile has all elements between two lanes that are `step` apart.
    fn is_interleaved(&self, access: &Access, step: i64) -> bool {
        let between = self.loops.tile(access.open).into_iter().filter(|&axis| {
            let own = self.step(access, axis);
            0 < own && own < step
        });
        let steps = between.map(|axis| (self.step(access, axis), self.loops.trips(axis) as i64));
        step > 1 && Footprint::of(steps) == Footprint { run: step, rows: Default::default() }
    }

    /// Whether nothing in the tile moves the access.
    fn is_broadcast(&self, access: &Access) -> bool {
        self.loops.tile(access.open).into_iter().all(|axis| self.step(access, axis) == 0)
    }

    /// Whether Select transposes the tile in registers, because an axis other than that of the lanes is contiguous in memory. Loads of
    /// partial squares are gathered instead.
    fn is_turned(&self, access: &Access) -> bool {
        const ROWS: f64 = 4.0;
        let width = self.lane(access).map_or(1.0, |lane| self.widths[lane]);
        self.loops.tile(access.open).into_iter().any(|axis| {
            let trips = self.loops.trips(axis);
            let fits = if access.is_store { trips >= ROWS } else { trips % width == 0.0 };
            self.step(access, axis) == self.numbers(access, axis) && trips > 1.0 && fits
        })
    }

    /// Axes around the copy of the Param that is read.
    fn stage(&self, access: &Access) -> Option<usize> {
        // An access that is not affine reads no copy.
        let slot = slot(self.graph, access.buffer).filter(|_| !access.is_store && access.irregular == 0)?;
        self.space.packing(slot).map(|packing| self.space.around(&packing))
    }

    fn walk(&self, access: &Access) -> Walk {
        let elements = self.graph.props(access.buffer).element_count().as_const();
        let numbers = self.at_once(access);
        Walk {
            steps: (0..self.space.axes.len()).map(|axis| self.step(access, axis) / numbers).collect(),
            open: access.open,
            size: access.dtype.size() as f64 * numbers as f64,
            irregular: access.irregular,
            of: access.buffer,
            packed: self.stage(access).is_some(),
            buffer: elements.map_or(f64::INFINITY, |count| count as f64 * access.dtype.size() as f64),
        }
    }

    /// The product of a sum of products becomes part of the accumulation.
    fn is_contracted(&self, node: NodeId) -> bool {
        let reductions = &self.kernel.reductions;
        self.is_product(node)
            && reductions
                .iter()
                .any(|reduction| self.graph.source(reduction.node, 0) == node && self.is_contraction(reduction.node))
    }

    /// Whether a Reduce is a sum of products, accumulated by multiply-adds.
    fn is_contraction(&self, reduce: NodeId) -> bool {
        matches!(self.graph.arg(reduce), Arg::Reduce { op: Op::Add, .. })
            && self.is_product(self.graph.source(reduce, 0))
    }

    fn is_product(&self, node: NodeId) -> bool {
        self.target.fused_multiply_add && self.graph.op(node) == Op::Mul && self.graph.dtype(node).is_float()
    }

    /// Accumulators that find no register, beside the vectors of the operand that is kept for a whole step.
    fn spilled(&self, reduce: NodeId, accumulators: f64) -> f64 {
        let open = self.open(self.graph.source(reduce, 0));
        let inside = self.accesses.iter().filter(|access| !access.is_store && access.open & !open == 0);
        let mut operands: SmallVec<[f64; 4]> = inside.map(|access| self.place(access.open).parts).collect();
        operands.sort_by(f64::total_cmp);
        // A single operand has no vectors to reuse.
        let kept = if let [least, _, ..] = operands[..] { least } else { 0.0 };
        (accumulators + kept + 1.0 - self.target.vector_registers as f64).max(0.0)
    }
}
