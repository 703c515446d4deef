//! Reductions and what is built on them.

pub use super::argmax::{argmax, argmin};
use super::arithmetic::{add, div, mul, reverse_order, sub};
use super::elementwise::{exp, log, sqrt, square};
use super::{axes_of, axis_of, cast, dtype_of, in_wide, like, shape_of, to_float, with_squares};
use crate::{Arg, Axes, Builder, DType, Dim, NodeId, Op, Result, Shape};

/// A Reduce along axes, which are dropped unless `keepdim`.
pub(super) fn reduce(b: &mut dyn Builder, op: Op, x: NodeId, axes: &Axes, keepdim: bool) -> Result<NodeId> {
    if axes.is_empty() {
        return Ok(x);
    }
    let reduced = b.add(Op::Reduce, &[x], Arg::Reduce { op, axes: axes.clone() })?;
    if keepdim { Ok(reduced) } else { drop_axes(b, reduced, axes) }
}

fn drop_axes(b: &mut dyn Builder, x: NodeId, axes: &Axes) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let kept: Shape =
        (0..shape.len()).filter(|&axis| !axes.contains(&(axis as u32))).map(|axis| shape[axis].clone()).collect();
    super::movement::reshape(b, x, &kept)
}

/// Number of elements along `axes`, as a scalar of the dtype of `x`.
fn count(b: &mut dyn Builder, x: NodeId, axes: &Axes) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let count = axes.iter().fold(Dim::from(1), |product, &axis| product * shape[axis as usize].clone());
    let dtype = dtype_of(b, x);
    super::creation::size(b, &count, dtype)
}

/// Sum; small integers and bools in 32 bits, small floats in f32 and rounded once.
pub fn sum(b: &mut dyn Builder, x: NodeId, axes: Option<&[i64]>, keepdim: bool) -> Result<NodeId> {
    accumulate(b, "sum", Op::Add, x, axes, keepdim)
}

/// Product, accumulated as [`sum`].
pub fn prod(b: &mut dyn Builder, x: NodeId, axes: Option<&[i64]>, keepdim: bool) -> Result<NodeId> {
    accumulate(b, "prod", Op::Mul, x, axes, keepdim)
}

fn accumulate(
    b: &mut dyn Builder,
    name: &str,
    op: Op,
    x: NodeId,
    axes: Option<&[i64]>,
    keepdim: bool,
) -> Result<NodeId> {
    let axes = axes_of(name, axes, &shape_of(b, x))?;
    let dtype = dtype_of(b, x);
    let wide = cast(b, x, dtype.accumulator())?;
    let reduced = reduce(b, op, wide, &axes, keepdim)?;
    if dtype.is_float() { cast(b, reduced, dtype) } else { Ok(reduced) }
}

/// Greatest element; nan if there is one.
pub fn max(b: &mut dyn Builder, x: NodeId, axes: Option<&[i64]>, keepdim: bool) -> Result<NodeId> {
    let axes = axes_of("max", axes, &shape_of(b, x))?;
    reduce(b, Op::Max, x, &axes, keepdim)
}

/// Least element; nan if there is one.
pub fn min(b: &mut dyn Builder, x: NodeId, axes: Option<&[i64]>, keepdim: bool) -> Result<NodeId> {
    let axes = axes_of("min", axes, &shape_of(b, x))?;
    let reversed = reverse_order(b, x)?;
    let greatest = reduce(b, Op::Max, reversed, &axes, keepdim)?;
    reverse_order(b, greatest)
}

/// Is any element nonzero.
pub fn any(b: &mut dyn Builder, x: NodeId, axes: Option<&[i64]>, keepdim: bool) -> Result<NodeId> {
    let x = cast(b, x, DType::Bool)?;
    max(b, x, axes, keepdim)
}

/// Are all elements nonzero.
pub fn all(b: &mut dyn Builder, x: NodeId, axes: Option<&[i64]>, keepdim: bool) -> Result<NodeId> {
    let x = cast(b, x, DType::Bool)?;
    min(b, x, axes, keepdim)
}

/// Mean, in floats.
pub fn mean(b: &mut dyn Builder, x: NodeId, axes: Option<&[i64]>, keepdim: bool) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let dtype = dtype_of(b, x);
    let positions = axes_of("mean", axes, &shape_of(b, x))?;
    let wide = cast(b, x, dtype.accumulator())?;
    let total = reduce(b, Op::Add, wide, &positions, keepdim)?;
    let count = count(b, wide, &positions)?;
    let mean = div(b, total, count)?;
    cast(b, mean, dtype)
}

/// Variance with `correction` taken off the count (1: unbiased).
pub fn var(b: &mut dyn Builder, x: NodeId, axes: Option<&[i64]>, correction: i64, keepdim: bool) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let positions = axes_of("var", axes, &shape_of(b, x))?;
    in_wide(b, x, |b, x| wide_var(b, x, axes, &positions, Degrees { correction, least: 0 }, keepdim))
}

/// As [`var`] with Bessel's correction, but 0 of one element.
pub(super) fn sample_variance(b: &mut dyn Builder, x: NodeId, axes: &[i64]) -> Result<NodeId> {
    let positions = axes_of("var", Some(axes), &shape_of(b, x))?;
    wide_var(b, x, Some(axes), &positions, Degrees { correction: 1, least: 1 }, false)
}

/// The number of elements less `correction`, but not below `least`.
struct Degrees {
    correction: i64,
    least: i64,
}

fn wide_var(
    b: &mut dyn Builder,
    x: NodeId,
    axes: Option<&[i64]>,
    positions: &Axes,
    degrees: Degrees,
    keepdim: bool,
) -> Result<NodeId> {
    let center = mean(b, x, axes, true)?;
    let deviation = sub(b, x, center)?;
    let squared = square(b, deviation)?;
    let total = sum(b, squared, axes, keepdim)?;
    let (count, correction) = (count(b, x, positions)?, like(b, x, degrees.correction as f64));
    let corrected = sub(b, count, correction)?;
    let least = like(b, x, degrees.least as f64);
    let degrees = super::arithmetic::maximum(b, corrected, least)?;
    div(b, total, degrees)
}

/// Square root of [`var`], also where that itself is too large or too small for the dtype; where all elements are equal it has
/// slope 0.
pub fn std(b: &mut dyn Builder, x: NodeId, axes: Option<&[i64]>, correction: i64, keepdim: bool) -> Result<NodeId> {
    with_squares(b, x, |b, x| {
        let variance = var(b, x, axes, correction, keepdim)?;
        super::distance::root(b, variance, sqrt)
    })
}

/// `x - max(x)`, the shift that keeps exponentials from overflowing; the maximum carries no gradient.
fn shifted(b: &mut dyn Builder, x: NodeId, axes: Option<&[i64]>) -> Result<(NodeId, NodeId)> {
    let x = to_float(b, x)?;
    let greatest = max(b, x, axes, true)?;
    let greatest = b.alu(Op::Detach, &[greatest])?;
    Ok((sub(b, x, greatest)?, greatest))
}

/// `log(sum(e^x))`; -inf of nothing but -inf, with slope 0.
pub fn logsumexp(b: &mut dyn Builder, x: NodeId, axes: Option<&[i64]>, keepdim: bool) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let positions = axes_of("logsumexp", axes, &shape_of(b, x))?;
    let result = in_wide(b, x, |b, x| wide_logsumexp(b, x, axes))?;
    if keepdim { Ok(result) } else { drop_axes(b, result, &positions) }
}

fn wide_logsumexp(b: &mut dyn Builder, x: NodeId, axes: Option<&[i64]>) -> Result<NodeId> {
    let Powers { shift, total, nonzero, .. } = powers(b, x, axes)?;
    let log = log(b, total)?;
    let sum = add(b, log, shift)?;
    let lowest = like(b, x, f64::NEG_INFINITY);
    b.alu(Op::Where, &[nonzero, sum, lowest])
}

/// `e^(x - shift)`, and what they add up to; 1 where that is 0.
struct Powers {
    shift: NodeId,
    powers: NodeId,
    total: NodeId,
    nonzero: NodeId,
}

fn powers(b: &mut dyn Builder, x: NodeId, axes: Option<&[i64]>) -> Result<Powers> {
    let greatest = max(b, x, axes, true)?;
    let greatest = b.alu(Op::Detach, &[greatest])?;
    // An infinity less itself is nan: then there is no shift.
    let (zero, one) = (like(b, x, 0.0), like(b, x, 1.0));
    let infinite = super::elementwise::isinf(b, greatest)?;
    let shift = b.alu(Op::Where, &[infinite, zero, greatest])?;
    let shifted = sub(b, x, shift)?;
    let powers = exp(b, shifted)?;
    let total = sum(b, powers, axes, true)?;
    let nonzero = b.alu(Op::CmpNe, &[total, zero])?;
    let total = b.alu(Op::Where, &[nonzero, total, one])?;
    Ok(Powers { shift, powers, total, nonzero })
}

/// [`softmax`] along the last axis, where a row of nothing but -inf has no weights, rather than none that is a number.
pub(super) fn weights(b: &mut dyn Builder, scores: NodeId) -> Result<NodeId> {
    in_wide(b, scores, |b, scores| {
        let Powers { powers, total, .. } = powers(b, scores, Some(&[-1]))?;
        div(b, powers, total)
    })
}

/// `e^x / sum(e^x)` along an axis.
pub fn softmax(b: &mut dyn Builder, x: NodeId, axis: i64) -> Result<NodeId> {
    if let Some(result) = super::in_row(b, x, axis, |b, x| softmax(b, x, 0)) {
        return result;
    }
    axis_of("softmax", axis, &shape_of(b, x))?;
    in_wide(b, x, |b, x| {
        let (shifted, _) = shifted(b, x, Some(&[axis]))?;
        let powers = exp(b, shifted)?;
        let total = sum(b, powers, Some(&[axis]), true)?;
        // One quotient a row: its elements are only multiplied.
        let share = super::elementwise::reciprocal(b, total)?;
        mul(b, powers, share)
    })
}

/// Softmax of `-x`.
pub fn softmin(b: &mut dyn Builder, x: NodeId, axis: i64) -> Result<NodeId> {
    let minus = super::arithmetic::neg(b, x)?;
    softmax(b, minus, axis).map_err(|error| error.in_op("softmin"))
}

/// `x - log(sum(e^x))` along an axis.
pub fn log_softmax(b: &mut dyn Builder, x: NodeId, axis: i64) -> Result<NodeId> {
    if let Some(result) = super::in_row(b, x, axis, |b, x| log_softmax(b, x, 0)) {
        return result;
    }
    axis_of("log_softmax", axis, &shape_of(b, x))?;
    in_wide(b, x, |b, x| {
        let (shifted, _) = shifted(b, x, Some(&[axis]))?;
        let powers = exp(b, shifted)?;
        let total = sum(b, powers, Some(&[axis]), true)?;
        let log = log(b, total)?;
        sub(b, shifted, log)
    })
}
