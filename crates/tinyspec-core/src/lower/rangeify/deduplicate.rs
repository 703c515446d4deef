//! Kernel deduplication: kernels that differ only in which part of a buffer they read, such as the steps of a sequence
//! or the heads of a matrix, become one kernel, compiled once. Their Calls pass the part, as a `Shrink` of the buffer.

use super::{KernelCall, Schedule};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::hash_map::Entry;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::dim::static_shape;
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{AddrSpace, Arg, Builder, DType, Graph, NodeId, Op, Result, Shape};

/// The alignment of parts in bytes, so that what is aligned in a buffer is aligned in its part.
const ALIGNMENT: i64 = 64;

/// The part of a buffer that a kernel reads.
#[derive(Clone, Copy)]
struct Part {
    slot: u32,
    offset: i64,
    length: i64,
}

/// A kernel over parts of its buffers.
struct Moved {
    sink: NodeId,
    parts: SmallVec<[Part; 4]>,
}

/// The schedule with such kernels made equal.
pub(super) fn deduplicate(schedule: Schedule) -> Result<Schedule> {
    let mut moved: FxHashMap<NodeId, Option<Moved>> = FxHashMap::default();
    let mut kernels = Graph::new();
    for call in candidates(&schedule) {
        if let Entry::Vacant(entry) = moved.entry(call.kernel) {
            entry.insert(over_parts(&mut kernels, &schedule.graph, call)?);
        }
    }
    let mut counts: FxHashMap<NodeId, usize> = FxHashMap::default();
    for made in moved.values().flatten() {
        *counts.entry(made.sink).or_default() += 1;
    }
    moved.retain(|_, made| made.as_ref().is_some_and(|made| counts[&made.sink] > 1));
    if moved.is_empty() {
        return Ok(schedule);
    }
    rebuilt(&schedule, &kernels, &moved)
}

/// Calls whose kernel agrees with another in the number of buffers, outputs and values: only these can be equal.
fn candidates(schedule: &Schedule) -> Vec<&KernelCall> {
    let graph = &schedule.graph;
    let mut sizes: FxHashMap<NodeId, usize> = FxHashMap::default();
    let mut alike: FxHashMap<(usize, usize, usize), FxHashSet<NodeId>> = FxHashMap::default();
    let mut key = |call: &KernelCall| {
        let size = *sizes.entry(call.kernel).or_insert_with(|| {
            // Index arithmetic does not count, since it varies with the offset.
            let is_index = |node: &NodeId| graph.dtype(*node) == DType::Index;
            graph.reachable(&[call.kernel]).iter().filter(|node| !is_index(node)).count()
        });
        (graph.sources(call.node).len(), call.outputs, size)
    };
    let plain: Vec<&KernelCall> =
        schedule.calls.iter().filter(|call| call.hand_written.is_none() && !call.takes_dims(graph)).collect();
    for call in &plain {
        alike.entry(key(call)).or_default().insert(call.kernel);
    }
    plain.into_iter().filter(|call| alike[&key(call)].len() > 1).collect()
}

/// The kernel with each read-only buffer cut down to the part that it reads; `None` if it reads all of them.
fn over_parts(kernels: &mut Graph, schedule: &Graph, call: &KernelCall) -> Result<Option<Moved>> {
    let mut graph = Graph::new();
    let sink = graph.import(schedule, &[call.kernel], |_, _| Ok(None))?[0];
    let live = graph.reachable(&[sink]);
    let mut places: FxHashMap<NodeId, SmallVec<[NodeId; 4]>> = FxHashMap::default();
    let mut whole: FxHashSet<NodeId> = FxHashSet::default();
    for &node in &live {
        let sources = graph.sources(node);
        if graph.op(node) == Op::Index && sources.len() == 2 {
            places.entry(sources[0]).or_default().push(node);
        } else {
            whole.extend(sources.iter().copied().filter(|&source| graph.op(source) == Op::Param));
        }
        if matches!(graph.op(node), Op::Store | Op::AtomicAdd) {
            whole.extend(graph.sources(sources[0]).first().copied());
        }
    }
    let (mut new, mut parts) = (FxHashMap::default(), SmallVec::new());
    for &param in &live {
        let (Op::Param, Arg::Param { slot, dtype, device, .. }) = (graph.op(param), graph.arg(param).clone()) else {
            continue;
        };
        let Some(reads) = places.get(&param).filter(|_| !whole.contains(&param)) else { continue };
        let Some(length) = static_shape(&graph.props(param).shape).and_then(|dims| dims.first().copied()) else {
            continue;
        };
        let (low, high) = reads.iter().fold((i128::from(length), -1), |(low, high), &read| {
            let (least, most) = Affine::of(&graph, graph.source(read, 1)).bounds(&graph);
            (low.min(least), high.max(most))
        });
        if low < 0 || low > high || high >= length.into() {
            continue;
        }
        let step = i128::from((ALIGNMENT / dtype.size() as i64).max(1));
        let offset = low.div_euclid(step) * step;
        let (offset, length) = (offset as i64, (high + 1 - offset) as i64);
        let dims = graph.shape(&Shape::from_iter([length.into()]))?;
        let arg = Arg::Param { slot, dtype, device, addrspace: Some(AddrSpace::Global) };
        let part = graph.add(Op::Param, &[dims], arg)?;
        for &read in reads {
            let place = Affine::of(&graph, graph.source(read, 1)).offset(-offset).emit(&mut graph)?;
            new.insert(read, graph.add(Op::Index, &[part, place], Arg::None)?);
        }
        parts.push(Part { slot, offset, length });
    }
    if parts.is_empty() {
        return Ok(None);
    }
    let sink = substitute(&mut graph, &[sink], &new)?;
    Ok(Some(Moved { sink: kernels.import(&graph, &sink, |_, _| Ok(None))?[0], parts }))
}

fn rebuilt(schedule: &Schedule, kernels: &Graph, moved: &FxHashMap<NodeId, Option<Moved>>) -> Result<Schedule> {
    let from = &schedule.graph;
    let mut graph = Graph::new();
    // The replacement of each node outside the kernels.
    let mut new: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let by_node: FxHashMap<NodeId, &KernelCall> = schedule.calls.iter().map(|call| (call.node, call)).collect();
    let mut made: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for node in from.reachable_outside_bodies(&[schedule.root]) {
        let Some(call) = by_node.get(&node) else {
            let sources: SmallVec<[NodeId; 4]> = from.sources(node).iter().map(|source| new[source]).collect();
            new.insert(node, graph.add(from.op(node), &sources, from.arg(node).clone())?);
            continue;
        };
        let over = moved.get(&call.kernel).and_then(Option::as_ref);
        let kernel = match (made.get(&call.kernel), over) {
            (Some(&kernel), _) => kernel,
            (None, Some(over)) => graph.import(kernels, &[over.sink], |_, _| Ok(None))?[0],
            (None, None) => graph.import(from, &[call.kernel], |_, _| Ok(None))?[0],
        };
        made.insert(call.kernel, kernel);
        let mut sources = vec![kernel];
        sources.extend(from.sources(node)[1..].iter().map(|source| new[source]));
        for part in over.iter().flat_map(|over| &over.parts) {
            let source = &mut sources[part.slot as usize + 1];
            if graph.props(*source).element_count().is(part.length) {
                continue;
            }
            let [offset, size] = [part.offset, part.length].map(|number| Shape::from_iter([number.into()]));
            let (offset, size) = (graph.shape(&offset)?, graph.shape(&size)?);
            *source = graph.add(Op::Shrink, &[*source, offset, size], Arg::None)?;
        }
        let call_node = graph.add(Op::Call, &sources, Arg::None)?;
        for location in &call.locations {
            graph.locate(call_node, location.clone());
        }
        new.insert(node, call_node);
    }
    // Calls that no result needs are left out.
    let calls = schedule.calls.iter().filter_map(|call| {
        let node = *new.get(&call.node)?;
        Some(KernelCall { node, kernel: graph.source(node, 0), ..call.clone() })
    });
    let calls = calls.collect();
    let mut buffers = Vec::with_capacity(schedule.buffers.len());
    for &buffer in &schedule.buffers {
        buffers.push(match new.get(&buffer) {
            Some(&buffer) => buffer,
            None => graph.import(from, &[buffer], |_, _| Ok(None))?[0],
        });
    }
    let outputs = schedule.outputs.iter().map(|output| new[output]).collect();
    let (decisions, donations) = (schedule.decisions.clone(), schedule.donations.clone());
    Ok(Schedule { root: new[&schedule.root], graph, outputs, calls, buffers, decisions, donations })
}
