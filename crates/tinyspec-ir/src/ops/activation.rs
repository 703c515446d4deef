//! Activations. Their values and gradients are finite wherever the functions are, at the infinities too.
//!
//! `x gate(x)` with a gate that goes from 0 to 1 is written `max(x, 0) - |x| gate(-|x|)`: the second part is
//! bounded, and so are the factors of its gradient.

use super::arithmetic::{mul, neg, where_};
use super::elementwise::{clip, scale, scale_given, shift, square};
use super::hyperbolic::{bounded_minus_magnitude, expm1_of_double, is_positive, log1p_exp, minus_magnitude};
use super::{in_wide, like, to_float};
use crate::{Builder, NodeId, Op, Result};
use std::f64::consts::{LOG2_E, PI};

/// `max(x, 0)`; its subgradient at 0 is 0.
pub fn relu(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let positive = is_positive(b, x)?;
    let nan = b.alu(Op::CmpNe, &[x, x])?;
    let keep = b.alu(Op::Or, &[positive, nan])?;
    let zero = like(b, x, 0.0);
    b.alu(Op::Where, &[keep, x, zero])
}

/// `min(max(x, 0), 6)`.
pub fn relu6(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    clip(b, x, 0.0, 6.0)
}

/// `1 / (1 + e^-x)`, by the power of `-|x|`.
pub fn sigmoid(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let positive = is_positive(b, x)?;
        let minus = minus_magnitude(b, x, positive)?;
        let scaled = scale(b, minus, LOG2_E)?;
        let power = b.alu(Op::Exp2, &[scaled])?;
        let one = like(b, x, 1.0);
        let numerator = b.alu(Op::Where, &[positive, one, power])?;
        let sum = shift(b, power, 1.0)?;
        b.alu(Op::Div, &[numerator, sum])
    })
}

/// The argument of gated functions in its parts.
struct Parts {
    positive: NodeId,
    /// `max(x, 0)`.
    kept: NodeId,
    /// `-|x|`, bounded: the power of the bound is 0 in every dtype, and its products are not nan as those of an
    /// infinity would be.
    minus: NodeId,
}

fn parts(b: &mut dyn Builder, x: NodeId) -> Result<Parts> {
    let positive = is_positive(b, x)?;
    let zero = like(b, x, 0.0);
    let kept = b.alu(Op::Where, &[positive, x, zero])?;
    let (minus, _) = bounded_minus_magnitude(b, x, positive, -1e4)?;
    Ok(Parts { positive, kept, minus })
}

/// `x sigmoid(y)` where `2^scaled` is `e^y` at `-|x|`, and y is odd in x.
fn gated(b: &mut dyn Builder, parts: &Parts, scaled: NodeId) -> Result<NodeId> {
    let power = b.alu(Op::Exp2, &[scaled])?;
    let sum = shift(b, power, 1.0)?;
    let gate = b.alu(Op::Div, &[power, sum])?;
    let rest = b.alu(Op::Mul, &[parts.minus, gate])?;
    b.alu(Op::Add, &[parts.kept, rest])
}

/// `x * sigmoid(x)`.
pub fn silu(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let parts = parts(b, x)?;
        let scaled = scale(b, parts.minus, LOG2_E)?;
        gated(b, &parts, scaled)
    })
}

/// `x * sigmoid(1.702 x)`.
pub fn quick_gelu(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let parts = parts(b, x)?;
        let scaled = scale(b, parts.minus, 1.702 * LOG2_E)?;
        gated(b, &parts, scaled)
    })
}

/// Gelu in its tanh form: `x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
pub fn gelu(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        // x/2 (1 + tanh u) is x sigmoid(2u).
        let parts = parts(b, x)?;
        let factor = 2.0 * (2.0 / PI).sqrt() * LOG2_E;
        let squared = square(b, parts.minus)?;
        let scaled = scale(b, squared, 0.044715 * factor)?;
        let slope = shift(b, scaled, factor)?;
        let scaled = b.alu(Op::Mul, &[parts.minus, slope])?;
        gated(b, &parts, scaled)
    })
}

/// `x * tanh(softplus(x))`. With `p = e^-|x|` the gate is `(p² + 2p) / (p² + 2p + 2)` below 0, and one minus
/// `2p² / (2p² + 2p + 1)` above.
pub fn mish(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let Parts { positive, kept, minus } = parts(b, x)?;
        let scaled = scale(b, minus, LOG2_E)?;
        let power = b.alu(Op::Exp2, &[scaled])?;
        let (twice, more) = (scale(b, power, 2.0)?, shift(b, power, 2.0)?);
        let factor = b.alu(Op::Where, &[positive, twice, more])?;
        let numerator = b.alu(Op::Mul, &[power, factor])?;
        let (next, two) = (shift(b, twice, 1.0)?, like(b, x, 2.0));
        let others = b.alu(Op::Where, &[positive, next, two])?;
        let sum = b.alu(Op::Add, &[numerator, others])?;
        let product = b.alu(Op::Mul, &[minus, numerator])?;
        let rest = b.alu(Op::Div, &[product, sum])?;
        b.alu(Op::Add, &[kept, rest])
    })
}

/// `log(1 + e^x)`: `max(x, 0) + log(1 + e^-|x|)`.
pub fn softplus(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let positive = is_positive(b, x)?;
        let zero = like(b, x, 0.0);
        let kept = b.alu(Op::Where, &[positive, x, zero])?;
        let minus = minus_magnitude(b, x, positive)?;
        let rest = log1p_exp(b, minus)?;
        b.alu(Op::Add, &[kept, rest])
    })
}

/// `log(sigmoid(x))`.
pub fn logsigmoid(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let minus = neg(b, x)?;
    let plus = softplus(b, minus)?;
    neg(b, plus)
}

/// `x / (1 + |x|)`, and far from 0, where that quotient and its slope cancel, 1 less `1 / (1 + |x|)`.
pub fn softsign(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let positive = is_positive(b, x)?;
        let minus = minus_magnitude(b, x, positive)?;
        let opposite = scale(b, minus, -1.0)?;
        let sum = shift(b, opposite, 1.0)?;
        let share = b.alu(Op::Recip, &[sum])?;
        let far = shift(b, share, -1.0)?;
        let (bound, zero) = (like(b, x, -1.0), like(b, x, 0.0));
        let is_near = b.alu(Op::CmpLt, &[bound, minus])?;
        let near = b.alu(Op::Where, &[is_near, minus, zero])?;
        let near = b.alu(Op::Mul, &[near, share])?;
        let value = b.alu(Op::Where, &[is_near, near, far])?;
        minus_magnitude(b, value, positive)
    })
}

/// `relu6(x + 3) / 6`.
pub fn hardsigmoid(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let shifted = shift(b, x, 3.0)?;
    let clipped = relu6(b, shifted)?;
    scale(b, clipped, 1.0 / 6.0)
}

/// `x * hardsigmoid(x)`; below -3 the gate is 0, and so is its product with an infinity.
pub fn hardswish(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let gate = hardsigmoid(b, x)?;
    let bound = like(b, x, -3.0);
    let bounded = b.alu(Op::Max, &[x, bound])?;
    mul(b, bounded, gate)
}

/// `x` above 0, `slope * x` below.
pub fn leaky_relu(b: &mut dyn Builder, x: NodeId, slope: f64) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let zero = like(b, x, 0.0);
    let negative = b.alu(Op::CmpLt, &[x, zero])?;
    let scaled = scale_given(b, x, slope)?;
    where_(b, negative, scaled, x)
}

/// `x` above 0, `alpha (e^x - 1)` below.
pub fn elu(b: &mut dyn Builder, x: NodeId, alpha: f64) -> Result<NodeId> {
    in_wide(b, x, |b, x| exponential_below(b, x, 1.0, alpha, 1.0))
}

/// `x` above 0, `alpha (e^(x/alpha) - 1)` below.
pub fn celu(b: &mut dyn Builder, x: NodeId, alpha: f64) -> Result<NodeId> {
    in_wide(b, x, |b, x| exponential_below(b, x, 1.0 / alpha, alpha, 1.0))
}

/// Elu with the constants that keep mean 0 and variance 1 (Klambauer et al., 2017).
pub fn selu(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let (alpha, above) = (1.673_263_242_354_377_2, 1.050_700_987_355_480_5);
    in_wide(b, x, |b, x| exponential_below(b, x, 1.0, alpha * above, above))
}

/// `above x` above 0, `below (e^(inner x) - 1)` below.
fn exponential_below(b: &mut dyn Builder, x: NodeId, inner: f64, below: f64, above: f64) -> Result<NodeId> {
    let zero = like(b, x, 0.0);
    let negative = b.alu(Op::CmpLt, &[x, zero])?;
    let bounded = b.alu(Op::Where, &[negative, x, zero])?;
    let mut scaled = |x: NodeId, factor: f64| if factor == 1.0 { Ok(x) } else { scale_given(b, x, factor) };
    let (half, kept) = (scaled(bounded, inner / 2.0)?, scaled(x, above)?);
    let power = expm1_of_double(b, half)?;
    let low = if below == 1.0 { power } else { scale_given(b, power, below)? };
    b.alu(Op::Where, &[negative, low, kept])
}
