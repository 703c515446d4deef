//! Schedules the user's loops on a machine with threads: the outermost global loop is parallel, the others are serial.

use tinyspec_ir::{Arg, AxisType, Graph, NodeId, Op, Result};

pub(super) fn schedule(graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
    let shared = shared(graph, sink);
    let mut scheduled = Graph::new();
    let from = std::mem::take(graph);
    let roots = scheduled.import(&from, &[sink], |scheduled, node| match from.arg(node) {
        Arg::Range { id, axis: AxisType::Global } if Some(node) != shared => {
            let bound = scheduled.import(&from, &[from.source(node, 0)], |_, _| Ok(None))?;
            let arg = Arg::Range { id: *id, axis: AxisType::Thread };
            tinyspec_ir::Builder::add(scheduled, Op::Range, &bound, arg).map(Some)
        }
        _ => Ok(None),
    })?;
    *graph = scheduled;
    Ok(roots[0])
}

/// The outermost loop, if it is global and contains all effects of the kernel.
fn shared(graph: &Graph, sink: NodeId) -> Option<NodeId> {
    let &[end] = graph.sources(sink) else { return None };
    let range = *graph.sources(end).get(1).filter(|_| graph.op(end) == Op::End)?;
    matches!(graph.arg(range), Arg::Range { axis: AxisType::Global, .. }).then_some(range)
}
