//! Gradients of running products and maxima in `n log n` operations, and of the specification's prefix sums. The
//! general rules would take `n²`.

use crate::ops::recurrence::{Order, longest, recurrence};
use crate::ops::{arithmetic, cast, like, movement, scan};
use crate::{Arg, Builder, DType, Dim, Graph, NodeId, Op, Result};

/// The terms of a running Reduce, and their contribution.
pub(super) fn contribution(
    graph: &mut Graph,
    node: NodeId,
    g: NodeId,
    wanted: &[NodeId],
) -> Result<Option<(NodeId, NodeId)>> {
    if let Some((x, between)) = scan::tiled(graph, node).filter(|&(x, _)| graph.dtype(x).is_float())
        && !between.iter().any(|view| wanted.contains(view))
    {
        return Ok(Some((x, of_prefix_sums(graph, x, g)?)));
    }
    let Arg::Reduce { op: op @ (Op::Mul | Op::Max), .. } = *graph.arg(node) else { return Ok(None) };
    let Some(x) = scan::scanned(graph, node) else { return Ok(None) };
    let shape = graph.props(x).shape.clone();
    let dtype = graph.dtype(x);
    let Some(length) = shape.last().filter(|length| dtype.is_float() && longest(length).is_some()) else {
        return Ok(None);
    };
    let result = movement::reshape(graph, node, &shape)?;
    let g = movement::reshape(graph, g, &shape)?;
    if length.bounds().1 < 2 {
        return Ok(Some((x, g)));
    }
    let wide = cast(graph, g, dtype.accumulator())?;
    let contribution = match op {
        Op::Mul => of_products(graph, x, result, wide, length)?,
        _ => of_maxima(graph, x, result, wide, length)?,
    };
    Ok(Some((x, cast(graph, contribution, dtype)?)))
}

/// Each element is part of the sums from its own position on.
fn of_prefix_sums(graph: &mut Graph, x: NodeId, g: NodeId) -> Result<NodeId> {
    let shape = graph.props(x).shape.clone();
    let g = movement::reshape(graph, g, &shape)?;
    let backwards = movement::flip(graph, g, &[-1])?;
    let sums = scan::cumsum(graph, backwards, -1)?;
    movement::flip(graph, sums, &[-1])
}

/// `p(i-1) · s(i)`, with `s(i) = g(i) + x(i+1) · s(i+1)`: the product before, times those after with their cotangents.
fn of_products(graph: &mut Graph, x: NodeId, products: NodeId, g: NodeId, length: &Dim) -> Result<NodeId> {
    let factors = movement::narrow(graph, x, -1, 1, length.clone() - 1i64)?;
    let after = recurrence(graph, Order::Backward, factors, g, -1)?;
    let before = shifted(graph, products, length, 1.0)?;
    graph.alu(Op::Mul, &[before, after])
}

/// For each element of `x`, the product of all others along `axes`: those before it times those after. There is no
/// division, so it and its derivatives of every order are right at zeros. `None` if running products are not available:
/// along axes that may be empty or have an unknown length.
pub(super) fn products_of_others(graph: &mut Graph, x: NodeId, axes: &[i64]) -> Result<Option<NodeId>> {
    let shape = graph.props(x).shape.clone();
    let length = axes.iter().fold(Dim::from(1), |product, &axis| product * shape[axis as usize].clone());
    if length.bounds().0 < 1 || longest(&length).is_none() {
        return Ok(None);
    }
    let kept = (0..shape.len() as i64).filter(|axis| !axes.contains(axis));
    let order: Vec<i64> = kept.chain(axes.iter().copied()).collect();
    let rows = movement::permute(graph, x, &order)?;
    let turned = graph.props(rows).shape.clone();
    let flat: crate::Shape = turned[..shape.len() - axes.len()].iter().cloned().chain([length.clone()]).collect();
    let rows = movement::reshape(graph, rows, &flat)?;
    let mut sides = vec![];
    for is_after in [false, true] {
        let towards = if is_after { movement::flip(graph, rows, &[-1])? } else { rows };
        let running = scan::cumprod(graph, towards, -1)?;
        let others = shifted(graph, running, &length, 1.0)?;
        sides.push(if is_after { movement::flip(graph, others, &[-1])? } else { others });
    }
    let products = graph.alu(Op::Mul, &sides)?;
    let products = movement::reshape(graph, products, &turned)?;
    let mut back = vec![0; order.len()];
    for (place, &axis) in (0..).zip(&order) {
        back[axis as usize] = place;
    }
    movement::permute(graph, products, &back).map(Some)
}

/// Elements that equal the running maximum share the cotangents from there on, until there is a greater element.
fn of_maxima(graph: &mut Graph, x: NodeId, maxima: NodeId, g: NodeId, length: &Dim) -> Result<NodeId> {
    let dtype = graph.dtype(g);
    let hits = same(graph, x, maxima)?;
    let (before, after) = (
        movement::narrow(graph, maxima, -1, 0, length.clone() - 1i64)?,
        movement::narrow(graph, maxima, -1, 1, length.clone() - 1i64)?,
    );
    let stays = same(graph, before, after)?;
    // The number of ties: the hits up to here, without those before the last change.
    let flags = cast(graph, hits, DType::I32)?;
    let count = scan::cumsum(graph, flags, -1)?;
    let earlier = shifted(graph, count, length, 0.0)?;
    let inside = cast(graph, stays, DType::I32)?;
    let inside = shifted(graph, inside, length, 0.0)?;
    let zero = like(graph, earlier, 0.0);
    let is_inside = arithmetic::ne(graph, inside, zero)?;
    let changes = graph.alu(Op::Where, &[is_inside, zero, earlier])?;
    let changed = scan::cummax(graph, changes, -1)?;
    let count = arithmetic::sub(graph, count, changed)?;
    let count = cast(graph, count, dtype)?;
    let share = graph.alu(Op::Div, &[g, count])?;
    let factors = cast(graph, stays, dtype)?;
    let total = recurrence(graph, Order::Backward, factors, share, -1)?;
    let zero = like(graph, total, 0.0);
    graph.alu(Op::Where, &[hits, total, zero])
}

/// Whether both are equal, or both nan.
fn same(graph: &mut Graph, a: NodeId, b: NodeId) -> Result<NodeId> {
    let equal = arithmetic::eq(graph, a, b)?;
    let (left, right) = (graph.alu(Op::CmpNe, &[a, a])?, graph.alu(Op::CmpNe, &[b, b])?);
    let nans = graph.alu(Op::And, &[left, right])?;
    graph.alu(Op::Or, &[equal, nans])
}

/// Shifts by one along the last axis, with `first` at the start. The last element is dropped, unless it already was.
fn shifted(graph: &mut Graph, x: NodeId, length: &Dim, first: f64) -> Result<NodeId> {
    let x = movement::narrow(graph, x, -1, 0, length.clone() - 1i64)?;
    let mut shape = graph.props(x).shape.clone();
    let mut offset: crate::Shape = std::iter::repeat_n(0.into(), shape.len()).collect();
    if let (Some(size), Some(start)) = (shape.last_mut(), offset.last_mut()) {
        *size = length.clone();
        *start = 1.into();
    }
    movement::pad(graph, x, &offset, &shape, first)
}
