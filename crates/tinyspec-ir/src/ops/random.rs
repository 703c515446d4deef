//! Random tensors by Threefry: the same bits on every backend.

use super::creation::arange_dim;
use super::movement::reshape;
use super::{cast, elementwise, like, trigonometry};
use crate::{Arg, Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result};

/// 64 random bits an element; `key` (a u64 scalar) names the stream.
pub fn random_bits(b: &mut dyn Builder, key: NodeId, shape: &[Dim]) -> Result<NodeId> {
    let count = shape.iter().cloned().fold(Dim::from(1), |a, b| a * b);
    let counter = arange_dim(b, &count, DType::I64)?;
    let counter = cast(b, counter, DType::U64)?;
    let bits = b.alu(Op::Threefry, &[counter, key])?;
    reshape(b, bits, shape)
}

/// Floats in [0, 1) from bits `shift` to `shift + 24` of each element.
fn unit(b: &mut dyn Builder, bits: NodeId, shift: i128, dtype: DType) -> Result<NodeId> {
    let shift = b.constant(Const::int(DType::U64, shift));
    let shifted = b.alu(Op::Shr, &[bits, shift])?;
    let mask = b.constant(Const::int(DType::U64, 0xff_ffff));
    let low = b.alu(Op::And, &[shifted, mask])?;
    let low = cast(b, low, DType::I32)?;
    let float = cast(b, low, dtype)?;
    let scale = like(b, float, 1.0 / 16_777_216.0);
    b.alu(Op::Mul, &[float, scale])
}

/// Uniform in `[low, high)`.
pub fn uniform(b: &mut dyn Builder, key: NodeId, shape: &[Dim], low: f64, high: f64, dtype: DType) -> Result<NodeId> {
    require_float("uniform", dtype)?;
    let width = Const::float(dtype, high - low).as_float().unwrap_or(f64::NAN);
    if !(0.0..f64::INFINITY).contains(&width) {
        let message = format!("there are no numbers of {dtype} spread evenly from {low} to {high}");
        return Err(Error::new(ErrorKind::Value, "uniform", message).help("finite bounds, the lower one first"));
    }
    let bits = random_bits(b, key, shape).map_err(|error| error.in_op("uniform"))?;
    let wide = dtype.accumulator();
    let unit = unit(b, bits, 40, wide)?;
    let (scale, start) = (like(b, unit, high - low), like(b, unit, low));
    let scaled = b.alu(Op::Mul, &[unit, scale])?;
    let value = b.alu(Op::Add, &[scaled, start])?;
    let value = cast(b, value, dtype)?;
    if low == high {
        return Ok(value);
    }
    // Rounding may reach the upper bound.
    let greatest = like(b, value, below(dtype, high));
    let beyond = b.alu(Op::CmpLt, &[greatest, value])?;
    b.alu(Op::Where, &[beyond, greatest, value])
}

/// The greatest value of a float dtype below `bound`.
fn below(dtype: DType, bound: f64) -> f64 {
    let rounded = |value: f64| Const::float(dtype, value).as_float().unwrap_or(value);
    let mut step = (bound.abs() * f64::EPSILON / 2.0).max(f64::from_bits(1));
    // The first step beyond half a place rounds to the next value.
    while rounded(bound - step) >= bound {
        step *= 2.0;
    }
    rounded(bound - step)
}

/// Standard normal by Box and Muller (1958), both uniforms from one draw of 64 bits.
pub fn randn(b: &mut dyn Builder, key: NodeId, shape: &[Dim], dtype: DType) -> Result<NodeId> {
    require_float("randn", dtype)?;
    let bits = random_bits(b, key, shape).map_err(|error| error.in_op("randn"))?;
    let (first, second) = (unit(b, bits, 8, dtype)?, unit(b, bits, 40, dtype)?);
    // 1 - u is never 0, so the logarithm is finite.
    let minus = super::arithmetic::neg(b, first)?;
    let one = like(b, first, 1.0);
    let positive = b.alu(Op::Add, &[minus, one])?;
    let log = elementwise::log(b, positive)?;
    let factor = like(b, log, -2.0);
    let scaled = b.alu(Op::Mul, &[log, factor])?;
    let radius = b.add(Op::Sqrt, &[scaled], Arg::None)?;
    let turn = like(b, second, 2.0 * std::f64::consts::PI);
    let angle = b.alu(Op::Mul, &[second, turn])?;
    let sine = trigonometry::sin(b, angle)?;
    b.alu(Op::Mul, &[radius, sine])
}

fn require_float(op: &str, dtype: DType) -> Result<()> {
    if dtype.is_float() {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::DType, op, format!("needs a float dtype, found {dtype}")))
    }
}
