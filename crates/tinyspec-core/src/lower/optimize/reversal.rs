//! Loop reversal: an output loop along which Loads have stride -1, and no Store is contiguous, runs in the opposite direction.
//!
//! This makes a rotation a transpose, whose tiles are transposed in registers.

use crate::lower::live::trips;
use crate::lower::replace::replace_in_loop;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::{Arg, AxisType, Graph, NodeId, Op, Result};

/// The kernel with such loops reversed. The terms of a Reduce keep their order.
pub(super) fn reverse(graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
    let mut sink = sink;
    while let Some((range, trips)) = find(graph, sink) {
        let position = Affine::number(trips - 1).plus(&Affine::atom(range).scale(-1));
        sink = replace_in_loop(graph, sink, range, &position)?;
    }
    Ok(sink)
}

/// A loop to reverse, and its trips.
fn find(graph: &Graph, sink: NodeId) -> Option<(NodeId, i64)> {
    let order = graph.reachable(&[sink]);
    let (mut loads, mut stores): (Vec<Affine>, Vec<Affine>) = Default::default();
    for &node in &order {
        let sums = match graph.op(node) {
            Op::Load => &mut loads,
            Op::Store | Op::AtomicAdd => &mut stores,
            _ => continue,
        };
        if let &[_, index] = graph.sources(graph.source(node, 0)) {
            sums.push(Affine::of(graph, index));
        }
    }
    let is_backwards = |range: NodeId| {
        let stride = |sum: &Affine| sum.coefficient(range);
        loads.iter().any(|sum| stride(sum) == -1)
            && loads.iter().all(|sum| stride(sum) <= 0)
            && stores.iter().all(|sum| stride(sum).abs() > 1)
            && !carries(graph, &order, range)
    };
    let mut loops =
        order.iter().copied().filter(|&node| matches!(graph.arg(node), Arg::Range { axis: AxisType::Loop, .. }));
    loops.find_map(|range| Some((range, trips(graph, range)?)).filter(|_| is_backwards(range)))
}

/// Whether a condition compares the Range with that of a Reduce, as in a running sum, which is loop-carried.
fn carries(graph: &Graph, order: &[NodeId], range: NodeId) -> bool {
    let is_reduced = |node: &NodeId| matches!(graph.arg(*node), Arg::Range { axis: AxisType::Reduce, .. });
    let mut compared = order.iter().filter(|&&node| matches!(graph.op(node), Op::CmpLt | Op::CmpNe));
    compared.any(|&node| {
        let made_of = graph.reachable(&[node]);
        made_of.contains(&range) && made_of.iter().any(is_reduced)
    })
}
