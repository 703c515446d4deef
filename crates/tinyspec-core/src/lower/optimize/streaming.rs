//! Stores that bypass the caches, where these could not keep what is written until somebody reads it.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use tinyspec_backends::Target;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// Marks the Stores of a kernel that moves more bytes than the caches keep. An ordinary store would read each line
/// before it writes it.
pub(in super::super) fn mark(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<NodeId> {
    let order = graph.reachable(&[sink]);
    if moved(graph, &order) <= kept(target) {
        return Ok(sink);
    }
    let read: FxHashSet<NodeId> =
        order.iter().filter(|&&node| graph.op(node) == Op::Load).filter_map(|&node| memory(graph, node)).collect();
    let mut new: Vec<NodeId> = (0..graph.len() as u32).map(NodeId).collect();
    for node in order {
        let sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|source| new[source.index()]).collect();
        let arg = match graph.op(node) {
            // Lines that are read before are in the cache.
            Op::Store if memory(graph, node).is_none_or(|memory| !read.contains(&memory)) => Arg::Streaming,
            _ => graph.arg(node).clone(),
        };
        new[node.index()] = graph.add(graph.op(node), &sources, arg)?;
    }
    Ok(new[sink.index()])
}

/// The Param that a Load or Store is about.
fn memory(graph: &Graph, access: NodeId) -> Option<NodeId> {
    let memory = *graph.sources(*graph.sources(access).first()?).first()?;
    (graph.op(memory) == Op::Param).then_some(memory)
}

/// Bytes of all buffers; of one that is written, as much as is.
fn moved(graph: &Graph, order: &[NodeId]) -> usize {
    let trips = order.iter().filter(|&&node| graph.op(node) == Op::End).filter_map(|&node| {
        let trips = graph.as_int(graph.source(graph.source(node, 1), 0))?;
        usize::try_from(trips).ok()
    });
    let trips = trips.fold(1, usize::saturating_mul);
    let written: FxHashSet<NodeId> =
        order.iter().filter(|&&node| graph.op(node) == Op::Store).filter_map(|&node| memory(graph, node)).collect();
    let buffers = order.iter().filter(|&&node| graph.op(node) == Op::Param);
    let bytes = buffers.filter_map(|&node| {
        let length = usize::try_from(graph.props(node).shape.first()?.as_const()?).ok()?;
        let length = if written.contains(&node) { length.min(trips) } else { length };
        length.checked_mul(graph.dtype(node).size())
    });
    bytes.fold(0, usize::saturating_add)
}

/// What the last cache holds of the work of some threads: one of them alone fills half of it; several nearly all, but for
/// what else is in use.
fn kept(target: &Target) -> usize {
    let [_, _, last] = target.cache_bytes;
    match target.threads {
        _ if last == 0 => usize::MAX,
        0 | 1 => last / 2,
        _ => last - last / 8,
    }
}
