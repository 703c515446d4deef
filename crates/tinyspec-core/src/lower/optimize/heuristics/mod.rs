//! Schedules made by hand-written rules; the search will start from them.

mod contraction;
mod copies;
mod dot;
mod gemv;
mod height;
mod nontemporal;
mod partition;
mod scan;
mod values;
mod vector;
mod window;
mod workgroups;

use self::contraction::Tile;
pub(super) use self::copies::share_copies;
pub(super) use self::nontemporal::nontemporal;
pub(super) use self::partition::partition;
pub(super) use self::values::values;
use super::axis::Axis;
use super::cost;
use super::kernel::Kernel;
use super::space::Space;
use crate::lower::optimize::transforms::{OptOp, Padto, Split, Swap};
use tinyspec_backends::Target;
use tinyspec_ir::{AxisType, Graph, NodeId, Op, words};

/// The schedule of a kernel for this target; `space` is its axes without one.
pub(super) fn choose(graph: &Graph, kernel: &Kernel, space: Space, target: &Target) -> Vec<OptOp> {
    let mut planner = Planner { graph, kernel, target, space, ops: Vec::new() };
    if let Some(stores) = nontemporal(graph, kernel, target) {
        planner.apply(stores);
    }
    if let Some(limits) = &target.workgroups {
        return planner.workgroups(limits);
    }
    let carried = planner.carried();
    if !carried.is_empty() {
        return planner.scan(&carried);
    }
    let factors = planner.factors();
    let contractions = factors.or_else(|| planner.operands()).map(|operands| planner.contraction(operands));
    let contractions = contractions.unwrap_or_default();
    // The arithmetic of other terms may outweigh the loads that a tile saves.
    let is_other = !contractions.is_empty() && factors.is_none();
    let tiles = planner.tiles(&contractions);
    let has_vectors = tiles.is_empty() || is_other;
    let vectors = has_vectors.then(|| planner.clone().vectorize());
    let of_words = factors.and_then(|factors| Some((factors, planner.in_words(factors)?)));
    let of_words = of_words.iter().flat_map(|(factors, planner)| {
        let dot = planner.shared_dot(*factors).map(|dot| planner.clone().tile_dot(&dot));
        dot.into_iter().chain(has_vectors.then(|| planner.clone().vectorize()))
    });
    planner.cheapest(tiles.into_iter().chain(vectors).chain(of_words)).unwrap_or_default()
}

#[derive(Clone)]
struct Planner<'a> {
    graph: &'a Graph,
    kernel: &'a Kernel,
    target: &'a Target,
    space: Space,
    ops: Vec<OptOp>,
}

impl Planner<'_> {
    /// The kernel under register tiles: of a contraction, and of windows unless vectors can only lie along its output axes.
    fn tiles(&self, contractions: &[Tile]) -> Vec<Planner<'_>> {
        let windows = if let [Tile::Panel(_)] = contractions { Vec::new() } else { self.window_tiles() };
        let tiled = contractions.iter().map(|tile| match tile {
            Tile::Panel(tile) => self.clone().tile(tile),
            Tile::Dot(dot) => self.clone().tile_dot(dot),
        });
        tiled.chain(windows.iter().map(|tile| self.clone().tile_window(tile))).collect()
    }

    /// The schedule that costs least.
    fn cheapest<'p>(&self, candidates: impl Iterator<Item = Planner<'p>>) -> Option<Vec<OptOp>> {
        let mut candidates: Vec<Planner> = candidates.collect();
        if candidates.len() < 2 {
            return candidates.pop().map(|candidate| candidate.ops);
        }
        let cost = |it: &Planner| cost::estimate(self.graph, self.kernel, &it.space, self.target).nanoseconds();
        let costs = candidates.into_iter().map(|candidate| (cost(&candidate), candidate));
        costs.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, candidate)| candidate.ops)
    }

    fn apply(&mut self, op: impl Into<OptOp>) {
        let op = op.into();
        if self.space.apply(&op).is_ok() {
            self.ops.push(op);
        }
    }

    /// Lanes of a vector: as many as of the smallest type in memory, but bytes do not set the pace.
    fn lanes(&self) -> i64 {
        crate::lower::lanes(self.target, self.kernel.dtypes(self.graph)) as i64
    }

    /// Position of the innermost axis of an original range.
    fn axis(&self, origin: usize) -> Option<usize> {
        self.space.axes.iter().rposition(|axis| axis.origin == origin)
    }

    /// Trips of an original range; if words lie along it, the number of words.
    fn trips(&self, origin: usize) -> i64 {
        let trips = self.space.origins[origin].trips.unwrap_or(0);
        let numbers = self.space.facts.numbers.filter(|_| self.space.words == Some(origin));
        let count = numbers.map_or(1, |numbers| words::count(numbers) as i64);
        (trips + count - 1) / count
    }

    fn coefficient(&self, access: usize, origin: usize) -> i64 {
        self.kernel.accesses[access].index.coefficient(self.space.origins[origin].range)
    }

    fn depends(&self, access: usize, origin: usize) -> bool {
        self.kernel.accesses[access].open & self.kernel.live.bit(self.space.origins[origin].range) != 0
    }

    /// The access of a Load, looked for through Casts and masks, outside of which it is a constant.
    fn loaded(&self, value: NodeId) -> Option<usize> {
        let mut value = value;
        let is_constant = |node: NodeId| self.graph.as_const(node).is_some();
        loop {
            value = match (self.graph.op(value), self.graph.sources(value)) {
                (Op::Cast, &[source]) => source,
                (Op::Where, &[_, source, other]) | (Op::Where, &[_, other, source]) if is_constant(other) => source,
                _ => break,
            };
        }
        self.kernel.accesses.iter().position(|access| access.node == value)
    }

    /// Output ranges of the only nest that were not merged away.
    fn outputs(&self) -> Vec<usize> {
        let [nest] = self.kernel.nests.as_slice() else { return Vec::new() };
        let origins = nest.ranges.iter().filter_map(|&range| self.space.origin(range));
        origins.filter(|&origin| !self.space.origins[origin].merged).collect()
    }

    /// Lanes of the narrowest machine vector, if the widest one has so many.
    fn narrowest(&self, lanes: i64) -> i64 {
        const BYTES: usize = 16;
        lanes / (self.target.vector_bytes / BYTES).max(1) as i64
    }

    /// Lanes of a vector along an axis. Where vectors can be masked, an axis shorter than one takes the narrowest that holds
    /// it: no more instructions than a scalar takes.
    fn lanes_along(&self, origin: usize, lanes: i64) -> i64 {
        self.lanes_for(self.trips(origin), lanes)
    }

    /// As [`Planner::lanes_along`], for an axis of `trips` trips.
    fn lanes_for(&self, trips: i64, lanes: i64) -> i64 {
        /// The fewest elements that a masked vector processes faster than scalar instructions do.
        const SHORTEST: i64 = 3;
        let is_narrow = self.target.masked_access && (SHORTEST..lanes).contains(&trips);
        if is_narrow { (trips as u64).next_power_of_two() as i64 } else { lanes }
    }

    /// Splits off up to `vectors` vectors; pads where that costs little, else leaves the axis alone.
    fn split_by_vectors(&mut self, origin: usize, lanes: i64, vectors: i64, target: AxisType) {
        let (trips, lanes) = (self.trips(origin), self.lanes_along(origin, lanes));
        let mut count = vectors;
        while count > 1 && (trips < lanes * count || trips % (lanes * count) != 0 && trips < 8 * lanes * count) {
            count /= 2;
        }
        let mut factor = lanes * count;
        // Without masks vectors that divide are better than padded ones, half as wide if need be. Terms of a sum wait for the
        // one before: of an odd number of vectors, three or five are added up beside each other.
        let whole = factor.min(1 << trips.trailing_zeros().min(32));
        if !self.target.masked_access && whole * 2 >= lanes {
            let is_whole = |count: &i64| whole == lanes && trips % (count * lanes) == 0;
            let odd = (3..=factor / lanes + 1).rev().find(is_whole).filter(|_| !self.kernel.reductions.is_empty());
            factor = whole * odd.unwrap_or(1);
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
                self.apply(Padto { axis: self.space.name(axis), multiple: factor });
            }
            self.apply(Split { axis: self.space.name(axis), factor, target, top: false });
        }
    }

    /// Exchanges the axes at two positions.
    fn swap(&mut self, a: usize, b: usize) {
        let name = |position: usize| self.space.axes.get(position).map(Axis::name);
        if let (Some(a), Some(b)) = (name(a), name(b)) {
            self.apply(Swap(a, b));
        }
    }

    /// The outermost loop goes to the threads.
    fn share(&mut self) {
        if let Some(share) = self.space.share() {
            self.apply(share);
        }
    }
}
