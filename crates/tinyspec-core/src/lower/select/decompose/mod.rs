//! Ops that the target lacks, in terms of those it has. Rules are data: a line each.

use tinyspec_backends::Target;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

pub(super) fn decompose(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<NodeId> {
    let _ = (&graph, target, Op::Add, Arg::None);
    let _ = graph.props(sink);
    Ok(sink)
}
