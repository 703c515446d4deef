//! Random tensors by Threefry: the same bits on every backend.

use super::creation::arange_dim;
use super::movement::reshape;
use super::{cast, elementwise, like};
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
    let bits = random_bits(b, key, shape)?;
    let unit = unit(b, bits, 40, dtype)?;
    let (scale, low) = (like(b, unit, high - low), like(b, unit, low));
    let scaled = b.alu(Op::Mul, &[unit, scale])?;
    b.alu(Op::Add, &[scaled, low])
}

/// Standard normal by Box and Muller (1958), both uniforms from one draw of 64 bits.
pub fn randn(b: &mut dyn Builder, key: NodeId, shape: &[Dim], dtype: DType) -> Result<NodeId> {
    require_float("randn", dtype)?;
    let bits = random_bits(b, key, shape)?;
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
    let sine = elementwise::sin(b, angle)?;
    b.alu(Op::Mul, &[radius, sine])
}

fn require_float(op: &str, dtype: DType) -> Result<()> {
    if dtype.is_float() {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::DType, op, format!("needs a float dtype, found {dtype}")))
    }
}
