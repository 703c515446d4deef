//! Random tensors by Threefry: the same bits on every backend.

use super::creation::arange_dim;
use super::elementwise::{scale, shift};
use super::movement::reshape;
use super::{cast, dtype_of, elementwise, given, like};
use crate::{Arg, Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result};

/// 64 random bits of each counter under a key, both u64: Threefry-2x32 with 20 rounds.
pub fn threefry(b: &mut dyn Builder, counter: NodeId, key: NodeId) -> Result<NodeId> {
    if let Some(other) = [counter, key].map(|it| dtype_of(b, it)).into_iter().find(|&dtype| dtype != DType::U64) {
        let message = format!("counter and key are u64, found {other}");
        return Err(Error::new(ErrorKind::DType, "threefry", message).help("`.cast(DType::U64)`"));
    }
    b.alu(Op::Threefry, &[counter, key])
}

/// 64 random bits an element; `key` (a u64 scalar) names the stream.
pub fn random_bits(b: &mut dyn Builder, key: NodeId, shape: &[Dim]) -> Result<NodeId> {
    // The shape itself is refused if it has too many elements, not the vector that is drawn.
    crate::derive::check_size(Op::Reshape, shape)?;
    let count = shape.iter().cloned().fold(Dim::from(1), |a, b| a * b);
    let counter = arange_dim(b, &count, DType::I64)?;
    let counter = cast(b, counter, DType::U64)?;
    let bits = threefry(b, counter, key)?;
    reshape(b, bits, shape)
}

/// Floats in [0, 1) from the bits `shift..shift + width` of each element.
fn unit(b: &mut dyn Builder, bits: NodeId, shift: u32, width: u32, dtype: DType) -> Result<NodeId> {
    let shift = b.constant(Const::int(DType::U64, shift.into()));
    let shifted = b.alu(Op::Shr, &[bits, shift])?;
    let mask = b.constant(Const::int(DType::U64, (1 << width) - 1));
    let low = b.alu(Op::And, &[shifted, mask])?;
    let low = cast(b, low, if width < 32 { DType::I32 } else { DType::I64 })?;
    let float = cast(b, low, dtype)?;
    let scale = like(b, float, (-f64::from(width)).exp2());
    b.alu(Op::Mul, &[float, scale])
}

/// Uniform in `[low, high)`, both as numbers of `dtype`; all are `low` where these are one.
pub fn uniform(b: &mut dyn Builder, key: NodeId, shape: &[Dim], low: f64, high: f64, dtype: DType) -> Result<NodeId> {
    require_float("uniform", dtype)?;
    let rounded = |value: f64| Const::float(dtype, value).as_float().unwrap_or(f64::NAN);
    let (least, bound, width) = (rounded(low), rounded(high), high - low);
    if width < 0.0 || ![least, bound, rounded(width)].iter().all(|value| value.is_finite()) {
        let message = format!("there are no numbers of {dtype} spread evenly from {low} to {high}");
        return Err(Error::new(ErrorKind::Value, "uniform", message).help("finite bounds, the lower one first"));
    }
    let bits = random_bits(b, key, shape).map_err(|error| error.in_op("uniform"))?;
    let wide = dtype.accumulator();
    // As many bits as the significand holds.
    let mantissa = if wide == DType::F64 { 53 } else { 24 };
    let unit = unit(b, bits, 64 - mantissa, mantissa, wide)?;
    let is_empty = least == bound;
    let (scale, start) = (given(b, unit, if is_empty { 0.0 } else { width }), given(b, unit, least));
    let scaled = b.alu(Op::Mul, &[unit, scale])?;
    let value = b.alu(Op::Add, &[scaled, start])?;
    let value = cast(b, value, dtype)?;
    if is_empty {
        return Ok(value);
    }
    // Rounding may reach the upper bound.
    let greatest = given(b, value, below(dtype, bound));
    let beyond = b.alu(Op::CmpLt, &[greatest, value])?;
    b.alu(Op::Where, &[beyond, greatest, value])
}

/// The greatest value of a float dtype below one of its numbers.
fn below(dtype: DType, bound: f64) -> f64 {
    let rounded = |value: f64| Const::float(dtype, value).as_float().unwrap_or(value);
    let mut step = (bound.abs() * f64::EPSILON / 2.0).max(f64::from_bits(1));
    // The first step beyond half a place rounds to the next value.
    while rounded(bound - step) >= bound {
        step *= 2.0;
    }
    rounded(bound - step)
}

/// Standard normal by Box and Muller (1958), both uniforms from one draw of 64 bits. Logarithm and sine are composed of
/// ops that round correctly, so that every device gives the same bits.
pub fn randn(b: &mut dyn Builder, key: NodeId, shape: &[Dim], dtype: DType) -> Result<NodeId> {
    require_float("randn", dtype)?;
    let wide = dtype.accumulator();
    let bits = random_bits(b, key, shape).map_err(|error| error.in_op("randn"))?;
    let width = if wide == DType::F64 { 32 } else { 24 };
    let (first, second) = (unit(b, bits, 32 - width, width, wide)?, unit(b, bits, 64 - width, width, wide)?);
    // 1 - u is never 0, so the logarithm is finite.
    let minus = super::arithmetic::neg(b, first)?;
    let positive = shift(b, minus, 1.0)?;
    let log = same_log(b, positive)?;
    let scaled = scale(b, log, -2.0)?;
    let radius = b.alu(Op::Sqrt, &[scaled])?;
    let sine = same_sine(b, second)?;
    let value = b.alu(Op::Mul, &[radius, sine])?;
    cast(b, value, dtype)
}

/// The natural logarithm of a normal number above 0, by ops that every device rounds alike, which Log2 is not: of the
/// exponent and, by its series, of the mantissa.
pub(super) fn same_log(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let dtype = dtype_of(b, x);
    let (whole, mantissa_bits, bias) = if dtype == DType::F64 { (DType::U64, 52, 1023) } else { (DType::U32, 23, 127) };
    let number = |b: &mut dyn Builder, value: i128| b.constant(Const::int(whole, value));
    let bits = b.add(Op::Bitcast, &[x], Arg::DType(whole))?;
    let width = number(b, mantissa_bits);
    let exponent = b.alu(Op::Shr, &[bits, width])?;
    let exponent = cast(b, exponent, DType::I32)?;
    let exponent = cast(b, exponent, dtype)?;
    let (mask, one) = (number(b, (1 << mantissa_bits) - 1), number(b, bias << mantissa_bits));
    let mantissa = b.alu(Op::And, &[bits, mask])?;
    let mantissa = b.alu(Op::Or, &[mantissa, one])?;
    let mantissa = b.add(Op::Bitcast, &[mantissa], Arg::DType(dtype))?;
    // From 1..2 to 1/√2..√2.
    let root = like(b, mantissa, std::f64::consts::SQRT_2);
    let above = b.alu(Op::CmpLt, &[root, mantissa])?;
    let (halved, next) = (scale(b, mantissa, 0.5)?, shift(b, exponent, 1.0)?);
    let mantissa = b.alu(Op::Where, &[above, halved, mantissa])?;
    let exponent = b.alu(Op::Where, &[above, next, exponent])?;
    let exponent = shift(b, exponent, -(bias as f64))?;
    let (difference, sum) = (shift(b, mantissa, -1.0)?, shift(b, mantissa, 1.0)?);
    let ratio = b.alu(Op::Div, &[difference, sum])?;
    let half = super::inverse::small_atanh(b, ratio)?;
    let (fraction, power) = (scale(b, half, 2.0)?, scale(b, exponent, std::f64::consts::LN_2)?);
    b.alu(Op::Add, &[power, fraction])
}

/// `sin 2πx` of `x` in [0, 1), by its series at most a quarter turn from 0.
fn same_sine(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    // 1/2 - x is in (-1/2, 1/2] and has the same sine; beyond a quarter turn the rest to half a turn has.
    let minus = scale(b, x, -1.0)?;
    let turn = shift(b, minus, 0.5)?;
    let (quarter, minus_quarter) = (like(b, x, 0.25), like(b, x, -0.25));
    let (above, below) = (b.alu(Op::CmpLt, &[quarter, turn])?, b.alu(Op::CmpLt, &[turn, minus_quarter])?);
    let opposite = scale(b, turn, -1.0)?;
    let (from_above, from_below) = (shift(b, opposite, 0.5)?, shift(b, opposite, -0.5)?);
    let turn = b.alu(Op::Where, &[above, from_above, turn])?;
    let turn = b.alu(Op::Where, &[below, from_below, turn])?;
    let angle = scale(b, turn, 2.0 * std::f64::consts::PI)?;
    let squared = elementwise::square(b, angle)?;
    let terms = if dtype_of(b, x) == DType::F64 { 12 } else { 7 };
    // 1/1!, -1/3!, 1/5!, …
    let next = |coefficient: &mut f64, term: i32| {
        let found = *coefficient;
        *coefficient /= -f64::from((2 * term + 2) * (2 * term + 3));
        Some(found)
    };
    let mut coefficients: Vec<f64> = (0..terms).scan(1.0, next).collect();
    coefficients.reverse();
    let series = elementwise::polynomial(b, squared, &coefficients)?;
    b.alu(Op::Mul, &[angle, series])
}

fn require_float(op: &str, dtype: DType) -> Result<()> {
    if dtype.is_float() {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::DType, op, format!("needs a float dtype, found {dtype}"))
            .help("draw `DType::F32`, and `.cast(…)` what is drawn"))
    }
}
