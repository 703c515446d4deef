//! Stores that bypass the caches, where these could not keep what is written until somebody reads it.

use smallvec::SmallVec;
use tinyspec_backends::Target;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// Marks the Stores of a kernel that moves more bytes than the caches keep. An ordinary store would read each line
/// before it writes it.
pub(super) fn mark(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<NodeId> {
    let order = graph.reachable(&[sink]);
    if moved(graph, &order) <= kept(target) {
        return Ok(sink);
    }
    let mut new: Vec<NodeId> = (0..graph.len() as u32).map(NodeId).collect();
    for node in order {
        let sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|source| new[source.index()]).collect();
        let arg = match graph.op(node) {
            Op::Store => Arg::Streaming,
            _ => graph.arg(node).clone(),
        };
        new[node.index()] = graph.add(graph.op(node), &sources, arg)?;
    }
    Ok(new[sink.index()])
}

/// Bytes of all buffers.
fn moved(graph: &Graph, order: &[NodeId]) -> usize {
    let buffers = order.iter().filter(|&&node| graph.op(node) == Op::Param);
    let bytes = buffers.filter_map(|&node| {
        let length = graph.props(node).shape.first()?.as_const()?;
        usize::try_from(length).ok()?.checked_mul(graph.dtype(node).size())
    });
    bytes.fold(0, usize::saturating_add)
}

/// What the last cache holds of the work of some threads: one of them alone does not fill it.
fn kept(target: &Target) -> usize {
    let [_, _, last] = target.cache_bytes;
    if last == 0 { usize::MAX } else { last.saturating_mul(target.threads.clamp(1, 2)) / 2 }
}
