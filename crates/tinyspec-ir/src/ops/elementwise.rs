//! Unary functions: roots, powers, logarithms, roundings.

use super::arithmetic::{gt, mul, ne, neg, not, sub};
use super::{dtype_of, given, in_wide, like, to_float};
use crate::{Arg, Builder, Const, DType, Error, ErrorKind, Graph, NodeId, Op, Result};
use std::f64::consts::{LN_2, LOG2_10, LOG2_E};

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

/// [`scale`] by a number that the caller passed.
pub(super) fn scale_given(b: &mut dyn Builder, x: NodeId, factor: f64) -> Result<NodeId> {
    let factor = given(b, x, factor);
    b.alu(Op::Mul, &[x, factor])
}

/// [`shift`] by a number that the caller passed.
pub(super) fn shift_given(b: &mut dyn Builder, x: NodeId, summand: f64) -> Result<NodeId> {
    let summand = given(b, x, summand);
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
    in_wide(b, x, |b, x| {
        let root = b.alu(Op::Sqrt, &[x])?;
        b.alu(Op::Recip, &[root])
    })
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
    in_wide(b, x, |b, x| {
        let scaled = scale(b, x, LOG2_E)?;
        b.alu(Op::Exp2, &[scaled])
    })
}

/// The exponent of a power: `x · (high + low)`, of which the graph holds only `high`.
pub struct Exponent {
    /// The argument of the exponential.
    pub x: NodeId,
    /// The factor in the graph, rounded to the dtype of `x`.
    pub high: f64,
    /// The rest of the factor, which rounding dropped.
    pub low: f64,
}

/// log2 e and log2 10, each with the rest that rounding dropped.
const LOGARITHMS: [(f64, f64); 2] = [(LOG2_E, 2.035_527_374_093_103_3e-17), (LOG2_10, 1.661_617_516_973_592e-16)];

/// The exponent of an [`exp`], an `exp10`, and of both with a power of two before their argument. The product in the
/// graph is rounded: large arguments lose as many digits as it has before its point, which computing the power by parts
/// avoids.
pub fn exponent_of(graph: &Graph, node: NodeId) -> Option<Exponent> {
    let sources = |node: NodeId, op: Op| (graph.op(node) == op).then(|| graph.sources(node));
    let &[product] = sources(node, Op::Exp2)? else { return None };
    let &[x, factor] = sources(product, Op::Mul)? else { return None };
    let high = graph.as_const(factor)?.as_float().filter(|high| high.is_normal())?;
    LOGARITHMS.iter().find_map(|&(logarithm, rest)| {
        let power = (high / logarithm).abs().log2().round().exp2().copysign(high);
        let rounded = Const::float(graph.dtype(x), logarithm * power).as_float()?;
        (rounded == high).then_some(Exponent { x, high, low: (logarithm * power - high) + rest * power })
    })
}

/// Natural logarithm.
pub fn log(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let log = b.alu(Op::Log2, &[x])?;
        scale(b, log, LN_2)
    })
}

/// Decimal logarithm.
pub fn log10(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let log = b.alu(Op::Log2, &[x])?;
        scale(b, log, std::f64::consts::LOG10_2)
    })
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

/// To the nearest integer, ties to even; what rounds to 0 keeps its sign.
pub fn round(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    if !dtype_of(b, x).is_float() {
        return Ok(x);
    }
    let whole = trunc(b, x)?;
    let rest = sub(b, x, whole)?;
    let distance = abs(b, rest)?;
    let half = like(b, x, 0.5);
    let beyond = gt(b, distance, half)?;
    let tie = super::arithmetic::eq(b, distance, half)?;
    let halved = scale(b, whole, 0.5)?;
    let halved_whole = trunc(b, halved)?;
    let odd = ne(b, halved, halved_whole)?;
    let tie_away = b.alu(Op::And, &[tie, odd])?;
    let away = b.alu(Op::Or, &[beyond, tie_away])?;
    let (zero, one, minus) = (like(b, x, 0.0), like(b, x, 1.0), like(b, x, -1.0));
    let negative = b.alu(Op::CmpLt, &[x, zero])?;
    let step = b.alu(Op::Where, &[negative, minus, one])?;
    let further = b.alu(Op::Add, &[whole, step])?;
    b.alu(Op::Where, &[away, further, whole])
}

/// Magnitude: `max(x, -x)`. That is +0 of -0, and the tie makes the subgradient at 0 the mean of both slopes, 0.
pub fn abs(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    if dtype_of(b, x).is_unsigned() {
        return Ok(x);
    }
    let minus = neg(b, x)?;
    b.alu(Op::Max, &[x, minus])
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

/// `x` within `min` and `max`; `max` where `min` is greater, nan where one of them is.
pub fn clip(b: &mut dyn Builder, x: NodeId, min: f64, max: f64) -> Result<NodeId> {
    if min.is_nan() || max.is_nan() {
        if dtype_of(b, x).is_float() {
            return scale(b, x, f64::NAN);
        }
        let message = format!("from {min} to {max}, of {}", dtype_of(b, x));
        return Err(Error::new(ErrorKind::Value, "clip", message).help("a bound of whole numbers is a number"));
    }
    let (low, high) = (given(b, x, min.min(max)), given(b, x, max));
    let (below, above) = (b.alu(Op::CmpLt, &[x, low])?, b.alu(Op::CmpLt, &[high, x])?);
    let x = b.alu(Op::Where, &[below, low, x])?;
    b.alu(Op::Where, &[above, high, x])
}

/// Horner's scheme in fused steps, highest coefficient first.
pub(super) fn polynomial(b: &mut dyn Builder, x: NodeId, coefficients: &[f64]) -> Result<NodeId> {
    let mut value = like(b, x, coefficients[0]);
    for &coefficient in &coefficients[1..] {
        let coefficient = like(b, x, coefficient);
        value = b.alu(Op::Mulacc, &[value, x, coefficient])?;
    }
    Ok(value)
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

/// Is the positive infinity.
pub fn isposinf(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    is_the_infinity(b, x, f64::INFINITY)
}

/// Is the negative infinity.
pub fn isneginf(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    is_the_infinity(b, x, f64::NEG_INFINITY)
}

fn is_the_infinity(b: &mut dyn Builder, x: NodeId, infinity: f64) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let infinity = like(b, x, infinity);
    super::arithmetic::eq(b, x, infinity)
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
            let exponent = given(b, x, exponent);
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
    // Powers of 1 are 1 for infinite and nan exponents as well.
    if base <= 0.0 || base == 1.0 || !base.is_finite() {
        let base = given(b, x, base);
        return b.alu(Op::Pow, &[base, x]);
    }
    in_wide(b, x, |b, x| {
        let scaled = scale_given(b, x, base.log2())?;
        b.alu(Op::Exp2, &[scaled])
    })
}

/// The value, without a gradient.
pub fn detach(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    b.alu(Op::Detach, &[x])
}

/// The value in memory, row-major, written by whichever kernel suits: for compositions whose next step reads it again and
/// again. [`contiguous`] is a boundary as well.
pub(super) fn stored(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    b.add(Op::Contiguous, &[x], Arg::Stored)
}

/// The value in row-major memory of its own: its users are not fused into the kernels that write it.
pub fn contiguous(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    b.alu(Op::Contiguous, &[x])
}

/// The value; its gradient has memory of its own, row-major.
pub fn contiguous_backward(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    b.alu(Op::ContiguousBackward, &[x])
}

/// The storage as another dtype; the last axis scales by the ratio of sizes.
pub fn bitcast(b: &mut dyn Builder, x: NodeId, dtype: DType) -> Result<NodeId> {
    b.add(Op::Bitcast, &[x], Arg::DType(dtype))
}
