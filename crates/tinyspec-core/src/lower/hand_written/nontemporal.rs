//! Stores that bypass the caches, in kernels written by hand.

use crate::lower::traffic::bypassing_pays;
use rustc_hash::FxHashSet;
use tinyspec_backends::Target;
use tinyspec_ir::rewrite::transform;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// Makes the stores to buffers that the kernel only writes non-temporal, where that pays.
pub(super) fn nontemporal(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<NodeId> {
    let order = graph.reachable(&[sink]);
    let memory = |node: NodeId| graph.memory(graph.source(node, 0)).filter(|&memory| graph.op(memory) == Op::Param);
    let of = |ops: &[Op]| -> FxHashSet<NodeId> {
        order.iter().filter(|&&node| ops.contains(&graph.op(node))).filter_map(|&node| memory(node)).collect()
    };
    let (written, read) = (of(&[Op::Store, Op::AtomicAdd]), of(&[Op::Load, Op::AtomicAdd]));
    let only_written: FxHashSet<NodeId> = written.difference(&read).copied().collect();
    if only_written.is_empty() || !bypassing_pays(graph, &order, &written, target) {
        return Ok(sink);
    }
    let roots = transform(graph, &[sink], |graph, old, new| {
        let bypasses = graph.op(old) == Op::Store
            && graph.memory(graph.source(old, 0)).is_some_and(|memory| only_written.contains(&memory));
        if !bypasses {
            return Ok(new);
        }
        let sources = graph.sources(new).to_vec();
        graph.add(Op::Store, &sources, Arg::Nontemporal)
    })?;
    Ok(roots[0])
}
