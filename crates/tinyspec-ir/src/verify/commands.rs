//! Command buffers: every buffer is written before it is read, and the results are there at the end.

use super::calls::{Touched, buffers, leaf};
use super::refuse;
use crate::commands::{base, linear};
use crate::custom_function;
use crate::{Arg, Builder, Graph, NodeId, Op, Result};
use rustc_hash::FxHashMap;

/// Checks a [command buffer](crate::commands).
///
/// # Errors
/// Names the Call, buffer or result that is wrong: a Call that does not fit its kernel, reads a temporary that nothing has
/// written, or writes constants; two buffers of one slot; a result that no Call writes.
pub fn commands(graph: &Graph, root: NodeId) -> Result<()> {
    let stage = "verify commands";
    let calls = graph.sources(linear(graph, root)?);
    let touched = Touched::of(stage, graph, calls)?;
    slots(stage, graph, calls)?;
    for (&buffer, touches) in &touched.0 {
        let mut written = Written::default();
        for touch in touches {
            let call = calls[touch.call];
            if touch.writes && graph.op(buffer) == Op::Binary {
                return refuse(stage, graph, call, format!("writes %{}, which holds constants", buffer.0));
            }
            if touch.writes {
                written.add(touch.part);
            } else if graph.op(buffer) == Op::Buffer && !written.covers(touch.part) {
                return refuse(stage, graph, call, format!("reads of %{} what no Call before it writes", buffer.0));
            }
        }
    }
    for &result in graph.sources(root) {
        let buffer = base(graph, result);
        if !matches!(graph.op(buffer), Op::Param | Op::Buffer) {
            return refuse(stage, graph, result, "a result is a Buffer, or a Param that is overwritten");
        }
        let is_empty = graph.props(buffer).element_count().is(0);
        if !is_empty && touched.to(buffer).iter().all(|touch| !touch.writes) {
            return refuse(stage, graph, result, format!("no Call writes %{}", buffer.0));
        }
    }
    Ok(())
}

/// A slot is one buffer, and Calls take buffers as they are: the Linear alone orders them.
fn slots(stage: &str, graph: &Graph, calls: &[NodeId]) -> Result<()> {
    let mut known: FxHashMap<(Op, u32), NodeId> = FxHashMap::default();
    for &call in calls {
        for &argument in buffers(graph, call) {
            let mut node = argument;
            // A custom function is told bools where bytes are stored.
            let is_renamed = |node: NodeId| {
                let [from, to] = [graph.source(node, 0), node].map(|node| graph.dtype(node).size());
                from == to && custom_function::of_call(graph, call).is_some()
            };
            while matches!(graph.op(node), Op::Shrink | Op::Reshape)
                || graph.op(node) == Op::Bitcast && is_renamed(node)
            {
                let offset = |node: NodeId| graph.props(graph.source(node, 1)).value.as_deref()?.first()?.as_const();
                if graph.op(node) == Op::Shrink && offset(node).is_none() {
                    return refuse(stage, graph, call, "its argument is a part that begins at no number");
                }
                node = graph.source(node, 0);
            }
            let Some(buffer) = leaf(graph, node).filter(|&buffer| buffer == node) else {
                return refuse(stage, graph, call, "its argument is not a buffer or a part of one");
            };
            if let Arg::Param { slot, .. } | Arg::Buffer { slot, .. } = *graph.arg(buffer)
                && *known.entry((graph.op(buffer), slot)).or_insert(buffer) != buffer
            {
                return refuse(stage, graph, buffer, format!("slot {slot} is another buffer, too"));
            }
        }
    }
    Ok(())
}

/// The elements of a buffer that have been written: runs that neither meet nor touch, in order.
#[derive(Default)]
struct Written(Vec<(i64, i64)>);

impl Written {
    fn add(&mut self, (mut start, mut end): (i64, i64)) {
        self.0.retain(|&(first, last)| {
            let is_apart = last < start || end < first;
            if !is_apart {
                (start, end) = (start.min(first), end.max(last));
            }
            is_apart
        });
        let place = self.0.partition_point(|&(first, _)| first < start);
        self.0.insert(place, (start, end));
    }

    fn covers(&self, (start, end): (i64, i64)) -> bool {
        start >= end || self.0.iter().any(|&(first, last)| first <= start && end <= last)
    }
}
