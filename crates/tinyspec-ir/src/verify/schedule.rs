//! Schedules: Calls that access the same buffer must be ordered, and nothing may read uninitialised memory.

use super::calls::{Touch, Touched, buffers, leaf, part};
use super::refuse;
use crate::{Builder, Graph, NodeId, Op, Result};

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
    let touched = Touched::of(stage, graph, &calls)?;
    ordered(stage, graph, &live, &calls, &touched)?;
    written_before_read(stage, graph, own, &calls, &touched)?;
    states(stage, graph, &calls, &touched)?;
    results(stage, graph, root, own, &calls, &touched)
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
        for accesses in touched.0.values() {
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
    for buffer in own {
        if let Some(&Touch { call, writes: false, .. }) = touched.to(*buffer).first()
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
        for &buffer in buffers(graph, call) {
            let before = leaf(graph, buffer).map(|leaf| touched.to(leaf)).unwrap_or_default();
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
        let accesses = touched.to(leaf);
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
