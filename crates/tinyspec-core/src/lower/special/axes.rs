//! The parallel axes of a kernel: which become workgroups, which become threads, and which need separate indices.

use crate::lower::live::{Live, RangeSet, trips};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_backends::Workgroups;
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, Graph, NodeId, Op, Result};

/// A parallel Range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub range: NodeId,
    pub trips: i64,
    /// The set of this Range alone.
    pub bit: RangeSet,
    /// Ranges that are open together with it.
    pub concurrent: RangeSet,
}

/// All parallel axes, inner ones first; among those of threads, the axis of a warp comes first.
pub(super) struct Axes {
    /// Axes whose trips are workgroups.
    pub groups: Vec<Axis>,
    /// Axes whose trips are threads of a workgroup.
    pub threads: Vec<Axis>,
    /// The Ranges of `threads`.
    pub members: RangeSet,
    /// Ranges that stay loops.
    pub serial: RangeSet,
}

fn kind(graph: &Graph, range: NodeId) -> Option<AxisType> {
    match graph.arg(range) {
        Arg::Range { axis, .. } => Some(*axis),
        _ => None,
    }
}

fn is_group(graph: &Graph, range: NodeId) -> bool {
    kind(graph, range) == Some(AxisType::Global)
}

fn is_thread(graph: &Graph, range: NodeId) -> bool {
    kind(graph, range).is_some_and(AxisType::is_within_workgroup)
}

impl Axes {
    pub fn new(graph: &Graph, order: &[NodeId], live: &Live) -> Axes {
        let mut concurrent: FxHashMap<NodeId, RangeSet> = FxHashMap::default();
        // An outer loop ends after those inside; the Ranges of a Reduce are inside all loops.
        let mut ends: FxHashMap<NodeId, usize> = FxHashMap::default();
        for (position, &node) in order.iter().enumerate() {
            let mut open = live.of(node);
            // The terms of a Reduce may not depend on its Ranges.
            if graph.op(node) == Op::Reduce {
                open |= graph.sources(node)[1..].iter().fold(0, |set, &range| set | live.bit(range));
            }
            live.members(open).for_each(|range| *concurrent.entry(range).or_default() |= open);
            if graph.op(node) == Op::End {
                ends.entry(graph.source(node, 1)).or_insert(position);
            }
        }
        let axis = |&range: &NodeId| Axis {
            range,
            trips: trips(graph, range).unwrap_or(0),
            bit: live.bit(range),
            concurrent: concurrent.get(&range).copied().unwrap_or(0),
        };
        let of = |class: fn(&Graph, NodeId) -> bool| {
            let mut axes: Vec<Axis> = live.ranges.iter().filter(|&&range| class(graph, range)).map(axis).collect();
            let is_warp = |axis: &Axis| kind(graph, axis.range) == Some(AxisType::Warp);
            axes.sort_by_key(|axis| (!is_warp(axis), ends.get(&axis.range).copied(), std::cmp::Reverse(axis.range)));
            axes
        };
        let (groups, threads) = (of(is_group), of(is_thread));
        let members = threads.iter().fold(0, |set, axis| set | live.bit(axis.range));
        let is_serial = |range: &NodeId| matches!(kind(graph, *range), Some(AxisType::Loop | AxisType::Reduce));
        let serial = live.ranges.iter().copied().filter(is_serial).fold(0, |set, range| set | live.bit(range));
        Axes { groups, threads, members, serial }
    }

    /// Whether the workgroup shares this Reduce.
    pub fn is_grouped(&self, graph: &Graph, reduce: NodeId) -> bool {
        graph.sources(reduce)[1..].iter().any(|&range| is_thread(graph, range))
    }

    /// Serial loops around loops of the workgroup.
    pub fn around(&self, graph: &Graph, order: &[NodeId], live: &Live) -> RangeSet {
        let ends = order.iter().filter(|&&node| graph.op(node) == Op::End && is_thread(graph, graph.source(node, 1)));
        let around = ends.fold(0, |set, &end| set | live.of(end));
        around & self.serial
    }
}

/// Makes parallel loops serial if no launch can express them: workgroups that would wait for each other, more threads
/// than a workgroup may have, and unknown trip counts.
pub(super) fn fitting(graph: &mut Graph, sink: NodeId, workgroups: &Workgroups) -> Result<NodeId> {
    let order = graph.reachable(&[sink]);
    let live = Live::new(graph, &order)?;
    let axes = Axes::new(graph, &order, &live);
    let waits = waits_for_groups(graph, &order);
    let mut serial: SmallVec<[NodeId; 4]> = SmallVec::new();
    for axis in &axes.groups {
        if waits || trips(graph, axis.range).is_none() {
            serial.push(axis.range);
        }
    }
    let mut threads = axes.threads.clone();
    threads.retain(|axis| {
        let is_known = trips(graph, axis.range).is_some();
        serial.extend((!is_known).then_some(axis.range));
        is_known
    });
    loop {
        let (numbers, sizes) = numbered(&threads);
        let size = sizes.iter().fold(1i64, |size, &trips| size.saturating_mul(trips));
        let Some(largest) = (0..sizes.len()).max_by_key(|&number| sizes[number]) else { break };
        if size <= workgroups.size as i64 {
            break;
        }
        let mut position = 0;
        threads.retain(|axis| {
            position += 1;
            let stays = numbers[position - 1] != largest;
            serial.extend((!stays).then_some(axis.range));
            stays
        });
    }
    if serial.is_empty() {
        return Ok(sink);
    }
    let mut new: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for node in order {
        let arg = match graph.arg(node) {
            &Arg::Range { id, axis } if serial.contains(&node) => {
                let axis = if axis.is_reduce() { AxisType::Reduce } else { AxisType::Loop };
                Arg::Range { id, axis }
            }
            arg => arg.clone(),
        };
        let sources: SmallVec<[NodeId; 4]> =
            graph.sources(node).iter().map(|source| new.get(source).copied().unwrap_or(*source)).collect();
        if sources[..] != *graph.sources(node) || arg != *graph.arg(node) {
            let made = graph.add(graph.op(node), &sources, arg)?;
            new.insert(node, made);
        }
    }
    Ok(new.get(&sink).copied().unwrap_or(sink))
}

/// Assigns each axis the first index that no axis open together with it has. Returns the index of each axis and the
/// size of each index.
pub(super) fn numbered(axes: &[Axis]) -> (Vec<usize>, Vec<i64>) {
    let (mut numbers, mut sizes): (Vec<usize>, Vec<i64>) = (Vec::new(), Vec::new());
    for axis in axes {
        let taken = |number: &usize| {
            let mut others = axes.iter().zip(&numbers);
            others.any(|(other, taken)| taken == number && axis.concurrent & other.bit != 0)
        };
        let number = (0..axes.len()).find(|number| !taken(number)).unwrap_or(0);
        numbers.push(number);
        if number == sizes.len() {
            sizes.push(1);
        }
        sizes[number] = sizes[number].max(axis.trips);
    }
    (numbers, sizes)
}

/// Whether an access waits for a loop over workgroups, which start in any order.
fn waits_for_groups(graph: &Graph, order: &[NodeId]) -> bool {
    let mut closes = vec![false; graph.len()];
    for &node in order {
        let sources = graph.sources(node);
        closes[node.index()] = match graph.op(node) {
            Op::End if is_group(graph, sources[1]) => true,
            _ => sources.iter().any(|source| closes[source.index()]),
        };
        let is_memory = graph.props(node).addrspace.is_some_and(|space| space != AddrSpace::Reg);
        if graph.op(node) == Op::After && is_memory && closes[node.index()] {
            return true;
        }
    }
    false
}
