//! Stores that bypass the caches, where these could not keep what is written until it is read.

use crate::lower::optimize::kernel::Kernel;
use crate::lower::optimize::transforms::{Nontemporal, OptOp};
use rustc_hash::FxHashSet;
use tinyspec_backends::Target;
use tinyspec_ir::{Builder, Graph, NodeId, Op};

/// Chooses non-temporal stores for a kernel that moves more bytes than the caches hold and writes a buffer that it does not read.
/// An ordinary store would read each line before writing it.
pub(in super::super) fn nontemporal(graph: &Graph, kernel: &Kernel, target: &Target) -> Option<OptOp> {
    let stores = kernel.accesses.iter().filter(|access| access.is_store);
    let written: FxHashSet<NodeId> = stores.map(|access| access.buffer).collect();
    let is_only_written = |&buffer: &NodeId| !kernel.loads_from(buffer);
    let pays = moved(graph, &kernel.order, &written) > kept(target) && written.iter().any(is_only_written);
    pays.then_some(Nontemporal.into())
}

/// Total bytes of all buffers, counting only the written part of each buffer that is written.
fn moved(graph: &Graph, order: &[NodeId], written: &FxHashSet<NodeId>) -> usize {
    let trips = order.iter().filter(|&&node| graph.op(node) == Op::End).filter_map(|&node| {
        let trips = graph.as_int(graph.source(graph.source(node, 1), 0))?;
        usize::try_from(trips).ok()
    });
    let trips = trips.fold(1, usize::saturating_mul);
    let buffers = order.iter().filter(|&&node| graph.op(node) == Op::Param);
    let bytes = buffers.filter_map(|&node| {
        let length = usize::try_from(graph.props(node).shape.first()?.as_const()?).ok()?;
        let length = if written.contains(&node) { length.min(trips) } else { length };
        length.checked_mul(graph.dtype(node).size())
    });
    bytes.fold(0, usize::saturating_add)
}

/// Bytes of the last-level cache to count on: half of it for one thread, nearly all of it for several.
fn kept(target: &Target) -> usize {
    let [_, _, last] = target.cache_bytes;
    match target.threads {
        _ if last == 0 => usize::MAX,
        0 | 1 => last / 2,
        _ => last - last / 8,
    }
}
