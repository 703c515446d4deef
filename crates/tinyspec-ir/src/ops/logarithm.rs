//! Logarithms and exponentials that would cancel if they were written plainly, and angles.

use super::arithmetic::{copysign_of, sub};
use super::elementwise::{abs, isnan, log, scale, shift};
use super::{Bounded, in_wide, in_wide_of, inverse, like};
use crate::{Builder, NodeId, Op, Result};
use std::f64::consts::{FRAC_PI_2, LOG2_10, PI};

/// `log(1 + x)`, exact near 0: there it is `2 atanh(x / (2 + x))`.
pub fn log1p(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let (bound, zero) = (like(b, x, 0.5), like(b, x, 0.0));
        let magnitude = abs(b, x)?;
        let is_near = b.alu(Op::CmpLt, &[magnitude, bound])?;
        let near = b.alu(Op::Where, &[is_near, x, zero])?;
        let sum = shift(b, near, 2.0)?;
        let ratio = b.alu(Op::Div, &[near, sum])?;
        let half = inverse::small_atanh(b, ratio)?;
        let near = scale(b, half, 2.0)?;
        let far = b.alu(Op::Where, &[is_near, zero, x])?;
        let sum = shift(b, far, 1.0)?;
        let far = log(b, sum)?;
        b.alu(Op::Where, &[is_near, near, far])
    })
}

/// `e^x - 1`, exact near 0.
pub fn expm1(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let half = scale(b, x, 0.5)?;
        super::hyperbolic::expm1_of_double(b, half)
    })
}

/// `10 ^ x`.
pub fn exp10(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let scaled = scale(b, x, LOG2_10)?;
        b.alu(Op::Exp2, &[scaled])
    })
}

/// `log(x / (1 - x))`, the inverse of the sigmoid, of `x` within `eps` and `1 - eps`.
pub fn logit(b: &mut dyn Builder, x: NodeId, eps: f64) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let x = if eps > 0.0 { super::elementwise::clip(b, x, eps, 1.0 - eps)? } else { x };
        let (zero, half, one) = (like(b, x, 0.0), like(b, x, 0.5), like(b, x, 1.0));
        let rest = sub(b, one, x)?;
        // Not positive unless the argument is between 0 and 1.
        let least = super::arithmetic::minimum(b, x, rest)?;
        let bounded = Bounded::below(b, zero, least)?;
        let inner = b.alu(Op::Where, &[bounded.inside, x, half])?;
        let rest = sub(b, one, inner)?;
        let odds = b.alu(Op::Div, &[inner, rest])?;
        let value = log(b, odds)?;
        let doubled = scale(b, x, 2.0)?;
        let signed = shift(b, doubled, -1.0)?;
        bounded.finish(b, value, signed)
    })
}

/// `x log(y)`, which is 0 where `x` is 0.
pub fn xlogy(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    in_wide_of(b, "xlogy", [x, y], |b, [x, y]| {
        let (zero, one) = (like(b, x, 0.0), like(b, y, 1.0));
        let none = super::arithmetic::eq(b, x, zero)?;
        let number = super::arithmetic::eq(b, y, y)?;
        let none = b.alu(Op::And, &[none, number])?;
        let y = b.alu(Op::Where, &[none, one, y])?;
        let log = log(b, y)?;
        b.alu(Op::Mul, &[x, log])
    })
    .map_err(|error| error.in_op("xlogy"))
}

/// The angle of the point (`x`, `y`), from -π to π.
pub fn atan2(b: &mut dyn Builder, y: NodeId, x: NodeId) -> Result<NodeId> {
    in_wide_of(b, "atan2", [y, x], wide_atan2)
}

fn wide_atan2(b: &mut dyn Builder, [y, x]: [NodeId; 2]) -> Result<NodeId> {
    let (rise, run) = (abs(b, y)?, abs(b, x)?);
    let steep = b.alu(Op::CmpLt, &[run, rise]).map_err(|error| error.in_op("atan2"))?;
    let (numerator, denominator) = (b.alu(Op::Where, &[steep, x, y])?, b.alu(Op::Where, &[steep, y, x])?);
    // Two infinities meet at 45 degrees, two zeros at none.
    let (one, zero, infinity) = (like(b, x, 1.0), like(b, x, 0.0), like(b, x, f64::INFINITY));
    let (least, greatest) = (b.alu(Op::Where, &[steep, run, rise])?, b.alu(Op::Where, &[steep, rise, run])?);
    let both = super::arithmetic::eq(b, least, infinity)?;
    let (sign, other) = (copysign_of(b, one, numerator)?, copysign_of(b, one, denominator)?);
    let numerator = b.alu(Op::Where, &[both, sign, numerator])?;
    let denominator = b.alu(Op::Where, &[both, other, denominator])?;
    let origin = super::arithmetic::eq(b, greatest, zero)?;
    let numerator = b.alu(Op::Where, &[origin, zero, numerator])?;
    let denominator = b.alu(Op::Where, &[origin, one, denominator])?;
    let ratio = b.alu(Op::Div, &[numerator, denominator])?;
    let angle = inverse::atan(b, ratio)?;
    let (quarter, half) = (like(b, x, FRAC_PI_2), like(b, x, PI));
    let (quarter, half) = (copysign_of(b, quarter, y)?, copysign_of(b, half, y)?);
    let from_quarter = sub(b, quarter, angle)?;
    let from_half = b.alu(Op::Add, &[angle, half])?;
    let left = super::arithmetic::is_negative(b, x)?;
    let nothing = copysign_of(b, zero, y)?;
    let angle = b.alu(Op::Where, &[origin, nothing, angle])?;
    let flat = b.alu(Op::Where, &[left, from_half, angle])?;
    let angle = b.alu(Op::Where, &[steep, from_quarter, flat])?;
    // The selects above may drop nan.
    let (missing, nan) = (either_nan(b, x, y)?, like(b, x, f64::NAN));
    b.alu(Op::Where, &[missing, nan, angle])
}

fn either_nan(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    let (no_x, no_y) = (isnan(b, x)?, isnan(b, y)?);
    b.alu(Op::Or, &[no_x, no_y])
}

/// `√(x² + y²)` without overflow between; infinite where one of them is, even if the other is nan.
pub fn hypot(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    in_wide_of(b, "hypot", [x, y], wide_hypot)
}

fn wide_hypot(b: &mut dyn Builder, [x, y]: [NodeId; 2]) -> Result<NodeId> {
    let (x, y) = (abs(b, x)?, abs(b, y)?);
    let swapped = b.alu(Op::CmpLt, &[x, y]).map_err(|error| error.in_op("hypot"))?;
    let (long, short) = (b.alu(Op::Where, &[swapped, y, x])?, b.alu(Op::Where, &[swapped, x, y])?);
    let (zero, one, infinity) = (like(b, x, 0.0), like(b, x, 1.0), like(b, x, f64::INFINITY));
    let (far_x, far_y) = (super::arithmetic::eq(b, x, infinity)?, super::arithmetic::eq(b, y, infinity)?);
    let infinite = b.alu(Op::Or, &[far_x, far_y])?;
    let none = super::arithmetic::eq(b, long, zero)?;
    let single = b.alu(Op::Or, &[none, infinite])?;
    let divisor = b.alu(Op::Where, &[single, one, long])?;
    let short = b.alu(Op::Where, &[single, zero, short])?;
    let ratio = b.alu(Op::Div, &[short, divisor])?;
    let squared = super::elementwise::square(b, ratio)?;
    let sum = shift(b, squared, 1.0)?;
    let root = b.alu(Op::Sqrt, &[sum])?;
    let length = b.alu(Op::Mul, &[long, root])?;
    let (missing, nan) = (either_nan(b, x, y)?, like(b, x, f64::NAN));
    let length = b.alu(Op::Where, &[missing, nan, length])?;
    b.alu(Op::Where, &[infinite, infinity, length])
}

/// Degrees as radians.
pub fn deg2rad(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| scale(b, x, PI / 180.0))
}

/// Radians as degrees.
pub fn rad2deg(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| scale(b, x, 180.0 / PI))
}

/// `sin(πx) / (πx)`, and 1 at 0.
pub fn sinc(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let (zero, one) = (like(b, x, 0.0), like(b, x, 1.0));
        let middle = super::arithmetic::eq(b, x, zero)?;
        let away = b.alu(Op::Where, &[middle, one, x])?;
        let angle = scale(b, away, PI)?;
        let sine = super::trigonometry::sin(b, angle)?;
        let ratio = b.alu(Op::Div, &[sine, angle])?;
        b.alu(Op::Where, &[middle, one, ratio])
    })
}

/// `x - trunc(x)`.
pub fn frac(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let whole = super::elementwise::trunc(b, x)?;
    sub(b, x, whole)
}
