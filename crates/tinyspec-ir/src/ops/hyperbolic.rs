//! Hyperbolic functions, and the exponentials that cancel when written plainly: `e^x - 1` and `log(1 + e^x)`.
//!
//! Gradients go through the compositions, so no branch may be infinite where another one is taken: 0 times an infinity
//! is nan.

use super::elementwise::{scale, shift, square};
use super::{in_wide, inverse, like};
use crate::{Builder, NodeId, Op, Result};
use std::f64::consts::LOG2_E;

/// `[0 < x]`.
pub(super) fn is_positive(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let zero = like(b, x, 0.0);
    b.alu(Op::CmpLt, &[zero, x])
}

/// `-|x|`, with slope 1 at 0.
pub(super) fn minus_magnitude(b: &mut dyn Builder, x: NodeId, positive: NodeId) -> Result<NodeId> {
    let minus = scale(b, x, -1.0)?;
    b.alu(Op::Where, &[positive, minus, x])
}

/// Where a series stands in.
struct Near {
    /// `[|x| < bound]`
    holds: NodeId,
    /// `x` there, else 0.
    x: NodeId,
}

impl Near {
    fn of(b: &mut dyn Builder, x: NodeId, bound: f64) -> Result<Near> {
        let squared = square(b, x)?;
        let (bound, zero) = (like(b, x, bound * bound), like(b, x, 0.0));
        let holds = b.alu(Op::CmpLt, &[squared, bound])?;
        Ok(Near { holds, x: b.alu(Op::Where, &[holds, x, zero])? })
    }
}

/// `e^2x - 1`: near 0, where the difference would cancel, `2 e^x sinh x`.
pub(super) fn expm1_of_double(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let scaled = scale(b, x, LOG2_E)?;
    let root = b.alu(Op::Exp2, &[scaled])?;
    let power = square(b, root)?;
    let far = shift(b, power, -1.0)?;
    let near = Near::of(b, x, 0.5)?;
    let sine = inverse::small_sinh(b, near.x, 2.0)?;
    let value = b.alu(Op::Mul, &[sine, root])?;
    b.alu(Op::Where, &[near.holds, value, far])
}

/// `log(1 + e^x)` of what is not positive, as `2 atanh(e^x / (2 + e^x))`.
pub(super) fn log1p_exp(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let scaled = scale(b, x, LOG2_E)?;
    let power = b.alu(Op::Exp2, &[scaled])?;
    let sum = shift(b, power, 2.0)?;
    let ratio = b.alu(Op::Div, &[power, sum])?;
    let half = inverse::small_atanh(b, ratio)?;
    scale(b, half, 2.0)
}

/// The rounded result is 1 in f64 for arguments from here on.
const TANH_IS_ONE: f64 = 22.0;

/// The argument of the hyperbolic tangent in its parts.
struct Parts {
    positive: NodeId,
    /// `-|x|`, no further from 0 than where the tangent rounds to ±1 in every dtype.
    minus: NodeId,
    /// Whether `x` is further from 0 than that.
    is_beyond: NodeId,
}

fn parts(b: &mut dyn Builder, x: NodeId) -> Result<Parts> {
    let positive = is_positive(b, x)?;
    let (minus, is_beyond) = bounded_minus_magnitude(b, x, positive, -TANH_IS_ONE)?;
    Ok(Parts { positive, minus, is_beyond })
}

/// `-|x|`, but not below `bound`, and whether it would be.
pub(super) fn bounded_minus_magnitude(
    b: &mut dyn Builder,
    x: NodeId,
    positive: NodeId,
    bound: f64,
) -> Result<(NodeId, NodeId)> {
    let minus = minus_magnitude(b, x, positive)?;
    let bound = like(b, x, bound);
    let is_beyond = b.alu(Op::CmpLt, &[minus, bound])?;
    Ok((b.alu(Op::Where, &[is_beyond, bound, minus])?, is_beyond))
}

/// Hyperbolic tangent: `t / (t + 2)` with `t = e^(-2|x|) - 1`, and the sign of `x`.
pub fn tanh(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let Parts { positive, minus, .. } = parts(b, x)?;
        let rest = expm1_of_double(b, minus)?;
        let sum = shift(b, rest, 2.0)?;
        let ratio = b.alu(Op::Div, &[rest, sum])?;
        minus_magnitude(b, ratio, positive)
    })
}

/// The slope of [`tanh`], `1 / cosh²`, by the power that both share: `1 - tanh²` would cancel where the tangent is near ±1.
///
/// Where the tangent rounds to ±1 the slope, less than an ulp of it, counts as 0: otherwise it would become subnormal, and products
/// with it slow.
pub(super) fn tanh_slope(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let Parts { minus, is_beyond, .. } = parts(b, x)?;
    let scaled = scale(b, minus, LOG2_E)?;
    let root = b.alu(Op::Exp2, &[scaled])?;
    let power = square(b, root)?;
    let sum = shift(b, power, 1.0)?;
    let twice = scale(b, root, 2.0)?;
    let inverse = b.alu(Op::Div, &[twice, sum])?;
    let slope = square(b, inverse)?;
    let zero = like(b, x, 0.0);
    b.alu(Op::Where, &[is_beyond, zero, slope])
}

/// `e^x / 2` and `e^-x / 2`, from their roots: the sum of both may be finite where `e^x` is not.
fn half_powers(b: &mut dyn Builder, x: NodeId) -> Result<(NodeId, NodeId)> {
    let mut half_power = |factor: f64| {
        let scaled = scale(b, x, factor)?;
        let root = b.alu(Op::Exp2, &[scaled])?;
        let half = scale(b, root, 0.5)?;
        b.alu(Op::Mul, &[half, root])
    };
    Ok((half_power(0.5 * LOG2_E)?, half_power(-0.5 * LOG2_E)?))
}

/// Hyperbolic sine, by its series near 0, where the difference would cancel.
pub fn sinh(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let (up, down) = half_powers(b, x)?;
        let minus = scale(b, down, -1.0)?;
        let far = b.alu(Op::Add, &[up, minus])?;
        let near = Near::of(b, x, 0.5)?;
        let value = inverse::small_sinh(b, near.x, 1.0)?;
        b.alu(Op::Where, &[near.holds, value, far])
    })
}

/// Hyperbolic cosine.
pub fn cosh(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let (up, down) = half_powers(b, x)?;
        b.alu(Op::Add, &[up, down])
    })
}
