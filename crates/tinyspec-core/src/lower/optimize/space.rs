//! The iteration space of a kernel: its axes in loop order, and how the original ranges follow from them.

use super::kernel::{Kernel, is_index, slot};
use super::online::{Blocking, Lengths};
use super::opt_op::OptOp;
use super::refusal::{Refusal, Refused};
use crate::lower::live;
use tinyspec_backends::Target;
use tinyspec_ir::{Arg, AxisType, Graph, NodeId, Op};

/// Elements of a register tile beyond which no machine has a use for it, and its code no end.
const LARGEST_TILE: i64 = 1 << 14;

/// One loop of the schedule.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Axis {
    /// Which original range it is a part of, by its position in [`Space`].
    pub origin: usize,
    /// Number of trips; `None` where a named dim decides.
    pub trips: Option<i64>,
    /// What a trip adds to the original range.
    pub stride: i64,
    /// Its type.
    pub kind: AxisType,
}

/// An original range.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Origin {
    /// The Range.
    pub range: NodeId,
    /// Its trips, together with those of the ranges merged into it.
    pub trips: Option<i64>,
    /// The schedule runs beyond its bound: gate what depends on it.
    pub padded: bool,
    /// Merged into its inner neighbour, and 0 by itself.
    pub merged: bool,
}

/// A Param that is copied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Staged {
    /// Its slot.
    pub slot: u32,
    /// Axes around the copy.
    pub around: usize,
    /// The first of the trips that read it makes the copy.
    pub first: bool,
}

/// Axes in loop order: output axes first, then those of reductions, unless swapped.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Space {
    /// The axes.
    pub axes: Vec<Axis>,
    pub(crate) origins: Vec<Origin>,
    /// The copies of Params.
    pub(crate) stages: Vec<Staged>,
    /// The original range of which two trips make a word.
    pub(crate) words: Option<usize>,
    /// The axis of which several trips are worked on at a time, in stages.
    pub(crate) staggered: Option<usize>,
    /// Blocks that sums are made in, instead of the axes.
    pub(crate) blocks: Option<Blocking>,
    /// What blocks have to fit, where there can be any.
    pub(crate) lengths: Option<Lengths>,
    /// Stores bypass the caches.
    pub(crate) nontemporal: bool,
    /// Neither LOCAL memory nor workgroups of several threads.
    no_locals: bool,
    /// Some Reduce grows from trip to trip.
    carries: bool,
    /// All Reduces are over the same ranges, so that loops over these can be around those over outputs.
    alike: bool,
    /// Params that may be staged: read, never written.
    params: Vec<u32>,
    /// Ranges that words can be made along.
    pairs: Vec<NodeId>,
    /// The device has workgroups; else its threads share the one GLOBAL axis.
    workgroups: bool,
    /// The origins of each loop nest.
    nests: Vec<Vec<usize>>,
    /// The origins of each Reduce.
    reductions: Vec<Vec<usize>>,
}

impl Space {
    pub(crate) fn new(graph: &Graph, kernel: &Kernel, target: &Target) -> Space {
        let mut params: Vec<u32> = kernel.accesses.iter().filter_map(|access| slot(graph, access.buffer)).collect();
        params.sort_unstable();
        params.dedup();
        params.retain(|&slot| kernel.reads(graph, slot));
        let pairs = kernel.product.iter().flat_map(|product| product.ranges.iter().copied()).collect();
        let carries = kernel.reductions.iter().any(|reduction| reduction.carried.is_some());
        let mut reduced = kernel.reductions.iter().map(|reduction| &reduction.ranges);
        let first = reduced.next();
        let alike = first.is_some_and(|first| reduced.all(|other| other == first)) && kernel.nests.len() == 1;
        let (axes, origins, stages) = (Vec::new(), Vec::new(), Vec::new());
        let (words, staggered, blocks, lengths) = (None, None, None, None);
        let mut space = Space {
            axes,
            origins,
            stages,
            words,
            staggered,
            blocks,
            lengths,
            nontemporal: false,
            no_locals: false,
            carries,
            alike,
            params,
            pairs,
            workgroups: target.workgroups.is_some(),
            nests: Vec::new(),
            reductions: Vec::new(),
        };
        for nest in &kernel.nests {
            space.add(graph, kernel, &nest.ranges, AxisType::Loop);
        }
        for reduction in &kernel.reductions {
            space.add(graph, kernel, &reduction.ranges, AxisType::Reduce);
        }
        let origins = |ranges: &[NodeId]| ranges.iter().filter_map(|&range| space.origin(range)).collect();
        let nests = kernel.nests.iter().map(|nest| origins(&nest.ranges)).collect();
        let reductions = kernel.reductions.iter().map(|reduction| origins(&reduction.ranges)).collect();
        Space { nests, reductions, ..space }
    }

    /// Adds the ranges of one nest or reduction, merging neighbours that every access walks as if they were one.
    fn add(&mut self, graph: &Graph, kernel: &Kernel, ranges: &[NodeId], kind: AxisType) {
        let mut outer: Option<usize> = None;
        for &range in ranges {
            if self.origin(range).is_some() {
                outer = None;
                continue;
            }
            let trips = live::trips(graph, range);
            let mut origin = Origin { range, trips, padded: false, merged: false };
            if let Some(before) = outer
                && let (Some(a), Some(b)) = (self.origins[before].trips, trips)
                && walks_as_one(graph, kernel, self.origins[before].range, range, b)
            {
                origin.trips = a.checked_mul(b);
                if origin.trips.is_some() {
                    self.origins[before].merged = true;
                    self.axes.pop();
                } else {
                    origin.trips = trips;
                }
            }
            outer = Some(self.origins.len());
            // Given to the threads already.
            let shared = matches!(graph.arg(range), Arg::Range { axis: AxisType::Global, .. });
            let kind = if shared { AxisType::Global } else { kind };
            self.axes.push(Axis { origin: self.origins.len(), trips: origin.trips, stride: 1, kind });
            self.origins.push(origin);
        }
    }

    /// The op that gives the outermost loop to the threads; none where several nests follow each other.
    pub(crate) fn share(&self) -> Option<OptOp> {
        let is_loop = |axis: &Axis| axis.kind == AxisType::Loop && axis.trips != Some(1);
        if self.blocks.is_some() || self.axes.iter().any(|axis| axis.kind == AxisType::Global) {
            return None;
        }
        let axis = self.axes.iter().position(is_loop).filter(|_| self.nests.len() == 1)?;
        let factor = self.axes[axis].trips?;
        Some(OptOp::Split { axis, factor, target: AxisType::Global, top: true })
    }

    /// Params that can be copied.
    pub(crate) fn params(&self) -> &[u32] {
        &self.params
    }

    /// Is this Param read from a copy?
    pub(crate) fn is_staged(&self, slot: u32) -> bool {
        self.stages.iter().any(|stage| stage.slot == slot)
    }

    /// Can a loop over terms be around a loop over results? The results of a trip are in memory then.
    pub(crate) fn can_sum_rows(&self) -> bool {
        self.alike && !self.carries && self.stages.is_empty() && self.words.is_none() && self.staggered.is_none()
    }

    /// A loop over terms is around one over results.
    fn sums_rows(&self) -> bool {
        let first = self.axes.iter().position(|axis| axis.kind == AxisType::Reduce);
        let last = self.axes.iter().rposition(|axis| axis.kind == AxisType::Loop);
        first.is_some() && first < last
    }

    /// Position of an original range.
    pub(crate) fn origin(&self, range: NodeId) -> Option<usize> {
        self.origins.iter().position(|origin| origin.range == range)
    }

    /// Every axis is as it was, but for their order.
    fn is_whole(&self) -> bool {
        let is_whole = |axis: &Axis| axis.stride == 1 && axis.trips == self.origins[axis.origin].trips;
        self.axes.iter().all(is_whole) && self.stages.is_empty() && !self.no_locals && !self.nontemporal
    }

    /// Applies one op to the axes. What it takes computes the same as before, on every device; what it refuses leaves the
    /// axes as they were.
    ///
    /// # Errors
    /// When the op does not fit the axes: says why.
    pub fn apply(&mut self, op: &OptOp) -> Result<(), Refused> {
        let refused = |reason| Refused { op: op.clone(), reason };
        let mut after = self.clone();
        after.change(op).and_then(|()| after.check()).map_err(refused)?;
        *self = after;
        Ok(())
    }

    fn axis(&self, axis: usize) -> Result<Axis, Refusal> {
        self.axes.get(axis).cloned().ok_or(Refusal::NoAxis { axis, count: self.axes.len() })
    }

    fn change(&mut self, op: &OptOp) -> Result<(), Refusal> {
        if self.blocks.is_some() {
            return Err(Refusal::AfterBlock);
        }
        if self.staggered.is_some() && !matches!(op, OptOp::Stage { .. } | OptOp::Nontemporal) {
            return Err(Refusal::AfterStagger);
        }
        if self.sums_rows() && matches!(op, OptOp::Stage { .. } | OptOp::Stagger { .. } | OptOp::Tc { .. }) {
            return Err(Refusal::AroundResults);
        }
        match *op {
            OptOp::Split { axis, factor, target, top } => self.split(axis, factor, target, top),
            OptOp::Swap(a, b) => self.swap(a, b),
            OptOp::Padto { axis, multiple } => self.pad(axis, multiple),
            OptOp::Nolocals => {
                self.no_locals = true;
                Ok(())
            }
            OptOp::Nontemporal => {
                self.nontemporal = true;
                Ok(())
            }
            OptOp::Stage { slot, at, first } => self.stage(Staged { slot, around: at, first }),
            OptOp::Tc { axis } => self.pair(axis),
            OptOp::Stagger { axis } => self.stagger(axis),
            OptOp::Block(blocking) => {
                let Some(lengths) = &self.lengths else { return Err(Refusal::NoBlocks) };
                if !self.is_whole() {
                    return Err(Refusal::BlockNotAlone);
                }
                self.blocks = Some(lengths.fitted(blocking));
                Ok(())
            }
        }
    }

    fn split(&mut self, position: usize, factor: i64, target: AxisType, top: bool) -> Result<(), Refusal> {
        let old = self.axis(position)?;
        let Some(trips) = old.trips.filter(|trips| factor > 0 && trips % factor == 0) else {
            return Err(Refusal::Indivisible { axis: position, factor, trips: old.trips });
        };
        if old.kind.is_reduce() != target.is_reduce() {
            return Err(Refusal::Direction { from: old.kind, to: target });
        }
        let rest = trips / factor;
        let (outer, inner) = if top {
            let outer = Axis { trips: Some(factor), stride: old.stride * rest, kind: target, ..old };
            (outer, Axis { trips: Some(rest), ..old })
        } else {
            let outer = Axis { trips: Some(rest), stride: old.stride * factor, ..old };
            (outer, Axis { trips: Some(factor), kind: target, ..old })
        };
        self.axes.splice(position..=position, [outer, inner]);
        Ok(())
    }

    fn swap(&mut self, a: usize, b: usize) -> Result<(), Refusal> {
        let (first, second) = (self.axis(a)?, self.axis(b)?);
        let are_loops = [first.kind, second.kind].iter().all(|kind| matches!(kind, AxisType::Loop | AxisType::Reduce));
        if first.kind.is_reduce() != second.kind.is_reduce() && !(are_loops && self.can_sum_rows()) {
            return Err(Refusal::SwapWithReduce);
        }
        self.axes.swap(a, b);
        Ok(())
    }

    fn pad(&mut self, position: usize, multiple: i64) -> Result<(), Refusal> {
        let old = self.axis(position)?;
        // The others of its range fill each of its trips, and nothing is beyond.
        let is_outermost = self.axes.iter().enumerate().all(|(other_position, other)| {
            let fills = |trips: i64| trips == 1 || other.stride.saturating_mul(trips) <= old.stride;
            other.origin != old.origin || other_position == position || other.trips.is_some_and(fills)
        });
        let padded = old
            .trips
            .filter(|_| is_outermost && (1..=LARGEST_TILE).contains(&multiple))
            .and_then(|trips| trips.checked_add(multiple - 1))
            .map(|trips| trips / multiple * multiple)
            .filter(|trips| trips.checked_mul(old.stride).is_some());
        if padded.is_none() {
            return Err(Refusal::Unpaddable { axis: position, multiple, trips: old.trips });
        }
        if padded != old.trips {
            self.axes[position].trips = padded;
            self.origins[old.origin].padded = true;
        }
        Ok(())
    }

    fn pair(&mut self, position: usize) -> Result<(), Refusal> {
        let old = self.axis(position)?;
        let range = self.origins[old.origin].range;
        let parts = self.axes.iter().filter(|axis| axis.origin == old.origin).count();
        if self.words.is_some() || parts > 1 || !self.pairs.contains(&range) {
            return Err(Refusal::NoPairs(position));
        }
        let Some(trips) = old.trips.filter(|trips| trips % 2 == 0) else { return Err(Refusal::OddPairs(position)) };
        self.axes[position] = Axis { trips: Some(trips / 2), stride: 2, ..old };
        self.words = Some(old.origin);
        Ok(())
    }

    fn stagger(&mut self, position: usize) -> Result<(), Refusal> {
        let old = self.axis(position)?;
        if old.kind != AxisType::Loop || old.trips.is_none() {
            return Err(Refusal::NoLoop(position));
        }
        if self.carries {
            return Err(Refusal::Carries);
        }
        self.staggered = Some(position);
        Ok(())
    }

    fn stage(&mut self, staged: Staged) -> Result<(), Refusal> {
        let count = self.axes.len();
        if staged.around > count {
            return Err(Refusal::TooDeep { at: staged.around, count });
        }
        if !self.params.contains(&staged.slot) {
            return Err(Refusal::NotRead(staged.slot));
        }
        if self.is_staged(staged.slot) {
            return Err(Refusal::StagedTwice(staged.slot));
        }
        self.stages.push(staged);
        Ok(())
    }

    /// What holds between any two ops.
    fn check(&self) -> Result<(), Refusal> {
        let is_local = |axis: &Axis| axis.kind.is_within_workgroup();
        if self.no_locals && (!self.stages.is_empty() || self.sums_rows() || self.axes.iter().any(is_local)) {
            return Err(Refusal::NoLocals);
        }
        let elements = self.tile();
        if elements > LARGEST_TILE {
            return Err(Refusal::Tile { elements, most: LARGEST_TILE });
        }
        if self.workgroups { Ok(()) } else { self.check_threads() }
    }

    /// Without workgroups the threads share the outermost loop, and nothing else is parallel.
    fn check_threads(&self) -> Result<(), Refusal> {
        let is_of_workgroups = |kind: AxisType| kind == AxisType::Thread || kind.is_within_workgroup();
        if let Some(axis) = self.axes.iter().find(|axis| is_of_workgroups(axis.kind)) {
            return Err(Refusal::NoWorkgroups(axis.kind));
        }
        let loops = || self.axes.iter().filter(|axis| axis.trips != Some(1) && !axis.is_tile());
        match loops().filter(|axis| axis.kind == AxisType::Global).count() {
            0 => Ok(()),
            _ if self.nests.len() > 1 => Err(Refusal::SeveralNests(self.nests.len())),
            1 if loops().next().is_some_and(|axis| axis.kind == AxisType::Global) => Ok(()),
            1 => Err(Refusal::GlobalInside),
            _ => Err(Refusal::SecondGlobal),
        }
    }

    /// Elements of the largest register tile.
    fn tile(&self) -> i64 {
        let trips = |axis: &Axis| axis.trips.unwrap_or(1).max(1);
        let most = |all: &[Vec<usize>], kind: AxisType| {
            let of = |origins: &Vec<usize>| {
                let own = self.axes.iter().filter(|axis| axis.kind == kind && origins.contains(&axis.origin));
                own.fold(1i64, |tile, axis| tile.saturating_mul(trips(axis)))
            };
            all.iter().map(of).max().unwrap_or(1)
        };
        most(&self.nests, AxisType::Upcast).saturating_mul(most(&self.reductions, AxisType::Unroll))
    }
}

impl Axis {
    /// Part of a register tile, not a loop.
    pub(crate) fn is_tile(&self) -> bool {
        matches!(self.kind, AxisType::Upcast | AxisType::Unroll)
    }
}

/// Every index contains `outer` and `inner` only as `inner_trips · outer + inner`, times a constant.
fn walks_as_one(graph: &Graph, kernel: &Kernel, outer: NodeId, inner: NodeId, inner_trips: i64) -> bool {
    // Sums within sums are covered by the outer ones: what counts is where other nodes use them.
    let users = kernel.order.iter().filter(|&&node| !is_index(graph, node) && graph.op(node) != Op::End);
    users.flat_map(|&node| graph.sources(node)).all(|&source| {
        let Some(sum) = kernel.sums.get(&source) else { return true };
        if source == outer || source == inner {
            return graph.op(source) != Op::Range || only_closed(graph, kernel, source);
        }
        sum.coefficient(outer) == sum.coefficient(inner).wrapping_mul(inner_trips)
            && sum.terms.iter().all(|&(atom, _)| {
                atom == outer || atom == inner || !(depends(graph, atom, outer) || depends(graph, atom, inner))
            })
    })
}

/// A Range that no value uses by itself: only Ends and Reduces name it.
fn only_closed(graph: &Graph, kernel: &Kernel, range: NodeId) -> bool {
    kernel.order.iter().all(|&node| {
        let sources = graph.sources(node);
        let values = match graph.op(node) {
            Op::Reduce | Op::End => &sources[..1],
            _ if is_index(graph, node) => &[][..],
            _ => sources,
        };
        !values.contains(&range)
    })
}

/// An atom of index arithmetic contains the Range. Loaded data do not count: their own index is looked at.
fn depends(graph: &Graph, atom: NodeId, range: NodeId) -> bool {
    let mut stack = vec![atom];
    while let Some(node) = stack.pop() {
        if node == range {
            return true;
        }
        if graph.op(node) != Op::Cast && graph.op(node) != Op::Range {
            stack.extend(graph.sources(node));
        }
    }
    false
}
