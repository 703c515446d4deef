//! Reduces of Reduces: another order of the same sum.

use crate::{Arg, Axes, Builder, Graph, NodeId, Op, dim};

rules! {
    /// Reductions.
    REDUCE (Reassoc, "reduce", g, node) {
        reduce_reduce: (Reduce (Reduce x)) if same_op(g, node, g.source(node, 0)) => {
            let inner = g.source(node, 0);
            let axes = union(axes(g, inner)?, axes(g, node)?);
            reduced(g, node, x, axes)?
        };
        reduce_squeezed_reduce: (Reduce (Reshape (Reduce x) shape)) if same_op(g, node, g.source(g.source(node, 0), 0)) => {
            let squeezed = g.source(node, 0);
            let inner = g.source(squeezed, 0);
            let places = kept(g, inner, squeezed)?;
            let outer: Option<Axes> = axes(g, node)?.iter().map(|&axis| places.get(axis as usize).copied()).collect();
            let axes = union(axes(g, inner)?, outer?);
            let all = reduced(g, node, x, axes)?;
            let shape = g.props(node).shape.clone();
            let shape = g.shape(&shape).ok()?;
            g.add(Op::Reshape, &[all, shape], Arg::None).ok()?
        };
    }
}

/// Trips that one loop makes as fast as several threads would: a longer reduction may have been split on purpose.
const SHORT: i64 = 16384;

/// The axes of a tensor-level Reduce.
fn axes(graph: &Graph, node: NodeId) -> Option<Axes> {
    match graph.arg(node) {
        Arg::Reduce { axes, .. } if graph.sources(node).len() == 1 => Some(axes.clone()),
        _ => None,
    }
}

fn same_op(graph: &Graph, a: NodeId, b: NodeId) -> bool {
    matches!((graph.arg(a), graph.arg(b)), (Arg::Reduce { op: a, .. }, Arg::Reduce { op: b, .. }) if a == b)
}

fn union(a: Axes, b: Axes) -> Axes {
    let mut all: Axes = a.into_iter().chain(b).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// `x` reduced along `axes` in one go, as `node` does it.
fn reduced(graph: &mut Graph, node: NodeId, x: NodeId, axes: Axes) -> Option<NodeId> {
    let Arg::Reduce { op, .. } = *graph.arg(node) else { return None };
    let dims = dim::static_shape(&graph.props(x).shape)?;
    let trips = axes.iter().try_fold(1i64, |trips, &axis| trips.checked_mul(*dims.get(axis as usize)?))?;
    (trips <= SHORT).then(|| graph.add(Op::Reduce, &[x], Arg::Reduce { op, axes }).ok()).flatten()
}

/// For each dim of `squeezed`, which of `inner` it is, where only dims of size 1 are gone.
fn kept(graph: &Graph, inner: NodeId, squeezed: NodeId) -> Option<Axes> {
    let gone = axes(graph, inner)?;
    let shape = &graph.props(inner).shape;
    let places: Axes = (0..shape.len() as u32).filter(|axis| !gone.contains(axis)).collect();
    let same = |(&place, dim)| shape.get(place as usize) == Some(dim);
    let dims = &graph.props(squeezed).shape;
    (places.len() == dims.len() && places.iter().zip(dims).all(same)).then_some(places)
}
