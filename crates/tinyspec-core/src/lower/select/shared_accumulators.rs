//! Unrolled terms of a result share its accumulators.
//!
//! Expand gives each trip of an UNROLL Range its own accumulators, to hide the latency of additions. A tile of many results needs
//! no more accumulators to hide it, and spilled ones do not help.

use super::devectorize::layouts;
use super::tile::Dims;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_backends::Target;
use tinyspec_ir::dim::static_shape;
use tinyspec_ir::{Arg, Axes, Builder, Graph, NodeId, Op, Result};

/// Whether this many results, in machine vectors, get one accumulator each for all of their terms in a trip.
pub(in super::super) fn is_shared(results: usize, terms: usize, target: &Target) -> bool {
    results >= target.accumulators || terms > target.vector_registers
}

/// A Reduce over tile axes of a Reduce over loops.
struct Unrolled {
    node: NodeId,
    /// The Reduce over loops.
    inner: NodeId,
    axes: Axes,
    /// Sizes of the terms of one trip, and of the results.
    terms: Dims,
    results: Dims,
}

pub(in super::super) fn share_accumulators(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<NodeId> {
    let order = graph.reachable(&[sink]);
    let unrolled: Vec<Unrolled> = order.iter().filter_map(|&node| find(graph, node)).collect();
    if unrolled.is_empty() {
        return Ok(sink);
    }
    let tiles = unrolled.iter().flat_map(|it| [&it.terms, &it.results]);
    let layouts = layouts(graph, &order, target, tiles)?;
    let mut shared: FxHashMap<NodeId, &Unrolled> = FxHashMap::default();
    for (it, layouts) in unrolled.iter().zip(layouts.chunks(2)) {
        let is_along_lanes = layouts[0].lane.is_some_and(|lane| it.axes.contains(&(lane as u32)));
        if !is_along_lanes && is_shared(layouts[1].count(), layouts[0].count(), target) {
            shared.insert(it.node, it);
        }
    }
    if shared.is_empty() {
        return Ok(sink);
    }
    let mut new: Vec<NodeId> = (0..graph.len() as u32).map(NodeId).collect();
    for node in order {
        let map = |graph: &Graph, of: NodeId| -> SmallVec<[NodeId; 4]> {
            graph.sources(of).iter().map(|source| new[source.index()]).collect()
        };
        new[node.index()] = match shared.get(&node) {
            Some(it) => {
                let mut sources = map(graph, it.inner);
                sources[0] = graph.add(Op::Reduce, &sources[..1], graph.arg(node).clone())?;
                graph.add(Op::Reduce, &sources, graph.arg(it.inner).clone())?
            }
            None => {
                let sources = map(graph, node);
                graph.add(graph.op(node), &sources, graph.arg(node).clone())?
            }
        };
    }
    Ok(new[sink.index()])
}

fn find(graph: &Graph, node: NodeId) -> Option<Unrolled> {
    let (Arg::Reduce { op, axes }, &[inner]) = (graph.arg(node), graph.sources(node)) else { return None };
    let Arg::Reduce { op: of_loops, axes: none } = graph.arg(inner) else { return None };
    let is_over_loops = none.is_empty() && of_loops == op && graph.sources(inner).len() > 1;
    let dims = |node: NodeId| static_shape(&graph.props(node).shape);
    (is_over_loops && !axes.is_empty()).then_some(())?;
    Some(Unrolled { node, inner, axes: axes.clone(), terms: dims(inner)?, results: dims(node)? })
}
