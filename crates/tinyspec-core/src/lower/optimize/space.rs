//! The iteration space of a kernel: its axes in loop order, and how the original ranges follow from them.

use super::kernel::{Kernel, is_index, slot};
use super::online::{Blocking, Lengths};
use super::opt_op::OptOp;
use crate::lower::live;
use tinyspec_ir::{Arg, AxisType, Error, ErrorKind, Graph, NodeId, Op, Result};

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
    /// Neither LOCAL memory nor workgroups of several threads.
    no_locals: bool,
    /// Some Reduce grows from trip to trip.
    carries: bool,
    /// All Reduces are over the same ranges, so that loops over these can be around those over outputs.
    alike: bool,
    params: Vec<u32>,
    /// Ranges that words can be made along.
    pairs: Vec<NodeId>,
}

impl Space {
    pub(crate) fn new(graph: &Graph, kernel: &Kernel) -> Space {
        let mut params: Vec<u32> = kernel.accesses.iter().filter_map(|access| slot(graph, access.buffer)).collect();
        params.sort_unstable();
        params.dedup();
        let pairs = kernel.product.iter().flat_map(|product| product.ranges.iter().copied()).collect();
        let carries = kernel.reductions.iter().any(|reduction| reduction.carried.is_some());
        let mut reduced = kernel.reductions.iter().map(|reduction| &reduction.ranges);
        let first = reduced.next();
        let alike = first.is_some_and(|first| reduced.all(|other| other == first)) && kernel.nests.len() == 1;
        let (axes, origins, stages) = (Vec::new(), Vec::new(), Vec::new());
        let (words, staggered, blocks, lengths, no_locals) = (None, None, None, None, false);
        let mut space = Space {
            axes,
            origins,
            stages,
            words,
            staggered,
            blocks,
            lengths,
            no_locals,
            carries,
            alike,
            params,
            pairs,
        };
        for nest in &kernel.nests {
            space.add(graph, kernel, &nest.ranges, AxisType::Loop);
        }
        for reduction in &kernel.reductions {
            space.add(graph, kernel, &reduction.ranges, AxisType::Reduce);
        }
        space
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
    pub(crate) fn share(&self, kernel: &Kernel) -> Option<OptOp> {
        let is_loop = |axis: &Axis| axis.kind == AxisType::Loop && axis.trips != Some(1);
        if self.blocks.is_some() || self.axes.iter().any(|axis| axis.kind == AxisType::Global) {
            return None;
        }
        let axis = self.axes.iter().position(is_loop).filter(|_| kernel.nests.len() == 1)?;
        let factor = self.axes[axis].trips?;
        Some(OptOp::Split { axis, factor, target: AxisType::Global, top: true })
    }

    /// Params that the kernel reads or writes.
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
        self.axes.iter().all(is_whole) && self.stages.is_empty() && !self.no_locals
    }

    /// Applies one op to the axes.
    ///
    /// # Errors
    /// When the op does not fit the axes.
    pub fn apply(&mut self, op: &OptOp) -> Result<()> {
        let refuse = |message: String| Err(Error::new(ErrorKind::Value, op.to_string(), message));
        let count = self.axes.len();
        let axis = |axis: usize| match self.axes.get(axis) {
            Some(axis) => Ok(axis.clone()),
            None => Err(Error::new(ErrorKind::Axis, op.to_string(), format!("axis {axis} of {count}"))),
        };
        if self.blocks.is_some() {
            return refuse("nothing follows blocks, which have loops of their own".into());
        }
        if self.staggered.is_some() && !matches!(op, OptOp::Stage { .. }) {
            return refuse("the axes stay as they are once one of them is staggered".into());
        }
        if self.sums_rows() && matches!(op, OptOp::Stage { .. } | OptOp::Stagger { .. } | OptOp::Tc { .. }) {
            return refuse("a loop over terms is around one over results".into());
        }
        let makes_local = match *op {
            OptOp::Split { target, .. } => target.is_within_workgroup(),
            OptOp::Stage { .. } => true,
            _ => false,
        };
        if self.no_locals && makes_local {
            return refuse("the schedule has no LOCAL memory and no workgroups of several threads".into());
        }
        match *op {
            OptOp::Split { axis: position, factor, target, top } => {
                let old = axis(position)?;
                let Some(trips) = old.trips.filter(|trips| factor > 0 && trips % factor == 0) else {
                    let trips = old.trips.map_or_else(|| "named".into(), |trips| trips.to_string());
                    return refuse(format!("{factor} does not divide the {trips} trips of axis {position}"));
                };
                if old.kind.is_reduce() != target.is_reduce() {
                    return refuse(format!("a {:?} axis cannot have a {target:?} part", old.kind));
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
            }
            OptOp::Swap(a, b) => {
                let (first, second) = (axis(a)?, axis(b)?);
                let are_loops =
                    [first.kind, second.kind].iter().all(|kind| matches!(kind, AxisType::Loop | AxisType::Reduce));
                if first.kind.is_reduce() != second.kind.is_reduce() && !(are_loops && self.can_sum_rows()) {
                    return refuse("this output axis cannot change places with a reduction".into());
                }
                self.axes.swap(a, b);
            }
            OptOp::Padto { axis: position, multiple } => {
                let old = axis(position)?;
                // The others of its range fill each of its trips, and nothing is beyond.
                let outermost = self.axes.iter().enumerate().all(|(other_position, other)| {
                    let fills = |trips: i64| trips == 1 || other.stride.saturating_mul(trips) <= old.stride;
                    other.origin != old.origin || other_position == position || other.trips.is_some_and(fills)
                });
                let padded = old
                    .trips
                    .filter(|_| multiple > 0 && outermost)
                    .and_then(|trips| trips.checked_add(multiple - 1).map(|trips| trips / multiple * multiple));
                if padded.is_none() {
                    return refuse(format!("the axis of {:?} trips cannot be padded", old.trips));
                }
                if padded != old.trips {
                    self.axes[position].trips = padded;
                    self.origins[old.origin].padded = true;
                }
            }
            OptOp::Tc { axis: position } => {
                let old = axis(position)?;
                let range = self.origins[old.origin].range;
                let parts = self.axes.iter().filter(|axis| axis.origin == old.origin).count();
                if self.words.is_some() || parts > 1 || !self.pairs.contains(&range) {
                    return refuse(format!("axis {position} is not a whole range of a sum that words can be made of"));
                }
                let Some(trips) = old.trips.filter(|trips| trips % 2 == 0) else {
                    return refuse(format!("axis {position} has no even number of trips"));
                };
                self.axes[position] = Axis { trips: Some(trips / 2), stride: 2, ..old };
                self.words = Some(old.origin);
            }
            OptOp::Stagger { axis: position } => {
                let old = axis(position)?;
                if old.kind != AxisType::Loop || old.trips.is_none() {
                    return refuse(format!("axis {position} is no loop of known length over outputs"));
                }
                if self.carries {
                    return refuse("a sum is carried from trip to trip".into());
                }
                self.staggered = Some(position);
            }
            OptOp::Nolocals => {
                if !self.stages.is_empty() || self.axes.iter().any(|axis| axis.kind.is_within_workgroup()) {
                    return refuse("there are copies, or axes of a workgroup, already".into());
                }
                self.no_locals = true;
            }
            OptOp::Block(blocking) => {
                let Some(lengths) = &self.lengths else {
                    return refuse(
                        "the kernel has anything but sums over a matrix of products, or is for workgroups".into(),
                    );
                };
                if !self.is_whole() {
                    return refuse("blocks are the only op of a schedule".into());
                }
                self.blocks = Some(lengths.fitted(blocking));
            }
            OptOp::Stage { slot, at, first } => {
                if at > count {
                    return refuse(format!("inside of {at} axes of {count}"));
                }
                if !self.params.contains(&slot) {
                    return refuse("the kernel does not read this buffer".into());
                }
                self.stages.push(Staged { slot, around: at, first });
            }
        }
        Ok(())
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
