//! Execution counts of values inside the loops of a schedule.

use crate::lower::live::RangeSet;
use crate::lower::optimize::kernel::Kernel;
use crate::lower::optimize::space::Space;
use smallvec::SmallVec;
use tinyspec_ir::AxisType;

/// Trips taken for a loop that a named dim bounds.
pub(crate) const NAMED_TRIPS: f64 = 64.0;

/// The axes of a schedule as loops around the nodes of the kernel.
pub(super) struct Loops<'a> {
    pub space: &'a Space,
    /// Original ranges of each axis.
    ranges: Vec<RangeSet>,
    /// Ranges of reductions that take one term a trip of another loop.
    carried: RangeSet,
    /// Ranges of each reduction, and those open around it.
    reductions: SmallVec<[(RangeSet, RangeSet); 4]>,
}

impl<'a> Loops<'a> {
    pub fn new(kernel: &Kernel, space: &'a Space) -> Loops<'a> {
        // A range that was merged away is walked by the next one that was not.
        let mut of_origin: Vec<RangeSet> = Vec::with_capacity(space.origins.len());
        let mut merged: RangeSet = 0;
        for origin in &space.origins {
            merged |= kernel.live.bit(origin.range);
            of_origin.push(merged);
            if !origin.merged {
                merged = 0;
            }
        }
        let of = |ranges: &[tinyspec_ir::NodeId]| ranges.iter().fold(0, |set, &range| set | kernel.live.bit(range));
        Loops {
            space,
            carried: 0,
            ranges: space.axes.iter().map(|axis| of_origin[axis.origin]).collect(),
            reductions: kernel.reductions.iter().map(|reduction| (of(&reduction.ranges), reduction.outer)).collect(),
        }
    }

    /// Takes reductions over these ranges for carried: they add one term per trip of another loop.
    pub fn carrying(self, carried: RangeSet) -> Loops<'a> {
        Loops { carried, ..self }
    }

    /// Whether a running Reduce, inside the ranges `outer`, can be carried from trip to trip of the loops over `places`: these loops
    /// are serial, and no other loop over `outer` is nested in them.
    pub fn carry(&self, places: RangeSet, outer: RangeSet) -> bool {
        let is_loop = |axis: &usize| !self.is_tile(*axis) && !self.is_reduce(*axis) && self.trips(*axis) != 1.0;
        let loops = (0..self.count()).filter(is_loop);
        let mut inner = loops.skip_while(|&axis| !self.moves(axis, places));
        inner.all(|axis| match self.moves(axis, places) {
            true => self.space.axes[axis].kind == AxisType::Loop,
            false => !self.moves(axis, outer),
        })
    }

    pub fn trips(&self, axis: usize) -> f64 {
        self.space.axes[axis].trips.map_or(NAMED_TRIPS, |trips| trips as f64)
    }

    pub fn is_tile(&self, axis: usize) -> bool {
        matches!(self.space.axes[axis].kind, AxisType::Upcast | AxisType::Unroll)
    }

    pub fn is_reduce(&self, axis: usize) -> bool {
        self.space.axes[axis].kind.is_reduce()
    }

    /// Tile axes of a value inside these ranges.
    pub fn tile(&self, open: RangeSet) -> SmallVec<[usize; 8]> {
        (0..self.ranges.len()).filter(|&axis| self.is_tile(axis) && self.ranges[axis] & open != 0).collect()
    }

    /// Loops around a value inside these ranges, outer ones first: down to the innermost that it depends on.
    pub fn around(&self, open: RangeSet) -> SmallVec<[usize; 8]> {
        let inside = self.reductions.iter().filter(|reduction| reduction.0 & open != 0);
        let (own, outer) = inside.fold((0, open), |(own, outer), reduction| (own | reduction.0, outer | reduction.1));
        // An axis that lies in the tile as a whole leaves a loop of one trip, which is none.
        let loops = || (0..self.ranges.len()).filter(|&axis| !self.is_tile(axis) && self.trips(axis) != 1.0);
        let deepest = |set: RangeSet, reduce: bool| {
            loops().rfind(|&axis| self.is_reduce(axis) == reduce && self.ranges[axis] & set != 0)
        };
        let (output, reduce) = (deepest(outer, false), deepest(open, true));
        loops()
            .filter(|&axis| match self.is_reduce(axis) {
                false => output.is_some_and(|deepest| axis <= deepest),
                true => self.ranges[axis] & own != 0 && reduce.is_some_and(|deepest| axis <= deepest),
            })
            .collect()
    }

    /// Executions of a value inside these ranges.
    pub fn times(&self, open: RangeSet) -> f64 {
        self.around(open).into_iter().map(|axis| self.trips(axis)).product()
    }

    /// Trips of the loops among the first axes.
    pub fn trips_of_first(&self, count: usize) -> f64 {
        (0..count.min(self.ranges.len())).filter(|&axis| !self.is_tile(axis)).map(|axis| self.trips(axis)).product()
    }

    /// Iterations of all loops together.
    pub fn iterations(&self) -> f64 {
        let each = self.ranges.iter().enumerate();
        let each = each.filter(|(axis, ranges)| !self.is_tile(*axis) && **ranges & self.carried == 0);
        each.map(|(_, &ranges)| self.times(ranges)).sum()
    }

    /// Trips of all Ranges in a set together: the fewest executions, whatever the order of the loops.
    pub fn combinations(&self, open: RangeSet) -> f64 {
        (0..self.ranges.len()).filter(|&axis| self.moves(axis, open)).map(|axis| self.trips(axis)).product()
    }

    pub fn count(&self) -> usize {
        self.ranges.len()
    }

    /// Whether the axis walks any of these ranges.
    pub fn moves(&self, axis: usize, open: RangeSet) -> bool {
        self.ranges[axis] & open != 0
    }

    /// Threads at work on average, where a THREAD axis is shared among so many.
    pub fn threads(&self, threads: usize) -> f64 {
        let shared = (0..self.ranges.len()).find(|&axis| self.space.axes[axis].kind == AxisType::Thread);
        super::threads(shared.map_or(1.0, |axis| self.trips(axis)), threads)
    }
}
