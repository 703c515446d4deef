//! A loop over blocks, the last of which may be partial: accesses beyond the end are gated off.

use super::{Nest, place};
use crate::lower::fold::{both, identity};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::{AxisType, Builder, Dim, Graph, NodeId, Op, Result};

impl Nest {
    /// The kernel over blocks of one size, in order.
    pub(super) fn cut(&self, graph: &mut Graph, position: usize, total: &Dim, block: i64) -> Result<NodeId> {
        let next = self.next_range(graph);
        let (blocks, within) = ((total + (block - 1)).idiv(&Dim::from(block)), Dim::from(block));
        let (blocks, within) = (graph.dim(&blocks)?, graph.dim(&within)?);
        let blocks = graph.range(blocks, next, AxisType::Loop)?;
        let within = graph.range(within, next + 1, AxisType::Loop)?;
        let here = place(graph, &Dim::from(0), Some((blocks, block)), Some(within))?;
        let total = graph.dim(total)?;
        let inside = graph.alu(Op::CmpLt, &[here, total])?;
        let body = moved(graph, self.body, self.ranges[position], here, inside)?;
        self.closed(graph, body, position, (blocks, Some(within)))
    }
}

/// `body` with `here` in place of `range`. Accesses whose address depends on it happen only where `inside` holds.
fn moved(graph: &mut Graph, body: NodeId, range: NodeId, here: NodeId, inside: NodeId) -> Result<NodeId> {
    let mut new: FxHashMap<NodeId, NodeId> = FxHashMap::from_iter([(range, here)]);
    for node in graph.reachable(&[body]) {
        let old: SmallVec<[NodeId; 4]> = graph.sources(node).into();
        if node == range || !old.iter().any(|source| new.contains_key(source)) {
            continue;
        }
        let mut sources: SmallVec<[NodeId; 4]> =
            old.iter().map(|source| new.get(source).copied().unwrap_or(*source)).collect();
        let op = graph.op(node);
        if matches!(op, Op::Load | Op::Store) && new.contains_key(&old[0]) {
            if op == Op::Load && sources.len() == 1 {
                sources.push(identity(graph, Op::Add, graph.dtype(node)));
            }
            let gate = both(graph, sources.get(2).copied(), Some(inside))?;
            sources.truncate(2);
            sources.extend(gate);
        }
        let arg = graph.arg(node).clone();
        new.insert(node, graph.add(op, &sources, arg)?);
    }
    Ok(new.get(&body).copied().unwrap_or(body))
}
