//! Joins UPCAST Ranges that every access steps through as if they were one, so that a vector spans several of them: an
//! output of 3 · 4 · 4 channels that a copy has made contiguous is three vectors of 16.

use super::trips;
use crate::lower::live::next_range_id;
use crate::lower::replace::Replacement;
use smallvec::SmallVec;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::{Arg, AxisType, Builder, DType, Graph, NodeId, Op, Result};

/// Two UPCAST Ranges, and the trips of the inner one.
#[derive(Clone, Copy)]
struct Pair {
    outer: NodeId,
    inner: NodeId,
    trips: i64,
}

/// Joins UPCAST Ranges of the kernel as far as its accesses allow.
pub(in super::super) fn join(graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
    let mut sink = sink;
    while let Some(pair) = find(graph, sink)? {
        sink = replace(graph, sink, pair)?;
    }
    Ok(sink)
}

fn find(graph: &Graph, sink: NodeId) -> Result<Option<Pair>> {
    let order = graph.reachable(&[sink]);
    let is_upcast = |&node: &NodeId| matches!(graph.arg(node), Arg::Range { axis: AxisType::Upcast, .. });
    let ranges: SmallVec<[NodeId; 4]> = order.iter().copied().filter(is_upcast).collect();
    if ranges.len() < 2 {
        return Ok(None);
    }
    for &inner in &ranges {
        let trips = trips(graph, inner)?;
        for &outer in ranges.iter().filter(|&&outer| outer != inner) {
            let pair = Pair { outer, inner, trips };
            if pair.is_one(graph, &order) {
                return Ok(Some(pair));
            }
        }
    }
    Ok(None)
}

impl Pair {
    /// Whether every index contains both Ranges as `trips · outer + inner`, times a constant.
    fn is_one(self, graph: &Graph, order: &[NodeId]) -> bool {
        let is_sum =
            |node: NodeId| graph.dtype(node) == DType::Index && matches!(graph.op(node), Op::Range | Op::Add | Op::Mul);
        order.iter().filter(|&&node| !is_sum(node)).all(|&node| {
            let used = match graph.op(node) {
                // Loops only name their Ranges.
                Op::End => &graph.sources(node)[..1],
                _ => graph.sources(node),
            };
            used.iter().filter(|&&source| is_sum(source)).all(|&source| {
                let sum = Affine::of(graph, source);
                sum.coefficient(self.outer) == sum.coefficient(self.inner).wrapping_mul(self.trips)
            })
        })
    }
}

fn replace(graph: &mut Graph, sink: NodeId, pair: Pair) -> Result<NodeId> {
    let order = graph.reachable(&[sink]);
    let id = next_range_id(graph, order.iter().copied());
    let bound = trips(graph, pair.outer)? * pair.trips;
    let bound = graph.index(bound);
    let joined = graph.range(bound, id, AxisType::Upcast)?;
    let mut replacement = Replacement::new(pair.inner, &Affine::atom(joined), None);
    replacement.insert_sum(pair.outer, Affine::default());
    for node in order {
        match (graph.op(node), graph.sources(node)) {
            (Op::End, &[effect, range]) if range == pair.outer => {
                let effect = replacement.value(graph, effect)?;
                replacement.insert(node, effect);
            }
            (Op::End, &[effect, range]) if range == pair.inner => {
                let effect = replacement.value(graph, effect)?;
                let end = graph.add(Op::End, &[effect, joined], Arg::None)?;
                replacement.insert(node, end);
            }
            _ => replacement.node(graph, node)?,
        }
    }
    replacement.value(graph, sink)
}
