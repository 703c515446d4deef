//! Schedules the user's loops: on a CPU the threads share the outermost global loop, and the others are serial. On a GPU all of them
//! are workgroups, as they are.

use tinyspec_backends::Target;
use tinyspec_ir::{Arg, AxisType, Builder, Graph, NodeId, Op, Result};

pub(crate) fn schedule(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<NodeId> {
    let Some(outermost) = outermost(graph, sink).filter(|_| target.workgroups.is_none()) else { return Ok(sink) };
    let mut scheduled = Graph::new();
    let from = std::mem::take(graph);
    let roots = scheduled.import(&from, &[sink], |scheduled, node| match from.arg(node) {
        Arg::Range { id, .. } if node == outermost => {
            let bound = scheduled.import(&from, &[from.source(node, 0)], |_, _| Ok(None))?;
            let arg = Arg::Range { id: *id, axis: AxisType::Thread };
            scheduled.add(Op::Range, &bound, arg).map(Some)
        }
        _ => Ok(None),
    })?;
    *graph = scheduled;
    Ok(roots[0])
}

/// The outermost loop, if it is global and contains all effects of the kernel.
fn outermost(graph: &Graph, sink: NodeId) -> Option<NodeId> {
    let &[end] = graph.sources(sink) else { return None };
    let range = *graph.sources(end).get(1).filter(|_| graph.op(end) == Op::End)?;
    matches!(graph.arg(range), Arg::Range { axis: AxisType::Global, .. }).then_some(range)
}
