//! How variables go together, moments in pairs, sets of numbers.

use super::arithmetic::{div, eq, mul, sub};
use super::elementwise::{isnan, scale_given, shift_given, sqrt};
use super::movement::{diagonal, unsqueeze};
use super::{axis_of, dtype_of, given, in_wide, in_wide_of, like, reduce, shape_of};
use crate::dim::show;
use crate::{Builder, Const, DType, Error, ErrorKind, NodeId, Op, Result};

/// The covariance of the variables that the rows of a matrix are: each column is an observation. `correction` is taken
/// off their number.
pub fn cov(b: &mut dyn Builder, x: NodeId, correction: i64) -> Result<NodeId> {
    const OP: &str = "cov";
    let shape = shape_of(b, x);
    if !(1..=2).contains(&shape.len()) {
        let message = format!("needs rows of observations, found {}", show(&shape));
        return Err(Error::new(ErrorKind::Rank, OP, message).help("(variables, observations), or one variable"));
    }
    in_wide(b, x, |b, x| {
        let is_vector = shape.len() == 1;
        let x = if is_vector { unsqueeze(b, x, 0)? } else { x };
        let center = reduce::mean(b, x, Some(&[1]), true)?;
        let deviation = sub(b, x, center)?;
        let turned = super::movement::transpose(b, deviation, 0, 1)?;
        let total = super::matmul::matmul(b, deviation, turned)?;
        let length = shape[shape.len() - 1].clone();
        let dtype = dtype_of(b, total);
        let count = super::creation::size(b, &(length - crate::Dim::from(correction)), dtype)?;
        let covariance = div(b, total, count)?;
        if is_vector { super::movement::reshape(b, covariance, &[]) } else { Ok(covariance) }
    })
}

/// The correlation of the variables that the rows of a matrix are.
pub fn corrcoef(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let covariance = cov(b, x, 1).map_err(|error| error.in_op("corrcoef"))?;
        if shape_of(b, covariance).is_empty() {
            return div(b, covariance, covariance);
        }
        let variances = diagonal(b, covariance, 0)?;
        let deviations = sqrt(b, variances)?;
        let column = unsqueeze(b, deviations, -1)?;
        let quotient = div(b, covariance, column)?;
        let quotient = div(b, quotient, deviations)?;
        super::elementwise::clip(b, quotient, -1.0, 1.0)
    })
}

/// Variance and mean along axes.
pub fn var_mean(
    b: &mut dyn Builder,
    x: NodeId,
    axes: Option<&[i64]>,
    correction: i64,
    keepdim: bool,
) -> Result<Vec<NodeId>> {
    let in_op = |error: Error| error.in_op("var_mean");
    Ok(vec![
        reduce::var(b, x, axes, correction, keepdim).map_err(in_op)?,
        reduce::mean(b, x, axes, keepdim).map_err(in_op)?,
    ])
}

/// Standard deviation and mean along axes.
pub fn std_mean(
    b: &mut dyn Builder,
    x: NodeId,
    axes: Option<&[i64]>,
    correction: i64,
    keepdim: bool,
) -> Result<Vec<NodeId>> {
    let in_op = |error: Error| error.in_op("std_mean");
    Ok(vec![
        reduce::std(b, x, axes, correction, keepdim).map_err(in_op)?,
        reduce::mean(b, x, axes, keepdim).map_err(in_op)?,
    ])
}

/// Least and greatest elements along axes.
pub fn aminmax(b: &mut dyn Builder, x: NodeId, axes: Option<&[i64]>, keepdim: bool) -> Result<Vec<NodeId>> {
    let in_op = |error: Error| error.in_op("aminmax");
    Ok(vec![reduce::min(b, x, axes, keepdim).map_err(in_op)?, reduce::max(b, x, axes, keepdim).map_err(in_op)?])
}

/// The middle one of the numbers of an axis in order, the lower one of two; nan is not among them.
pub fn nanmedian(b: &mut dyn Builder, x: NodeId, axis: i64, keepdim: bool) -> Result<NodeId> {
    const OP: &str = "nanmedian";
    let shape = shape_of(b, x);
    let position = axis_of(OP, axis, &shape)?;
    if !dtype_of(b, x).is_float() {
        return super::statistics::median(b, x, axis, keepdim).map_err(|error| error.in_op(OP));
    }
    let missing = isnan(b, x)?;
    let number = super::arithmetic::logical_not(b, missing)?;
    let count = reduce::sum(b, number, Some(&[axis]), true)?;
    let (one, two) = (b.constant(Const::int(DType::I32, 1)), b.constant(Const::int(DType::I32, 2)));
    let last = sub(b, count, one)?;
    let place = b.alu(Op::Idiv, &[last, two])?;
    let value = if super::selection::is_cheaper(b, x, position, 1) {
        super::selection::nth_element(b, x, axis, place)?
    } else {
        let sorted = super::sort::sort(b, x, axis, false).map_err(|error| error.in_op(OP))?[0];
        super::index::gather(b, sorted, place, axis)?
    };
    let (none, nan) = (b.alu(Op::CmpLt, &[count, one])?, like(b, x, f64::NAN));
    let value = b.alu(Op::Where, &[none, nan, value])?;
    if keepdim { Ok(value) } else { super::movement::squeeze(b, value, Some(&[axis])) }
}

/// Sums of trapezes `dx` apart, up to each element after the first one of an axis.
pub fn cumulative_trapezoid(b: &mut dyn Builder, x: NodeId, dx: f64, axis: i64) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let sums = super::statistics::of_neighbours(b, "cumulative_trapezoid", x, axis)?;
        let areas = scale_given(b, sums, dx / 2.0)?;
        super::scan::cumsum(b, areas, axis)
    })
}

/// Which part between ascending `bounds` each element is in (i32): the one before what equals it, or after if `right`.
pub fn bucketize(b: &mut dyn Builder, x: NodeId, bounds: NodeId, right: bool) -> Result<NodeId> {
    super::statistics::searchsorted(b, bounds, x, right).map_err(|error| error.in_op("bucketize"))
}

/// Is each element among `values`.
pub fn isin(b: &mut dyn Builder, x: NodeId, values: NodeId) -> Result<NodeId> {
    let (x, values) = super::promote(b, "isin", x, values)?;
    let values = super::movement::flatten(b, values, 0, -1)?;
    if super::selection::are_sorted_first(b, x, values) {
        return super::selection::is_among(b, x, values);
    }
    let x = unsqueeze(b, x, -1)?;
    let same = eq(b, x, values)?;
    reduce::any(b, same, Some(&[-1]), false)
}

/// Vectors along `axis` made at most `bound` long by the `p`-norm: each position of it is a vector over the other axes.
pub fn renorm(b: &mut dyn Builder, x: NodeId, p: f64, axis: i64, bound: f64) -> Result<NodeId> {
    const OP: &str = "renorm";
    let shape = shape_of(b, x);
    let kept = axis_of(OP, axis, &shape)?;
    let others: Vec<i64> = (0..shape.len()).filter(|&other| other != kept).map(|other| other as i64).collect();
    in_wide(b, x, |b, x| {
        let length = super::distance::norm(b, x, p, Some(&others), true).map_err(|error| error.in_op(OP))?;
        let (most, one) = (given(b, length, bound), like(b, length, 1.0));
        let is_long = b.alu(Op::CmpLt, &[most, length])?;
        let divisor = b.alu(Op::Where, &[is_long, length, one])?;
        let share = div(b, most, divisor)?;
        let share = b.alu(Op::Where, &[is_long, share, one])?;
        mul(b, x, share)
    })
}

/// The `p`-norm of `x - other + eps` along the last axis.
pub fn pairwise_distance(b: &mut dyn Builder, x: NodeId, other: NodeId, p: f64, eps: f64) -> Result<NodeId> {
    let in_op = |error: Error| error.in_op("pairwise_distance");
    in_wide_of(b, "pairwise_distance", [x, other], |b, [x, other]| {
        let difference = sub(b, x, other).map_err(in_op)?;
        let difference = shift_given(b, difference, eps)?;
        super::distance::norm(b, difference, p, Some(&[-1]), false).map_err(in_op)
    })
}
