//! Unary functions and activations.

use super::arithmetic::{add, div, gt, mul, ne, neg, not, sub, where_};
use super::{dtype_of, like, to_float};
use crate::{Arg, Builder, DType, NodeId, Op, Result};
use std::f64::consts::{LN_2, LOG2_E, PI};

fn float_op(b: &mut dyn Builder, op: Op, x: NodeId) -> Result<NodeId> {
    let x = to_float(b, x)?;
    b.alu(op, &[x])
}

pub(super) fn scale(b: &mut dyn Builder, x: NodeId, factor: f64) -> Result<NodeId> {
    let factor = like(b, x, factor);
    b.alu(Op::Mul, &[x, factor])
}

pub(super) fn shift(b: &mut dyn Builder, x: NodeId, summand: f64) -> Result<NodeId> {
    let summand = like(b, x, summand);
    b.alu(Op::Add, &[x, summand])
}

/// `1 / x`.
pub fn reciprocal(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    float_op(b, Op::Recip, x)
}

/// Square root.
pub fn sqrt(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    float_op(b, Op::Sqrt, x)
}

/// `1 / sqrt(x)`.
pub fn rsqrt(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let root = sqrt(b, x)?;
    b.alu(Op::Recip, &[root])
}

/// `2 ^ x`.
pub fn exp2(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    float_op(b, Op::Exp2, x)
}

/// Binary logarithm.
pub fn log2(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    float_op(b, Op::Log2, x)
}

/// `e ^ x`.
pub fn exp(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let scaled = scale(b, x, LOG2_E)?;
    b.alu(Op::Exp2, &[scaled])
}

/// Natural logarithm.
pub fn log(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let log = log2(b, x)?;
    scale(b, log, LN_2)
}

/// Decimal logarithm.
pub fn log10(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let log = log2(b, x)?;
    scale(b, log, std::f64::consts::LOG10_2)
}

/// Sine.
pub fn sin(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    float_op(b, Op::Sin, x)
}

/// Cosine: `sin(π/2 - x)`.
pub fn cos(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let minus = neg(b, x)?;
    let turned = shift(b, minus, PI / 2.0)?;
    b.alu(Op::Sin, &[turned])
}

/// Tangent; small floats in f32, for sine and cosine rounded on the way would spoil the quotient.
pub fn tan(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let dtype = dtype_of(b, x);
    let wide = super::cast(b, x, dtype.accumulator())?;
    let (sine, cosine) = (sin(b, wide)?, cos(b, wide)?);
    let tangent = b.alu(Op::Div, &[sine, cosine])?;
    super::cast(b, tangent, dtype)
}

/// Toward zero.
pub fn trunc(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    if dtype_of(b, x).is_float() { b.alu(Op::Trunc, &[x]) } else { Ok(x) }
}

/// Down.
pub fn floor(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let whole = trunc(b, x)?;
    let above = b.alu(Op::CmpLt, &[x, whole])?;
    let lower = shift(b, whole, -1.0)?;
    b.alu(Op::Where, &[above, lower, whole])
}

/// Up.
pub fn ceil(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let whole = trunc(b, x)?;
    let below = b.alu(Op::CmpLt, &[whole, x])?;
    let higher = shift(b, whole, 1.0)?;
    b.alu(Op::Where, &[below, higher, whole])
}

/// To the nearest integer, ties to even.
pub fn round(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    if !dtype_of(b, x).is_float() {
        return Ok(x);
    }
    let lower = floor(b, x)?;
    let fraction = sub(b, x, lower)?;
    let half = like(b, x, 0.5);
    let up = gt(b, fraction, half)?;
    let tie = super::arithmetic::eq(b, fraction, half)?;
    let halved = scale(b, lower, 0.5)?;
    let halved_floor = floor(b, halved)?;
    let odd = ne(b, halved, halved_floor)?;
    let tie_up = b.alu(Op::And, &[tie, odd])?;
    let up = b.alu(Op::Or, &[up, tie_up])?;
    let higher = shift(b, lower, 1.0)?;
    b.alu(Op::Where, &[up, higher, lower])
}

/// Magnitude; its subgradient at 0 is 0.
pub fn abs(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    if dtype_of(b, x).is_unsigned() {
        return Ok(x);
    }
    let sign = sign(b, x)?;
    let sign = b.add(Op::Detach, &[sign], Arg::None)?;
    // A nan has the sign nan.
    b.alu(Op::Mul, &[x, sign])
}

/// -1, 0 or 1; nan of nan.
pub fn sign(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let (zero, one) = (like(b, x, 0.0), like(b, x, 1.0));
    let minus = like(b, x, -1.0);
    let (negative, nonzero) = (b.alu(Op::CmpLt, &[x, zero])?, b.alu(Op::CmpNe, &[x, zero])?);
    let signed = b.alu(Op::Where, &[negative, minus, one])?;
    let sign = b.alu(Op::Where, &[nonzero, signed, zero])?;
    if !dtype_of(b, x).is_float() {
        return Ok(sign);
    }
    let nan = b.alu(Op::CmpNe, &[x, x])?;
    b.alu(Op::Where, &[nan, x, sign])
}

/// `x * x`.
pub fn square(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    b.alu(Op::Mul, &[x, x])
}

/// `max(x, 0)`; its subgradient at 0 is 0.
pub fn relu(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let zero = like(b, x, 0.0);
    let negative = b.alu(Op::CmpLt, &[zero, x])?;
    let nan = b.alu(Op::CmpNe, &[x, x])?;
    let keep = b.alu(Op::Or, &[negative, nan])?;
    b.alu(Op::Where, &[keep, x, zero])
}

/// `min(max(x, 0), 6)`.
pub fn relu6(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    clip(b, x, 0.0, 6.0)
}

/// `x` within `min` and `max`.
pub fn clip(b: &mut dyn Builder, x: NodeId, min: f64, max: f64) -> Result<NodeId> {
    let (low, high) = (like(b, x, min), like(b, x, max));
    let (below, above) = (b.alu(Op::CmpLt, &[x, low])?, b.alu(Op::CmpLt, &[high, x])?);
    let x = b.alu(Op::Where, &[below, low, x])?;
    b.alu(Op::Where, &[above, high, x])
}

/// `1 / (1 + e^-x)`.
pub fn sigmoid(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let scaled = scale(b, x, -LOG2_E)?;
    let power = b.alu(Op::Exp2, &[scaled])?;
    let sum = shift(b, power, 1.0)?;
    b.alu(Op::Recip, &[sum])
}

/// Hyperbolic tangent, as `1 - 2 / (e^2x + 1)` away from 0 and as its series near 0, where that form cancels.
pub fn tanh(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let scaled = scale(b, x, 2.0 * LOG2_E)?;
    let power = b.alu(Op::Exp2, &[scaled])?;
    let sum = shift(b, power, 1.0)?;
    let reciprocal = b.alu(Op::Recip, &[sum])?;
    let doubled = scale(b, reciprocal, -2.0)?;
    let far = shift(b, doubled, 1.0)?;
    let squared = square(b, x)?;
    let series = polynomial(b, squared, &[-17.0 / 315.0, 2.0 / 15.0, -1.0 / 3.0, 1.0])?;
    let near = b.alu(Op::Mul, &[x, series])?;
    let bound = like(b, x, 0.01);
    let small = b.alu(Op::CmpLt, &[squared, bound])?;
    b.alu(Op::Where, &[small, near, far])
}

/// Horner's scheme, highest coefficient first.
pub(super) fn polynomial(b: &mut dyn Builder, x: NodeId, coefficients: &[f64]) -> Result<NodeId> {
    let mut value = like(b, x, coefficients[0]);
    for &coefficient in &coefficients[1..] {
        let product = b.alu(Op::Mul, &[value, x])?;
        value = shift(b, product, coefficient)?;
    }
    Ok(value)
}

/// Hyperbolic sine.
pub fn sinh(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let (up, minus) = (exp(b, x)?, neg(b, x)?);
    let down = exp(b, minus)?;
    let difference = sub(b, up, down)?;
    scale(b, difference, 0.5)
}

/// Hyperbolic cosine.
pub fn cosh(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let (up, minus) = (exp(b, x)?, neg(b, x)?);
    let down = exp(b, minus)?;
    let sum = add(b, up, down)?;
    scale(b, sum, 0.5)
}

/// `x * sigmoid(x)`.
pub fn silu(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let gate = sigmoid(b, x)?;
    mul(b, x, gate)
}

/// Gelu in its tanh form: `x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
pub fn gelu(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let squared = square(b, x)?;
    let scaled = scale(b, squared, 0.044715)?;
    let factor = shift(b, scaled, 1.0)?;
    let cubic = b.alu(Op::Mul, &[x, factor])?;
    // x/2 (1 + tanh u) is x sigmoid(2u).
    let doubled = scale(b, cubic, 2.0 * (2.0 / PI).sqrt())?;
    let gate = sigmoid(b, doubled)?;
    b.alu(Op::Mul, &[x, gate])
}

/// `x * sigmoid(1.702 x)`.
pub fn quick_gelu(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let scaled = scale(b, x, 1.702)?;
    let gate = sigmoid(b, scaled)?;
    b.alu(Op::Mul, &[x, gate])
}

/// `log(1 + e^x)` without overflow: `max(x, 0) + log(1 + e^-|x|)`.
pub fn softplus(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let zero = like(b, x, 0.0);
    super::arithmetic::logaddexp(b, x, zero)
}

/// `log(sigmoid(x))`.
pub fn logsigmoid(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let minus = neg(b, x)?;
    let plus = softplus(b, minus)?;
    neg(b, plus)
}

/// `x / (1 + |x|)`.
pub fn softsign(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let magnitude = abs(b, x)?;
    let sum = shift(b, magnitude, 1.0)?;
    div(b, x, sum)
}

/// `x * tanh(softplus(x))`.
pub fn mish(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let plus = softplus(b, x)?;
    let gate = tanh(b, plus)?;
    mul(b, x, gate)
}

/// `relu6(x + 3) / 6`.
pub fn hardsigmoid(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let shifted = shift(b, x, 3.0)?;
    let clipped = relu6(b, shifted)?;
    scale(b, clipped, 1.0 / 6.0)
}

/// `x * hardsigmoid(x)`.
pub fn hardswish(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let gate = hardsigmoid(b, x)?;
    mul(b, x, gate)
}

/// `x` above 0, `slope * x` below.
pub fn leaky_relu(b: &mut dyn Builder, x: NodeId, slope: f64) -> Result<NodeId> {
    let zero = like(b, x, 0.0);
    let negative = b.alu(Op::CmpLt, &[x, zero])?;
    let scaled = scale(b, x, slope)?;
    where_(b, negative, scaled, x)
}

/// `x` above 0, `alpha (e^x - 1)` below.
pub fn elu(b: &mut dyn Builder, x: NodeId, alpha: f64) -> Result<NodeId> {
    exponential_below(b, x, 1.0, alpha)
}

/// `x` above 0, `alpha (e^(x/alpha) - 1)` below.
pub fn celu(b: &mut dyn Builder, x: NodeId, alpha: f64) -> Result<NodeId> {
    exponential_below(b, x, 1.0 / alpha, alpha)
}

/// Elu with the constants that keep mean 0 and variance 1 (Klambauer et al., 2017).
pub fn selu(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let elu = elu(b, x, 1.673_263_242_354_377_2)?;
    scale(b, elu, 1.050_700_987_355_480_5)
}

fn exponential_below(b: &mut dyn Builder, x: NodeId, inner: f64, alpha: f64) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let zero = like(b, x, 0.0);
    let negative = b.alu(Op::CmpLt, &[x, zero])?;
    // Above 0 the exponential is not used, and must not overflow into the gradient.
    let bounded = b.alu(Op::Where, &[negative, x, zero])?;
    let scaled = scale(b, bounded, inner)?;
    let power = exp(b, scaled)?;
    let shifted = shift(b, power, -1.0)?;
    let below = scale(b, shifted, alpha)?;
    b.alu(Op::Where, &[negative, below, x])
}

/// Is nan.
pub fn isnan(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    b.alu(Op::CmpNe, &[x, x])
}

/// Is an infinity.
pub fn isinf(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let (plus, minus) = (like(b, x, f64::INFINITY), like(b, x, f64::NEG_INFINITY));
    let (plus, minus) = (super::arithmetic::eq(b, x, plus)?, super::arithmetic::eq(b, x, minus)?);
    b.alu(Op::Or, &[plus, minus])
}

/// Is neither nan nor an infinity.
pub fn isfinite(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let (nan, infinite) = (isnan(b, x)?, isinf(b, x)?);
    let special = b.alu(Op::Or, &[nan, infinite])?;
    not(b, special)
}

/// `x ^ exponent`; whole powers up to 4 by multiplication, a half by the square root.
pub fn pow_const(b: &mut dyn Builder, x: NodeId, exponent: f64) -> Result<NodeId> {
    let x = to_float(b, x)?;
    match exponent {
        0.0 => {
            let zero = scale_to_zero(b, x)?;
            shift(b, zero, 1.0)
        }
        1.0 => Ok(x),
        2.0 => square(b, x),
        3.0 => {
            let squared = square(b, x)?;
            mul(b, squared, x)
        }
        4.0 => {
            let squared = square(b, x)?;
            square(b, squared)
        }
        -1.0 => reciprocal(b, x),
        0.5 => sqrt(b, x),
        _ => {
            let exponent = like(b, x, exponent);
            b.alu(Op::Pow, &[x, exponent])
        }
    }
}

/// Zeros of the shape of `x`, connected to it with gradient 0.
fn scale_to_zero(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let zero = like(b, x, 0.0);
    let never = b.constant(crate::Const::int(DType::Bool, 0));
    b.alu(Op::Where, &[never, x, zero])
}

/// `base ^ x`.
pub fn const_pow(b: &mut dyn Builder, x: NodeId, base: f64) -> Result<NodeId> {
    let x = to_float(b, x)?;
    if base <= 0.0 {
        let base = like(b, x, base);
        return b.alu(Op::Pow, &[base, x]);
    }
    let scaled = scale(b, x, base.log2())?;
    b.alu(Op::Exp2, &[scaled])
}

/// The value, without a gradient.
pub fn detach(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    b.alu(Op::Detach, &[x])
}

/// The value in memory of its own, row-major.
pub fn contiguous(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    b.alu(Op::Contiguous, &[x])
}

/// The storage as another dtype; the last axis scales by the ratio of sizes.
pub fn bitcast(b: &mut dyn Builder, x: NodeId, dtype: DType) -> Result<NodeId> {
    b.add(Op::Bitcast, &[x], Arg::DType(dtype))
}
