//! Running Reduces: of each element and all before it along an axis.
//!
//! They are written as Reduces over windows, `Σr [r <= i] · x(r)`, which the lowering carries from place to place.

use super::arithmetic::{add, eq, reverse_order, sub};
use super::elementwise::{exp, isinf, log};
use super::movement::{expand, narrow, reshape, transpose};
use super::recurrence::{Order, longest, recurrence};
use super::reduce::{logsumexp, reduce};
use super::{axis_of, cast, dtype_of, in_wide, like, shape_of, to_float};
use crate::{Arg, Axes, Builder, Dim, Graph, NodeId, Op, Result};
use smallvec::SmallVec;

/// The windows of a prefix: a new last axis holds, for each element, itself and what precedes it, else `fill`.
fn prefixes(b: &mut dyn Builder, op: &str, x: NodeId, axis: i64, fill: f64) -> Result<NodeId> {
    let position = axis_of(op, axis, &shape_of(b, x))?;
    let moved = transpose(b, x, position as i64, -1)?;
    windows(b, moved, fill)
}

/// [`prefixes`] along the last axis.
fn windows(b: &mut dyn Builder, x: NodeId, fill: f64) -> Result<NodeId> {
    let mut wide = shape_of(b, x);
    let last = wide.len() - 1;
    let length = wide[last].clone();
    wide.insert(last, Dim::from(1));
    let windows = reshape(b, x, &wide)?;
    let row = super::creation::arange_dim(b, &length, crate::DType::I32)?;
    let column = reshape(b, row, &[length, Dim::from(1)])?;
    let inside = super::arithmetic::le(b, row, column)?;
    let fill = like(b, x, fill);
    b.alu(Op::Where, &[inside, windows, fill])
}

fn scan(b: &mut dyn Builder, name: &str, op: Op, x: NodeId, axis: i64) -> Result<NodeId> {
    if let Some(result) = super::in_row(b, x, axis, |b, x| scan(b, name, op, x, 0)) {
        return result;
    }
    let position = axis_of(name, axis, &shape_of(b, x))?;
    let dtype = dtype_of(b, x);
    let x = if op == Op::Max { x } else { cast(b, x, dtype.accumulator())? };
    let windows = prefixes(b, name, x, axis, fill(op))?;
    let last = shape_of(b, windows).len() - 1;
    let scanned = reduce(b, op, windows, &Axes::from_iter([last as u32]), false)?;
    let scanned = transpose(b, scanned, position as i64, -1)?;
    if dtype.is_float() { cast(b, scanned, dtype) } else { Ok(scanned) }
}

/// The fill outside of a window.
fn fill(op: Op) -> f64 {
    match op {
        Op::Max => f64::NEG_INFINITY,
        Op::Mul => 1.0,
        _ => 0.0,
    }
}

/// The operand of a running Reduce by `op` along the last axis of `x`.
pub fn terms(b: &mut dyn Builder, op: Op, x: NodeId) -> Result<NodeId> {
    windows(b, x, fill(op))
}

/// The `x` of a running Reduce, if the node is one: it runs along the last axis.
pub fn scanned(graph: &mut Graph, node: NodeId) -> Option<NodeId> {
    let (Op::Reduce, &Arg::Reduce { op, .. }) = (graph.op(node), graph.arg(node)) else { return None };
    let &[value] = graph.sources(node) else { return None };
    let &[_, wide, _] = graph.sources(value) else { return None };
    let &[x, _] = graph.sources(wide) else { return None };
    let is_window = graph.op(value) == Op::Where && graph.op(wide) == Op::Reshape && graph.props(x).rank() > 0;
    if !is_window {
        return None;
    }
    let again = windows(graph, x, fill(op)).ok()?;
    graph.is_equal(again, value).then_some(x)
}

/// The windows of the specification's prefix sum, by its trick of repeating and reshaping: row i ends with the elements of
/// the vector up to number i, after zeros.
pub(super) fn tiles(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let n = shape_of(b, x)[0].clone();
    let wide = n.clone() * Dim::from(2) - Dim::from(1);
    let (offset, shape) = (b.shape(&[n.clone() - Dim::from(1)])?, b.shape(std::slice::from_ref(&wide))?);
    let padded = b.alu(Op::Pad, &[x, offset, shape])?;
    let row = reshape(b, padded, &[Dim::from(1), wide.clone()])?;
    let tiled = expand(b, row, &[n.clone() + Dim::from(1), wide.clone()])?;
    let flat = reshape(b, tiled, &[(n.clone() + Dim::from(1)) * wide])?;
    let (offset, shape) = (b.shape(&[Dim::from(0)])?, b.shape(&[n.clone() * n.clone() * Dim::from(2)])?);
    let trimmed = b.alu(Op::Shrink, &[flat, offset, shape])?;
    let windows = reshape(b, trimmed, &[n.clone(), n.clone() * Dim::from(2)])?;
    let (offset, shape) = (b.shape(&[Dim::from(0), Dim::from(0)])?, b.shape(&[n.clone(), n])?);
    b.alu(Op::Shrink, &[windows, offset, shape])
}

/// The vector that a Reduce is the specification's prefix sum of, and the views of it that lie between.
pub fn tiled(graph: &mut Graph, node: NodeId) -> Option<(NodeId, SmallVec<[NodeId; 7]>)> {
    const VIEWS: [Op; 7] = [Op::Shrink, Op::Reshape, Op::Shrink, Op::Reshape, Op::Expand, Op::Reshape, Op::Pad];
    let is_sum = matches!(graph.arg(node), Arg::Reduce { op: Op::Add, axes } if axes[..] == [1]);
    let &[windows] = graph.sources(node) else { return None };
    let (mut x, mut between) = (windows, SmallVec::new());
    for op in VIEWS {
        if !is_sum || graph.op(x) != op {
            return None;
        }
        between.push(x);
        x = graph.source(x, 0);
    }
    let again = if graph.props(x).rank() == 1 { tiles(graph, x).ok()? } else { return None };
    graph.is_equal(again, windows).then_some((x, between))
}

/// Running sum.
pub fn cumsum(b: &mut dyn Builder, x: NodeId, axis: i64) -> Result<NodeId> {
    scan(b, "cumsum", Op::Add, x, axis)
}

/// Running product.
pub fn cumprod(b: &mut dyn Builder, x: NodeId, axis: i64) -> Result<NodeId> {
    scan(b, "cumprod", Op::Mul, x, axis)
}

/// Running maximum.
pub fn cummax(b: &mut dyn Builder, x: NodeId, axis: i64) -> Result<NodeId> {
    scan(b, "cummax", Op::Max, x, axis)
}

/// Running minimum.
pub fn cummin(b: &mut dyn Builder, x: NodeId, axis: i64) -> Result<NodeId> {
    let reversed = reverse_order(b, x)?;
    let scanned = cummax(b, reversed, axis).map_err(|error| error.in_op("cummin"))?;
    reverse_order(b, scanned)
}

/// Running `log(sum(e^x))`; -inf of nothing but -inf, with slope 0.
pub fn logcumsumexp(b: &mut dyn Builder, x: NodeId, axis: i64) -> Result<NodeId> {
    if let Some(result) = super::in_row(b, x, axis, |b, x| logcumsumexp(b, x, 0)) {
        return result;
    }
    let position = axis_of("logcumsumexp", axis, &shape_of(b, x))?;
    let x = to_float(b, x)?;
    let length = shape_of(b, x)[position].clone();
    if longest(&length).is_some() {
        return in_wide(b, x, |b, x| rescaled(b, x, position as i64, &length));
    }
    let windows = prefixes(b, "logcumsumexp", x, axis, f64::NEG_INFINITY)?;
    let logs = logsumexp(b, windows, Some(&[-1]), false)?;
    transpose(b, logs, position as i64, -1)
}

/// The sum so far is in units of the greatest power so far, `e^m`: `s(i) = e^(x(i) - m(i)) + e^(m(i-1) - m(i)) · s(i-1)`.
fn rescaled(b: &mut dyn Builder, x: NodeId, axis: i64, length: &Dim) -> Result<NodeId> {
    let greatest = cummax(b, x, axis)?;
    let greatest = b.alu(Op::Detach, &[greatest])?;
    // An infinity less itself is nan: then the unit is 1.
    let (zero, one, lowest) = (like(b, x, 0.0), like(b, x, 1.0), like(b, x, f64::NEG_INFINITY));
    let infinite = isinf(b, greatest)?;
    let shift = b.alu(Op::Where, &[infinite, zero, greatest])?;
    let shifted = sub(b, x, shift)?;
    let powers = exp(b, shifted)?;
    let total = if length.bounds().1 > 1 {
        let (before, after) =
            (narrow(b, greatest, axis, 0, length - 1i64)?, narrow(b, greatest, axis, 1, length - 1i64)?);
        let change = sub(b, before, after)?;
        let same = eq(b, before, after)?;
        let change = b.alu(Op::Where, &[same, zero, change])?;
        let factors = exp(b, change)?;
        recurrence(b, Order::Forward, factors, powers, axis)?
    } else {
        powers
    };
    let nonzero = b.alu(Op::CmpNe, &[total, zero])?;
    let total = b.alu(Op::Where, &[nonzero, total, one])?;
    let log = log(b, total)?;
    let sum = add(b, log, shift)?;
    b.alu(Op::Where, &[nonzero, sum, lowest])
}
