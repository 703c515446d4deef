//! Reduces: nested ones reordered, and terms or results that need not be computed individually.

use crate::masks::{repeated, varies};
use crate::ops::creation::arange_dim;
use crate::ops::movement;
use crate::ops::scan::scanned;
use crate::{Arg, Axes, Builder, Const, DType, Graph, NodeId, Op};

rules! {
    /// Reductions.
    REDUCE (Reassoc, "reduce", g, node) {
        reduce_reduce: (Reduce (Reduce x)) if same_op(g, node, g.source(node, 0)) && !g.is_shared(g.source(node, 0)) => {
            let inner = g.source(node, 0);
            let axes = union(axes(g, inner)?, axes(g, node)?);
            reduced(g, node, x, axes)?
        };
        reduce_squeezed_reduce: (Reduce (Reshape (Reduce x) shape)) if same_op(g, node, g.source(g.source(node, 0), 0)) => {
            let squeezed = g.source(node, 0);
            let inner = g.source(squeezed, 0);
            if g.is_shared(squeezed) || g.is_shared(inner) {
                return None;
            }
            let places = kept(g, inner, squeezed)?;
            let outer: Option<Axes> = axes(g, node)?.iter().map(|&axis| places.get(axis as usize).copied()).collect();
            let axes = union(axes(g, inner)?, outer?);
            let all = reduced(g, node, x, axes)?;
            let shape = g.props(node).shape.clone();
            let shape = g.shape(&shape).ok()?;
            g.add(Op::Reshape, &[all, shape], Arg::None).ok()?
        };
        reduce_of_repeated: (Reduce x) => once(g, node, x)?;
        reduce_of_one: (Reduce x) if is_of_one(g, node) => {
            x
        };
        running_sum_of_one: (Reduce windows) if is_sum(g, node) && is_choice(g, windows) => {
            let value = g.as_const(repeated(g, g.source(windows, 1)))?;
            scanned(g, node)?;
            multiples(g, node, value)?
        };
    }
}

/// Reduces once along an axis where all results are equal because the terms do not vary along it.
fn once(graph: &mut Graph, node: NodeId, x: NodeId) -> Option<NodeId> {
    let reduced = axes(graph, node)?;
    let shape = graph.props(x).shape.clone();
    let mut first = shape.clone();
    for (axis, varies) in varies(graph, x).into_iter().enumerate() {
        // An axis that may be empty has no first term.
        if !varies && !reduced.contains(&(axis as u32)) && shape[axis].bounds().0 > 0 {
            first[axis] = 1.into();
        }
    }
    if first == shape {
        return None;
    }
    let terms = movement::shrink(graph, x, &vec![0.into(); shape.len()], &first).ok()?;
    let arg = graph.arg(node).clone();
    let results = graph.add(Op::Reduce, &[terms], arg).ok()?;
    let shape = graph.props(node).shape.clone();
    movement::expand(graph, results, &shape).ok()
}

/// Whether each result has a single term. It needs no loop, but later stages would treat it as a reduction.
fn is_of_one(graph: &Graph, node: NodeId) -> bool {
    let is_short = |axes: Axes| {
        let shape = &graph.props(graph.source(node, 0)).shape;
        axes.iter().all(|&axis| shape.get(axis as usize).is_some_and(|dim| dim.is(1)))
    };
    axes(graph, node).is_some_and(is_short) && graph.dtype(node) == graph.dtype(graph.source(node, 0))
}

fn is_sum(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.arg(node), Arg::Reduce { op: Op::Add, .. })
}

fn is_choice(graph: &Graph, node: NodeId) -> bool {
    graph.op(node) == Op::Where
}

/// 1, 2, 3, … times a number, along the axis before the last.
fn multiples(graph: &mut Graph, node: NodeId, value: Const) -> Option<NodeId> {
    let shape = graph.props(node).shape.clone();
    let length = shape.get(shape.len().checked_sub(2)?)?.clone();
    let ramp = arange_dim(graph, &length, DType::I32).ok()?;
    let one = graph.constant(Const::int(DType::I32, 1));
    let counts = graph.alu(Op::Add, &[ramp, one]).ok()?;
    let counts = graph.add(Op::Cast, &[counts], Arg::DType(value.dtype)).ok()?;
    let value = graph.constant(value);
    let sums = graph.alu(Op::Mul, &[counts, value]).ok()?;
    let column = graph.shape(&[length, 1.into()]).ok()?;
    let sums = graph.add(Op::Reshape, &[sums, column], Arg::None).ok()?;
    let shape = graph.shape(&shape).ok()?;
    graph.add(Op::Expand, &[sums, shape], Arg::None).ok()
}

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

/// `x` reduced along `axes` at once, by the op of `node`.
fn reduced(graph: &mut Graph, node: NodeId, x: NodeId, axes: Axes) -> Option<NodeId> {
    let Arg::Reduce { op, .. } = *graph.arg(node) else { return None };
    graph.add(Op::Reduce, &[x], Arg::Reduce { op, axes }).ok()
}

/// The dim of `inner` for each dim of `squeezed`, if only dims of size 1 were removed.
fn kept(graph: &Graph, inner: NodeId, squeezed: NodeId) -> Option<Axes> {
    let gone = axes(graph, inner)?;
    let shape = &graph.props(inner).shape;
    let places: Axes = (0..shape.len() as u32).filter(|axis| !gone.contains(axis)).collect();
    let same = |(&place, dim)| shape.get(place as usize) == Some(dim);
    let dims = &graph.props(squeezed).shape;
    (places.len() == dims.len() && places.iter().zip(dims).all(same)).then_some(places)
}
