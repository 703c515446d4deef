//! Norms, distances and angles between vectors.

use super::arithmetic::{div, maximum, mul, sub};
use super::elementwise::{abs, reciprocal, square};
use super::movement::{roll, unsqueeze};
use super::{axis_of, common, given, in_wide, in_wide_of, like, reduce, shape_of, with_squares};
use crate::dim::show;
use crate::{Builder, Dim, Error, ErrorKind, NodeId, Op, Result};

/// `(Σ |x|^p)^(1/p)`; with `p` 0 the number of elements that are not 0, with an infinity the greatest or least magnitude.
/// At 0 its slope is 0.
pub fn norm(b: &mut dyn Builder, x: NodeId, p: f64, axes: Option<&[i64]>, keepdim: bool) -> Result<NodeId> {
    if p.is_nan() {
        return Err(Error::new(ErrorKind::Value, "norm", "there is no NaN norm")
            .help("2.0 is the Euclidean one, infinity the greatest"));
    }
    in_wide(b, x, |b, x| wide_norm(b, x, p, axes, keepdim)).map_err(|error| error.in_op("norm"))
}

fn wide_norm(b: &mut dyn Builder, x: NodeId, p: f64, axes: Option<&[i64]>, keepdim: bool) -> Result<NodeId> {
    let (zero, one) = (like(b, x, 0.0), like(b, x, 1.0));
    if p == 2.0 {
        let squares = square(b, x)?;
        let total = reduce::sum(b, squares, axes, keepdim)?;
        return root(b, total, |b, total| b.alu(Op::Sqrt, &[total]));
    }
    let magnitude = abs(b, x)?;
    match p {
        1.0 => reduce::sum(b, magnitude, axes, keepdim),
        f64::INFINITY => reduce::max(b, magnitude, axes, keepdim),
        f64::NEG_INFINITY => reduce::min(b, magnitude, axes, keepdim),
        0.0 => {
            let is_zero = super::arithmetic::eq(b, x, zero)?;
            let counted = b.alu(Op::Where, &[is_zero, zero, one])?;
            reduce::sum(b, counted, axes, keepdim)
        }
        _ => {
            let is_zero = super::arithmetic::eq(b, magnitude, zero)?;
            let safe = b.alu(Op::Where, &[is_zero, one, magnitude])?;
            let power = super::elementwise::pow_const(b, safe, p)?;
            let none = like(b, x, if p > 0.0 { 0.0 } else { f64::INFINITY });
            let powers = b.alu(Op::Where, &[is_zero, none, power])?;
            let total = reduce::sum(b, powers, axes, keepdim)?;
            root(b, total, |b, total| super::elementwise::pow_const(b, total, 1.0 / p))
        }
    }
}

/// `root` of nonzero numbers; 0 with slope 0 at 0.
pub(super) fn root(
    b: &mut dyn Builder,
    total: NodeId,
    root: impl FnOnce(&mut dyn Builder, NodeId) -> Result<NodeId>,
) -> Result<NodeId> {
    let (zero, one) = (like(b, total, 0.0), like(b, total, 1.0));
    let none = super::arithmetic::eq(b, total, zero)?;
    let safe = b.alu(Op::Where, &[none, one, total])?;
    let value = root(b, safe)?;
    b.alu(Op::Where, &[none, zero, value])
}

/// `x` over its `p`-norm along an axis, or over `eps` where the norm is less; also where the norm itself is too large or too
/// small for the dtype.
pub fn normalize(b: &mut dyn Builder, x: NodeId, p: f64, axis: i64, eps: f64) -> Result<NodeId> {
    with_squares(b, x, |b, x| {
        let length = norm(b, x, p, Some(&[axis]), true).map_err(|error| error.in_op("normalize"))?;
        let least = given(b, length, eps);
        let length = maximum(b, length, least)?;
        // One quotient a row: its elements are only multiplied.
        let share = reciprocal(b, length)?;
        mul(b, x, share)
    })
}

/// The cosine of the angle between vectors along an axis; norms count as at least `eps`.
pub fn cosine_similarity(b: &mut dyn Builder, x: NodeId, other: NodeId, axis: i64, eps: f64) -> Result<NodeId> {
    let in_op = |error: Error| error.in_op("cosine_similarity");
    in_wide_of(b, "cosine_similarity", [x, other], |b, [x, other]| {
        let products = mul(b, x, other).map_err(in_op)?;
        let dot = reduce::sum(b, products, Some(&[axis]), false).map_err(in_op)?;
        let (left, right) = (
            norm(b, x, 2.0, Some(&[axis]), false).map_err(in_op)?,
            norm(b, other, 2.0, Some(&[axis]), false).map_err(in_op)?,
        );
        let (left_least, right_least) = (given(b, left, eps), given(b, right, eps));
        let (left, right) = (maximum(b, left, left_least)?, maximum(b, right, right_least)?);
        let lengths = mul(b, left, right)?;
        div(b, dot, lengths)
    })
}

/// The `p`-distance of each row of `x` (second axis from the end) to each of `other`.
pub fn cdist(b: &mut dyn Builder, x: NodeId, other: NodeId, p: f64) -> Result<NodeId> {
    let (left, right) = (shape_of(b, x), shape_of(b, other));
    if left.len() < 2 || right.len() < 2 || left.last() != right.last() {
        let message = format!("rows of {} and of {}", show(&left), show(&right));
        return Err(Error::new(ErrorKind::Shape, "cdist", message).help("(…, rows, width) both, and rows of one width"));
    }
    in_wide_of(b, "cdist", [x, other], |b, [x, other]| {
        let (x, other) = (unsqueeze(b, x, -2)?, unsqueeze(b, other, -3)?);
        let difference = sub(b, x, other)?;
        norm(b, difference, p, Some(&[-1]), false)
    })
    .map_err(|error| error.in_op("cdist"))
}

/// The vector product of vectors of three elements along an axis.
pub fn cross(b: &mut dyn Builder, x: NodeId, other: NodeId, axis: i64) -> Result<NodeId> {
    for shape in [shape_of(b, x), shape_of(b, other)] {
        let length = &shape[axis_of("cross", axis, &shape)?];
        if *length != Dim::from(3) {
            let message = format!("axis {axis} of {} has {length} elements", show(&shape));
            return Err(Error::new(ErrorKind::Shape, "cross", message).help("vectors of 3 elements have a product"));
        }
    }
    let product = |b: &mut dyn Builder, [x, other]: [NodeId; 2]| {
        let (x1, x2) = (roll(b, x, &[-1], &[axis])?, roll(b, x, &[-2], &[axis])?);
        let (y1, y2) = (roll(b, other, &[-1], &[axis])?, roll(b, other, &[-2], &[axis])?);
        let (left, right) = (mul(b, x1, y2)?, mul(b, x2, y1)?);
        sub(b, left, right)
    };
    let product = match common(b, "cross", &[x, other])?.is_float() {
        true => in_wide_of(b, "cross", [x, other], product),
        false => product(b, [x, other]),
    };
    product.map_err(|error| error.in_op("cross"))
}
