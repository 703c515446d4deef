//! The iteration space of a kernel: its axes in loop order, and how the original ranges follow from them.

use super::axis::{Axis, AxisName};
use super::kernel::{Kernel, is_index};
use super::online::{Blocking, Lengths};
use super::refusal::Refusal;
use super::transforms::{Copier, OptOp, Split};
use crate::lower::{live, loops};
use tinyspec_backends::Target;
use tinyspec_ir::{Arg, AxisType, DType, Graph, NodeId, Op};

/// Elements of a register tile beyond which no machine has a use for it, and its code no end.
pub(super) const LARGEST_TILE: i64 = 1 << 14;

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
    /// The loop inside which the copy is made; `None` for the root of the kernel.
    pub at: Option<AxisName>,
    /// Who makes the copy.
    pub by: Copier,
}

/// The axes of a register tile that an epilogue by rows walks.
#[derive(Clone, Copy)]
pub(crate) struct Epilogue {
    /// The axis over the tile's rows.
    pub row: usize,
    /// The axis of the tile that all stores are contiguous in.
    pub lane: usize,
}

/// Axes in loop order: output axes first, then those of reductions, unless swapped.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Space {
    /// The axes.
    pub axes: Vec<Axis>,
    pub(crate) origins: Vec<Origin>,
    /// The copies of Params.
    pub(crate) stages: Vec<Staged>,
    /// The repeated values that are kept, by their numbers.
    pub(crate) kept: Vec<usize>,
    /// The sums of the register tile go through LOCAL memory.
    pub(crate) stages_sums: bool,
    /// The original range of which several trips make a word.
    pub(crate) words: Option<usize>,
    /// The loop that is software-pipelined.
    pub(crate) pipelined: Option<usize>,
    /// The loop over terms that is partitioned where conditions change.
    pub(crate) partitioned: Option<usize>,
    /// The original ranges that conditions bound.
    pub(super) bounded: Vec<usize>,
    /// Blocks that sums are made in, instead of the axes.
    pub(crate) blocks: Option<Blocking>,
    /// A loop over terms adds each to its place, instead of the axes.
    pub(crate) scatters: bool,
    /// All results are sums at places that data name.
    pub(crate) can_scatter: bool,
    /// A kernel that runs before can make copies.
    pub(crate) can_copy_before: bool,
    /// What blocks have to fit, where there can be any.
    pub(crate) lengths: Option<Lengths>,
    /// Stores bypass the caches.
    pub(crate) nontemporal: bool,
    /// Neither LOCAL memory nor workgroups of several threads.
    pub(super) no_locals: bool,
    /// Some Reduce grows from trip to trip.
    pub(super) carries: bool,
    /// All Reduces are over the same ranges and vary with all outputs, so that loops over these ranges can be around those over
    /// outputs.
    alike: bool,
    /// Params that may be staged: read, never written.
    params: Vec<u32>,
    /// The repeated values: which others each needs, and which it overlaps.
    repeats: Vec<(u64, u64)>,
    /// The origins that all stores of the only nest are contiguous in.
    contiguous: Vec<usize>,
    /// Ranges that words can be made along.
    pub(super) word_ranges: Vec<NodeId>,
    /// What words hold.
    pub(super) numbers: Option<DType>,
    /// The device has workgroups; else its threads share the one GLOBAL axis.
    workgroups: bool,
    /// The origins of each loop nest.
    nests: Vec<Vec<usize>>,
    /// The origins of each Reduce.
    reductions: Vec<Vec<usize>>,
}

impl Space {
    pub(crate) fn new(graph: &Graph, kernel: &Kernel, target: &Target) -> Space {
        let params = kernel.only_read(graph);
        let word_ranges = kernel.product.iter().flat_map(|product| product.ranges.iter().copied()).collect();
        // Where the target has no instruction, it is decomposed.
        let numbers =
            kernel.product.as_ref().and_then(|product| product.on(target).or(product.numbers.last().copied()));
        let carries = kernel.reductions.iter().any(|reduction| reduction.carried.is_some());
        let mut reduced = kernel.reductions.iter().map(|reduction| &reduction.ranges);
        let first = reduced.next();
        let vary =
            |range: &NodeId| kernel.reductions.iter().all(|reduction| reduction.outer & kernel.live.bit(*range) != 0);
        let alike = first.is_some_and(|first| reduced.all(|other| other == first))
            && matches!(&kernel.nests[..], [nest] if nest.ranges.iter().all(vary));
        let (axes, origins, stages) = (Vec::new(), Vec::new(), Vec::new());
        let (words, pipelined, blocks, lengths) = (None, None, None, None);
        let mut space = Space {
            axes,
            origins,
            stages,
            words,
            pipelined,
            blocks,
            lengths,
            partitioned: None,
            bounded: Vec::new(),
            kept: Vec::new(),
            stages_sums: false,
            scatters: false,
            can_scatter: false,
            can_copy_before: target.workgroups.is_none() && !loops::has_dims(graph, kernel.sink),
            nontemporal: false,
            no_locals: false,
            carries,
            alike,
            params,
            repeats: kernel.recomputed.iter().map(|repeat| (repeat.needs, repeat.overlaps)).collect(),
            contiguous: Vec::new(),
            word_ranges,
            numbers,
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
        let contiguous = (0..space.origins.len()).filter(|&origin| {
            let mut stores = kernel.accesses.iter().filter(|access| access.is_store);
            stores.all(|store| store.index.coefficient(space.origins[origin].range) == 1)
        });
        let contiguous = contiguous.collect();
        let bounded = kernel.bounded().filter_map(|bounded| space.origin(bounded.range)).collect();
        Space { bounded, nests, reductions, contiguous, ..space }
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
            self.axes.push(Axis { origin: self.origins.len(), part: 0, trips: origin.trips, stride: 1, kind });
            self.origins.push(origin);
        }
    }

    /// Does the schedule write all loops itself?
    pub(crate) fn has_own_loops(&self) -> bool {
        self.blocks.is_some() || self.scatters
    }

    /// The op that gives the outermost loop to the threads; none where several nests follow each other.
    pub(crate) fn share(&self) -> Option<OptOp> {
        let is_loop = |axis: &Axis| axis.kind == AxisType::Loop && axis.trips != Some(1);
        if self.has_own_loops() || self.axes.iter().any(|axis| axis.kind == AxisType::Global) {
            return None;
        }
        let axis = self.axes.iter().find(|axis| is_loop(axis)).filter(|_| self.nests.len() == 1)?;
        let factor = axis.trips?;
        Some(Split { axis: axis.name(), factor, target: AxisType::Global, top: true }.into())
    }

    /// Params that can be copied.
    pub(crate) fn params(&self) -> &[u32] {
        &self.params
    }

    /// Is this Param read from a copy?
    pub(crate) fn is_staged(&self, slot: u32) -> bool {
        self.stages.iter().any(|stage| stage.slot == slot)
    }

    /// The same axes, but each thread copies for itself what a copy kernel would.
    pub(super) fn without_copies_before(&self) -> Space {
        let mut space = self.clone();
        for stage in space.stages.iter_mut().filter(|stage| stage.by == Copier::Kernel) {
            stage.by = Copier::Loops;
        }
        space
    }

    /// Does anything go through LOCAL memory?
    fn uses_locals(&self) -> bool {
        !self.stages.is_empty() || !self.kept.is_empty() || self.stages_sums
    }

    /// May this repeated value be kept beside those that are?
    pub(super) fn may_keep(&self, repeat: usize) -> bool {
        let Some(&(_, overlaps)) = self.repeats.get(repeat) else { return false };
        if self.kept.contains(&repeat) || self.kept.iter().any(|&kept| overlaps >> kept & 1 == 1) {
            return false;
        }
        let among = self.kept.iter().fold(1 << repeat, |set: u64, &kept| set | 1 << kept);
        let (mut reached, mut open) = (0u64, vec![repeat]);
        while let Some(next) = open.pop() {
            let more = self.repeats[next].0 & among & !reached;
            reached |= more;
            open.extend((0..self.repeats.len()).filter(|&other| more >> other & 1 == 1));
        }
        reached >> repeat & 1 == 0
    }

    /// The repeated values that may still be kept.
    pub(super) fn keepable(&self) -> impl Iterator<Item = usize> {
        (0..self.repeats.len()).filter(|&repeat| self.may_keep(repeat))
    }

    /// The axes by which an epilogue of the register tile can go row by row.
    pub(crate) fn epilogue(&self) -> Option<Epilogue> {
        let [nest] = &self.nests[..] else { return None };
        if self.reductions.is_empty() || self.carries || self.workgroups || self.pipelined.is_some() || self.sums_rows()
        {
            return None;
        }
        let mut tile: Vec<usize> = Vec::new();
        for (position, axis) in self.axes.iter().enumerate().filter(|(_, axis)| nest.contains(&axis.origin)) {
            match axis.kind {
                _ if axis.trips == Some(1) => {}
                AxisType::Upcast => tile.push(position),
                AxisType::Loop | AxisType::Global => {}
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
        axis.kind == AxisType::Upcast && axis.stride == 1 && self.contiguous.contains(&axis.origin)
    }

    /// Can a loop over terms be around a loop over results? The results of a trip are in memory then.
    pub(crate) fn can_sum_rows(&self) -> bool {
        self.alike && !self.carries && !self.uses_locals() && self.words.is_none() && self.pipelined.is_none()
    }

    /// Refuses what cannot follow once a loop over terms is around one over results.
    pub(super) fn no_sums_of_rows(&self) -> Result<(), Refusal> {
        if self.sums_rows() { Err(Refusal::AroundResults) } else { Ok(()) }
    }

    /// A loop over terms is around one over results.
    pub(super) fn sums_rows(&self) -> bool {
        let first = self.axes.iter().position(|axis| axis.kind == AxisType::Reduce);
        let last = self.axes.iter().rposition(|axis| axis.kind == AxisType::Loop);
        first.is_some() && first < last
    }

    /// Position of an original range.
    pub(crate) fn origin(&self, range: NodeId) -> Option<usize> {
        self.origins.iter().position(|origin| origin.range == range)
    }

    /// Every axis is as it was, but for their order.
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
    pub(crate) fn around(&self, staged: &Staged) -> usize {
        staged.at.and_then(|at| self.position(at).ok()).map_or(0, |position| position + 1)
    }

    /// Positions of the serial loops that have more than one trip.
    pub(super) fn loops(&self) -> Vec<usize> {
        let is_loop = |axis: &Axis| matches!(axis.kind, AxisType::Loop | AxisType::Reduce) && axis.trips != Some(1);
        (0..self.axes.len()).filter(|&axis| is_loop(&self.axes[axis])).collect()
    }

    /// What holds between any two ops.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let is_local = |axis: &Axis| axis.kind.is_within_workgroup();
        if self.stages_sums && self.epilogue().is_none() {
            return Err(Refusal::NoEpilogue);
        }
        if self.no_locals && (self.uses_locals() || self.sums_rows() || self.axes.iter().any(is_local)) {
            return Err(Refusal::NoLocals);
        }
        if self.partitioned.is_some() && self.stages.iter().any(|stage| stage.by == Copier::First) {
            return Err(Refusal::PartitionedCopy);
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
