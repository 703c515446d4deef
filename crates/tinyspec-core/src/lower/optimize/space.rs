//! The iteration space of a kernel: its axes in loop order, and how the original ranges follow from them.

mod facts;

use super::axis::{Axis, AxisName};
use super::kernel::{Kernel, is_index};
use super::online::{Blocking, Lengths};
use super::refusal::Refusal;
use super::transforms::{Copier, OptOp, Split, Stage};
use crate::lower::live;
use facts::Facts;
use std::sync::Arc;
use tinyspec_backends::Target;
use tinyspec_ir::{Arg, AxisType, Graph, NodeId, Op};

/// The most elements of a register tile: larger ones are useful on no machine, and their code would be enormous.
pub(super) const LARGEST_TILE: i64 = 1 << 14;

/// An original range.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Origin {
    /// The Range.
    pub range: NodeId,
    /// Its trips, together with those of the ranges merged into it.
    pub trips: Option<i64>,
    /// Whether the schedule runs beyond its bound, so that dependent values need a gate.
    pub padded: bool,
    /// Whether it is merged into its inner neighbour, and 0 by itself.
    pub merged: bool,
}

/// A Param that is packed, as [`Stage::Param`] says.
#[derive(Clone, Copy)]
pub(crate) struct Packing {
    /// Its slot.
    pub slot: u32,
    /// The loop inside which it is copied; `None` for the root of the kernel.
    pub at: Option<AxisName>,
    /// The code that makes the copy.
    pub by: Copier,
}

/// Loops that a transform writes itself, in place of the axes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum OwnLoops {
    /// Online-softmax tiling.
    Blocks(Blocking),
    /// A loop over the terms of sums at data-dependent positions.
    Scatter,
}

/// The axes of a register tile that an epilogue by rows walks.
#[derive(Clone, Copy)]
pub(crate) struct Epilogue {
    /// The axis over the tile's rows.
    pub row: usize,
    /// The axis of the tile that all stores are contiguous in.
    pub lane: usize,
}

/// The iteration space of a kernel under a schedule: axes in loop order, those over results first, then those of reductions, unless
/// swapped; and what else the schedule decides.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Space {
    /// The axes.
    pub axes: Vec<Axis>,
    pub(crate) origins: Vec<Origin>,
    /// The values in LOCAL memory.
    pub(crate) staged: Vec<Stage>,
    /// The original range along which several trips are packed into a word.
    pub(crate) words: Option<usize>,
    /// The loop that is software-pipelined.
    pub(crate) pipelined: Option<usize>,
    /// The loop over terms that is partitioned where conditions change.
    pub(crate) partitioned: Option<usize>,
    /// Loops in place of the axes.
    pub(crate) own_loops: Option<OwnLoops>,
    /// Whether stores bypass the caches.
    pub(crate) nontemporal: bool,
    /// Whether LOCAL memory and workgroups of several threads are excluded.
    pub(super) no_locals: bool,
    /// Facts about the kernel, independent of the schedule.
    pub(super) facts: Arc<Facts>,
}

impl Space {
    /// The axes of a kernel without a schedule. `lengths` are the axis lengths for online-softmax tiling, if the kernel has that form.
    pub(crate) fn new(
        graph: &Graph,
        kernel: &Kernel,
        target: &Target,
        lengths: Option<Lengths>,
        can_scatter: bool,
    ) -> Space {
        let mut space = Space {
            axes: Vec::new(),
            origins: Vec::new(),
            staged: Vec::new(),
            words: None,
            pipelined: None,
            partitioned: None,
            own_loops: None,
            nontemporal: false,
            no_locals: false,
            facts: Arc::default(),
        };
        for nest in &kernel.nests {
            space.add(graph, kernel, &nest.ranges, AxisType::Loop);
        }
        for reduction in &kernel.reductions {
            space.add(graph, kernel, &reduction.ranges, AxisType::Reduce);
        }
        let facts = Facts { lengths, can_scatter, ..Facts::of(graph, kernel, target, &space) };
        Space { facts: Arc::new(facts), ..space }
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
            let shared = matches!(graph.arg(range), Arg::Range { axis: AxisType::Thread, .. });
            let kind = if shared { AxisType::Thread } else { kind };
            self.axes.push(Axis { origin: self.origins.len(), part: 0, trips: origin.trips, stride: 1, kind });
            self.origins.push(origin);
        }
    }

    /// Whether the schedule writes all loops itself.
    pub(crate) fn has_own_loops(&self) -> bool {
        self.own_loops.is_some()
    }

    /// The op that gives the outermost loop to the threads, or to workgroups; none where several nests follow each other.
    pub(crate) fn share(&self) -> Option<OptOp> {
        let is_loop = |axis: &Axis| axis.kind == AxisType::Loop && axis.trips != Some(1);
        if self.has_own_loops() || self.axes.iter().any(|axis| axis.kind.is_parallel()) {
            return None;
        }
        let axis = self.axes.iter().find(|axis| is_loop(axis)).filter(|_| self.facts.nests.len() == 1)?;
        let factor = axis.trips?;
        let target = if self.facts.workgroups { AxisType::Global } else { AxisType::Thread };
        Some(Split { axis: axis.name(), factor, target, top: true }.into())
    }

    /// Params that can be copied.
    pub(crate) fn params(&self) -> &[u32] {
        &self.facts.params
    }

    /// How a Param is packed, if it is.
    pub(crate) fn packing(&self, slot: u32) -> Option<Packing> {
        self.packings().find(|packing| packing.slot == slot)
    }

    /// The same axes, but each thread makes for itself the copies that a copy kernel would make.
    pub(super) fn without_copies_before(&self) -> Space {
        let mut space = self.clone();
        for stage in &mut space.staged {
            if let Stage::Param { by: by @ Copier::Kernel, .. } = stage {
                *by = Copier::Loops;
            }
        }
        space
    }

    /// The Params that are packed.
    fn packings(&self) -> impl Iterator<Item = Packing> {
        self.staged.iter().filter_map(|stage| match *stage {
            Stage::Param { slot, at, by } => Some(Packing { slot, at, by }),
            _ => None,
        })
    }

    /// The repeated values that are kept, by their numbers.
    pub(crate) fn kept(&self) -> impl Iterator<Item = usize> {
        self.staged.iter().filter_map(|stage| match *stage {
            Stage::Value(number) => Some(number),
            _ => None,
        })
    }

    /// Whether any value goes through LOCAL memory.
    fn uses_locals(&self) -> bool {
        !self.staged.is_empty()
    }

    /// Whether this repeated value may be kept in addition to those that are.
    pub(super) fn may_keep(&self, repeat: usize) -> bool {
        let repeats = &self.facts.repeats;
        let Some(&(_, overlaps)) = repeats.get(repeat) else { return false };
        let kept = self.kept().fold(0, |set: u64, kept| set | 1 << kept);
        let among = kept | 1 << repeat;
        if kept == among || kept & overlaps != 0 {
            return false;
        }
        let (mut reached, mut open) = (0u64, vec![repeat]);
        while let Some(next) = open.pop() {
            let more = repeats[next].0 & among & !reached;
            reached |= more;
            open.extend((0..repeats.len()).filter(|&other| more >> other & 1 == 1));
        }
        reached >> repeat & 1 == 0
    }

    /// The repeated values that may still be kept.
    pub(super) fn keepable(&self) -> impl Iterator<Item = usize> {
        (0..self.facts.repeats.len()).filter(|&repeat| self.may_keep(repeat))
    }

    /// The axes by which an epilogue of the register tile can go row by row.
    pub(crate) fn epilogue(&self) -> Option<Epilogue> {
        let [nest] = &self.facts.nests[..] else { return None };
        let Facts { reductions, carries, workgroups, .. } = &*self.facts;
        if reductions.is_empty() || *carries || *workgroups || self.pipelined.is_some() || self.sums_rows() {
            return None;
        }
        let mut tile: Vec<usize> = Vec::new();
        for (position, axis) in self.axes.iter().enumerate().filter(|(_, axis)| nest.contains(&axis.origin)) {
            match axis.kind {
                _ if axis.trips == Some(1) => {}
                AxisType::Upcast => tile.push(position),
                kind if kind == AxisType::Loop || kind.is_parallel() => {}
                _ => return None,
            }
        }
        let trips = |axis: usize| self.axes[axis].trips.unwrap_or(0);
        let lane = tile.iter().copied().find(|&axis| self.is_lane(axis))?;
        let row = tile.into_iter().filter(|&axis| axis != lane).max_by_key(|&axis| trips(axis))?;
        // Vectors are cut to the power of two that divides the trips.
        (trips(row) > 1 && trips(row).trailing_zeros() <= trips(lane).trailing_zeros())
            .then_some(Epilogue { row, lane })
    }

    /// Whether a tile axis is contiguous in all stores, so that vector lanes lie along it.
    pub(super) fn is_lane(&self, axis: usize) -> bool {
        let axis = &self.axes[axis];
        axis.kind == AxisType::Upcast && axis.stride == 1 && self.facts.contiguous.contains(&axis.origin)
    }

    /// Whether a loop over terms can be around a loop over results. The results of a trip are in memory then.
    pub(crate) fn can_sum_rows(&self) -> bool {
        let Facts { alike, carries, .. } = *self.facts;
        alike && !carries && !self.uses_locals() && self.words.is_none() && self.pipelined.is_none()
    }

    /// Refuses transforms that cannot follow once a loop over terms is around one over results.
    pub(super) fn no_sums_of_rows(&self) -> Result<(), Refusal> {
        if self.sums_rows() { Err(Refusal::AroundResults) } else { Ok(()) }
    }

    /// Whether a loop over terms is around one over results.
    pub(super) fn sums_rows(&self) -> bool {
        let first = self.axes.iter().position(|axis| axis.kind == AxisType::Reduce);
        let last = self.axes.iter().rposition(|axis| axis.kind == AxisType::Loop);
        first.is_some() && first < last
    }

    /// Position of an original range.
    pub(crate) fn origin(&self, range: NodeId) -> Option<usize> {
        self.origins.iter().position(|origin| origin.range == range)
    }

    /// Whether every axis is unchanged, except for their order.
    pub(super) fn is_whole(&self) -> bool {
        let is_whole = |axis: &Axis| axis.stride == 1 && axis.trips == self.origins[axis.origin].trips;
        self.axes.iter().all(is_whole) && !self.uses_locals() && !self.no_locals && !self.nontemporal
    }

    /// The position of an axis.
    pub(crate) fn position(&self, name: AxisName) -> Result<usize, Refusal> {
        let position = self.axes.iter().position(|axis| axis.name() == name);
        position.ok_or_else(|| Refusal::NoAxis {
            axis: name,
            axes: self.axes.iter().map(|axis| axis.name().to_string()).collect::<Vec<_>>().join(", "),
        })
    }

    /// The name of the axis at a position.
    pub(crate) fn name(&self, position: usize) -> AxisName {
        self.axes[position].name()
    }

    /// The part of an original range that the next split makes.
    pub(super) fn next_part(&self, origin: usize) -> u16 {
        let parts = self.axes.iter().filter(|axis| axis.origin == origin).map(|axis| axis.part);
        parts.max().map_or(0, |part| part + 1)
    }

    /// The innermost loop among the first `count` axes; `None` where there is none.
    pub(crate) fn innermost_loop(&self, count: usize) -> Option<AxisName> {
        let outer = self.axes.iter().take(count).rev();
        outer.into_iter().find(|axis| !axis.is_tile()).map(Axis::name)
    }

    /// How many of the axes, the outermost ones, are around the copy of a Param.
    pub(crate) fn around(&self, packing: &Packing) -> usize {
        packing.at.and_then(|at| self.position(at).ok()).map_or(0, |position| position + 1)
    }

    /// Positions of the serial loops that have more than one trip.
    pub(super) fn loops(&self) -> Vec<usize> {
        let is_loop = |axis: &Axis| matches!(axis.kind, AxisType::Loop | AxisType::Reduce) && axis.trips != Some(1);
        (0..self.axes.len()).filter(|&axis| is_loop(&self.axes[axis])).collect()
    }

    /// Checks the constraints between any two ops.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let is_local = |axis: &Axis| axis.kind.is_within_workgroup();
        if self.staged.contains(&Stage::Sums) && self.epilogue().is_none() {
            return Err(Refusal::NoEpilogue);
        }
        if self.no_locals && (self.uses_locals() || self.sums_rows() || self.axes.iter().any(is_local)) {
            return Err(Refusal::NoLocals);
        }
        if self.partitioned.is_some() && self.packings().any(|packing| packing.by == Copier::First) {
            return Err(Refusal::PartitionedCopy);
        }
        let elements = self.tile();
        if elements > LARGEST_TILE {
            return Err(Refusal::Tile { elements, most: LARGEST_TILE });
        }
        if self.facts.workgroups { self.check_workgroups() } else { self.check_threads() }
    }

    /// With workgroups, no loop is shared among a CPU's threads.
    fn check_workgroups(&self) -> Result<(), Refusal> {
        if self.axes.iter().any(|axis| axis.kind == AxisType::Thread) { Err(Refusal::NoThreads) } else { Ok(()) }
    }

    /// Without workgroups the threads share the outermost loop, and nothing else is parallel.
    fn check_threads(&self) -> Result<(), Refusal> {
        let is_of_workgroups = |kind: AxisType| kind == AxisType::Global || kind.is_within_workgroup();
        if let Some(axis) = self.axes.iter().find(|axis| is_of_workgroups(axis.kind)) {
            return Err(Refusal::NoWorkgroups(axis.kind));
        }
        let loops = || self.axes.iter().filter(|axis| axis.trips != Some(1) && !axis.is_tile());
        match loops().filter(|axis| axis.kind == AxisType::Thread).count() {
            0 => Ok(()),
            _ if self.facts.nests.len() > 1 => Err(Refusal::SeveralNests(self.facts.nests.len())),
            1 if loops().next().is_some_and(|axis| axis.kind == AxisType::Thread) => Ok(()),
            1 => Err(Refusal::ThreadInside),
            _ => Err(Refusal::SecondThread),
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
        most(&self.facts.nests, AxisType::Upcast).saturating_mul(most(&self.facts.reductions, AxisType::Unroll))
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
            && sum.atoms().all(|atom| {
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
