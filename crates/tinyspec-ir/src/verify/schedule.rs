//! Schedules: Calls that access the same buffer must be ordered, and nothing may read uninitialised memory.

use super::refuse;
use crate::{Arg, Builder, DType, Dim, Graph, NodeId, Op, Result};
use rustc_hash::{FxHashMap, FxHashSet};

/// Checks a schedule, `Sink(After(Buffer, Call(kernel, buffers…)) …)`; `own` are the buffers that are uninitialised
/// before it.
///
/// # Errors
/// Names the first Call or result that is out of order, or does not fit its kernel.
pub fn schedule(graph: &Graph, root: NodeId, own: &[NodeId]) -> Result<()> {
    let stage = "verify schedule";
    if graph.op(root) != Op::Sink {
        return refuse(stage, graph, root, "the root of a schedule is a Sink");
    }
    let live = graph.reachable_outside_bodies(&[root]);
    let calls: Vec<NodeId> = live.iter().copied().filter(|&node| graph.op(node) == Op::Call).collect();
    let mut kernels: FxHashMap<NodeId, Kernel> = FxHashMap::default();
    let mut touched = Touched::default();
    for (number, &call) in calls.iter().enumerate() {
        let (body, dims) = (graph.source(call, 0), dims(graph, call));
        let buffers = &graph.sources(call)[1..graph.sources(call).len() - dims.len()];
        let kernel = kernels.entry(body).or_insert_with(|| Kernel::of(graph, body));
        for (slot, &buffer) in buffers.iter().enumerate() {
            let Some(leaf) = leaf(graph, buffer) else {
                return refuse(stage, graph, call, "its argument is not a buffer");
            };
            if let Some((param, is_written)) = kernel.params.get(&(slot as u32)) {
                let count = graph.props(*param).element_count().substitute(&|slot| dims.get(slot as usize)?.clone());
                let fits = graph.dtype(*param) == graph.dtype(leaf) && count == graph.props(buffer).element_count();
                if !fits {
                    return refuse(stage, graph, call, format!("its buffer {slot} does not fit the kernel's Param"));
                }
                let touch = Touch { call: number, writes: *is_written, part: part(graph, buffer) };
                touched.entry(leaf).or_default().push(touch);
            }
        }
        if kernel.params.keys().any(|&slot| slot as usize >= buffers.len()) {
            return refuse(stage, graph, call, "the kernel has more buffers");
        }
    }
    ordered(stage, graph, &live, &calls, &touched)?;
    written_before_read(stage, graph, own, &calls, &touched)?;
    states(stage, graph, &calls, &touched)?;
    results(stage, graph, root, own, &calls, &touched)
}

/// The last arguments of a Call: the values of its kernel's named dims.
fn dims(graph: &Graph, call: NodeId) -> Vec<Option<Dim>> {
    let is_dim = |node: &&NodeId| graph.dtype(**node) == DType::Index && graph.props(**node).shape.is_empty();
    let sources = graph.sources(call);
    let count = sources.iter().rev().take_while(is_dim).count();
    let value = |&node: &NodeId| graph.props(node).value.as_deref().and_then(|value| value.first().cloned());
    sources[sources.len() - count..].iter().map(value).collect()
}

/// Whether each slot is written.
struct Kernel {
    params: FxHashMap<u32, (NodeId, bool)>,
}

impl Kernel {
    fn of(graph: &Graph, body: NodeId) -> Kernel {
        let mut params = FxHashMap::default();
        let live = graph.reachable(&[body]);
        let mut written: FxHashSet<NodeId> = FxHashSet::default();
        for &node in &live {
            if matches!(graph.op(node), Op::Store | Op::AtomicAdd) {
                written.extend(graph.memory(graph.source(node, 0)));
            }
        }
        for &node in &live {
            if let (Op::Param, Arg::Param { slot, dtype, .. }) = (graph.op(node), graph.arg(node))
                && *dtype != DType::Index
            {
                params.insert(*slot, (node, written.contains(&node)));
            }
        }
        Kernel { params }
    }
}

/// The buffer behind a state or a part.
fn leaf(graph: &Graph, mut node: NodeId) -> Option<NodeId> {
    while matches!(graph.op(node), Op::After | Op::Shrink) {
        node = graph.source(node, 0);
    }
    matches!(graph.op(node), Op::Param | Op::Buffer | Op::Binary).then_some(node)
}

/// An access of a Call to a buffer.
#[derive(Clone, Copy)]
struct Touch {
    /// Its number.
    call: usize,
    writes: bool,
    /// The first element, and the one after the last.
    part: (i64, i64),
}

impl Touch {
    fn meets(&self, other: &Touch) -> bool {
        self.part.0 < other.part.1 && other.part.0 < self.part.1
    }
}

/// The accesses to each buffer, in the order of the Calls.
type Touched = FxHashMap<NodeId, Vec<Touch>>;

/// The elements of a buffer that an argument covers.
fn part(graph: &Graph, argument: NodeId) -> (i64, i64) {
    let (mut node, mut start) = (argument, 0i64);
    while matches!(graph.op(node), Op::After | Op::Shrink) {
        if graph.op(node) == Op::Shrink {
            let offset =
                graph.props(graph.source(node, 1)).value.as_deref().and_then(|value| value.first()?.as_const());
            start = start.saturating_add(offset.unwrap_or(0));
        }
        node = graph.source(node, 0);
    }
    let length = graph.props(argument).element_count().as_const().unwrap_or(i64::MAX);
    (start, start.saturating_add(length))
}

fn ordered(stage: &str, graph: &Graph, live: &[NodeId], calls: &[NodeId], touched: &Touched) -> Result<()> {
    let mut below = vec![0u64; graph.len()];
    for (block, firsts) in calls.chunks(64).enumerate() {
        for &node in live {
            // Bodies are closed.
            let skip = (graph.op(node) == Op::Call) as usize;
            let from = graph.sources(node)[skip..].iter().fold(0, |bits, source| bits | below[source.index()]);
            let own = firsts.binary_search(&node).map_or(0, |bit| 1 << bit);
            below[node.index()] = from | own;
        }
        for accesses in touched.values() {
            for early in accesses.iter().filter(|touch| touch.call / 64 == block) {
                for late in accesses.iter().filter(|touch| touch.call > early.call) {
                    let (first, second) = (calls[early.call], calls[late.call]);
                    let bit = early.call % 64;
                    if (early.writes || late.writes) && early.meets(late) && below[second.index()] >> bit & 1 == 0 {
                        let why = format!("is neither before nor after %{}, which touches the same buffer", first.0);
                        return refuse(stage, graph, second, why);
                    }
                }
            }
        }
    }
    Ok(())
}

/// Calls are in the order of the graph, so the first access to a buffer must be a write.
fn written_before_read(stage: &str, graph: &Graph, own: &[NodeId], calls: &[NodeId], touched: &Touched) -> Result<()> {
    let first = |buffer: &NodeId| touched.get(buffer)?.first().copied();
    for buffer in own {
        if let Some(Touch { call, writes: false, .. }) = first(buffer)
            && !graph.props(*buffer).element_count().is(0)
        {
            return refuse(stage, graph, calls[call], format!("reads %{}, which nothing has written", buffer.0));
        }
    }
    Ok(())
}

/// Checks that a Call reads the state of the last Call before it that writes.
fn states(stage: &str, graph: &Graph, calls: &[NodeId], touched: &Touched) -> Result<()> {
    for (number, &call) in calls.iter().enumerate() {
        let buffers = graph.sources(call).len() - dims(graph, call).len();
        for &buffer in &graph.sources(call)[1..buffers] {
            let before = leaf(graph, buffer).and_then(|leaf| touched.get(&leaf)).map(Vec::as_slice).unwrap_or_default();
            let own = Touch { call: number, writes: false, part: part(graph, buffer) };
            let last = before.iter().rev().find(|touch| touch.call < number && touch.writes && touch.meets(&own));
            if let Some(&Touch { call: last, .. }) = last
                && !chain(graph, buffer).contains(&calls[last])
            {
                return refuse(
                    stage,
                    graph,
                    call,
                    format!("its argument is not the state that %{} left", calls[last].0),
                );
            }
        }
    }
    Ok(())
}

/// The Calls behind a state.
fn chain(graph: &Graph, mut node: NodeId) -> Vec<NodeId> {
    let mut calls = Vec::new();
    while matches!(graph.op(node), Op::After | Op::Shrink) {
        if graph.op(node) == Op::After {
            calls.extend_from_slice(&graph.sources(node)[1..]);
        }
        node = graph.source(node, 0);
    }
    calls
}

fn results(
    stage: &str,
    graph: &Graph,
    root: NodeId,
    own: &[NodeId],
    calls: &[NodeId],
    touched: &Touched,
) -> Result<()> {
    for &result in graph.sources(root) {
        let Some(leaf) = leaf(graph, result) else { return refuse(stage, graph, result, "a result is not a buffer") };
        let accesses = touched.get(&leaf).map(Vec::as_slice).unwrap_or_default();
        let last = accesses.iter().rev().find(|touch| touch.writes).map(|touch| calls[touch.call]);
        if last.is_none() && own.contains(&leaf) && !graph.props(leaf).element_count().is(0) {
            return refuse(stage, graph, result, "a result that nothing has written");
        }
        let below = last.map(|_| graph.reachable_outside_bodies(&[result])).unwrap_or_default();
        let mut writers = accesses.iter().filter(|touch| touch.writes).map(|touch| calls[touch.call]);
        if let Some(last) = writers.find(|writer| !below.contains(writer)) {
            return refuse(stage, graph, result, format!("does not wait for %{}, which writes it", last.0));
        }
    }
    Ok(())
}
