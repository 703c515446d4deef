//! Ops on the bits of a float: its neighbours, its power of two.

use super::elementwise::{abs, scale};
use super::{cast, dtype_of, like, promote, to_float};
use crate::{Arg, Builder, Const, DType, Error, ErrorKind, NodeId, Op, Result};

/// The integer dtype of as many bits.
fn integers(op: &str, dtype: DType) -> Result<DType> {
    match dtype {
        DType::F16 | DType::BF16 => Ok(DType::I16),
        DType::F32 => Ok(DType::I32),
        DType::F64 => Ok(DType::I64),
        _ => Err(Error::new(ErrorKind::DType, op, format!("of {dtype}")).help("of f16, bf16, f32 or f64")),
    }
}

fn bitcast(b: &mut dyn Builder, x: NodeId, dtype: DType) -> Result<NodeId> {
    b.add(Op::Bitcast, &[x], Arg::DType(dtype))
}

/// The next float after `x` on the way to `other`; `x` itself where they are equal. It has no gradient.
pub fn nextafter(b: &mut dyn Builder, x: NodeId, other: NodeId) -> Result<NodeId> {
    const OP: &str = "nextafter";
    let (x, other) = promote(b, OP, x, other)?;
    let (x, other) = (to_float(b, x)?, to_float(b, other)?);
    let dtype = dtype_of(b, x);
    let bits = integers(OP, dtype)?;
    let (x, other) = (b.alu(Op::Detach, &[x])?, b.alu(Op::Detach, &[other])?);
    let zero = like(b, x, 0.0);
    let (is_up, is_positive) = (b.alu(Op::CmpLt, &[x, other])?, b.alu(Op::CmpLt, &[zero, x])?);
    // The greater the magnitude, the greater the bits.
    let shrinks = b.alu(Op::CmpNe, &[is_up, is_positive])?;
    let [one, minus] = [1, -1].map(|step| b.constant(Const::int(bits, step)));
    let step = b.alu(Op::Where, &[shrinks, minus, one])?;
    let number = bitcast(b, x, bits)?;
    let number = b.alu(Op::Add, &[number, step]).map_err(|error| error.in_op(OP))?;
    let next = bitcast(b, number, dtype)?;
    // From 0 to the least number of that side.
    let negative = b.constant(Const::int(bits, bits.int_range().map_or(0, |(least, _)| least + 1)));
    let least = b.alu(Op::Where, &[is_up, one, negative])?;
    let least = bitcast(b, least, dtype)?;
    let is_zero = super::arithmetic::eq(b, x, zero)?;
    let next = b.alu(Op::Where, &[is_zero, least, next])?;
    let is_there = super::arithmetic::eq(b, x, other)?;
    let next = b.alu(Op::Where, &[is_there, other, next])?;
    // A sum with a nan is nan.
    let sum = b.alu(Op::Add, &[x, other])?;
    let (left, right) = (b.alu(Op::CmpNe, &[x, x])?, b.alu(Op::CmpNe, &[other, other])?);
    let is_nan = b.alu(Op::Or, &[left, right])?;
    b.alu(Op::Where, &[is_nan, sum, next])
}

/// A mantissa from 1/2 to 1 (without it) and a whole power of two (i32) whose product `x` is; 0, infinities and nan are
/// their own mantissas.
pub fn frexp(b: &mut dyn Builder, x: NodeId) -> Result<Vec<NodeId>> {
    let x = to_float(b, x)?;
    let dtype = dtype_of(b, x);
    let wide = dtype.accumulator();
    let x = cast(b, x, wide)?;
    let (bits, fraction, bias) = if wide == DType::F64 { (DType::I64, 52, 1023) } else { (DType::I32, 23, 127) };
    // The exponent bits of every subnormal are 0, so it is scaled to a normal number first.
    let (least, zero) = (like(b, x, (2f64).powi(1 - bias)), like(b, x, 0.0));
    let magnitude = abs(b, x)?;
    let is_small = b.alu(Op::CmpLt, &[magnitude, least])?;
    let raised = scale(b, magnitude, (2f64).powi(fraction + 1))?;
    let magnitude = b.alu(Op::Where, &[is_small, raised, magnitude])?;
    let magnitude = b.alu(Op::Detach, &[magnitude])?;
    let number = bitcast(b, magnitude, bits)?;
    let [shift, half, lift, none] =
        [fraction, bias - 1, fraction + 1, 0].map(|number| b.constant(Const::int(bits, number.into())));
    let power = b.alu(Op::Shr, &[number, shift])?;
    let power = super::arithmetic::sub(b, power, half)?;
    let lifted = super::arithmetic::sub(b, power, lift)?;
    let power = b.alu(Op::Where, &[is_small, lifted, power])?;
    let (is_zero, is_finite) = (super::arithmetic::eq(b, x, zero)?, super::elementwise::isfinite(b, x)?);
    let nonzero = super::arithmetic::logical_not(b, is_zero)?;
    let is_known = b.alu(Op::And, &[nonzero, is_finite])?;
    let power = b.alu(Op::Where, &[is_known, power, none])?;
    // Two factors, as one alone may be no float: `x · 2^-⌊e/2⌋ · 2^-⌈e/2⌉`.
    let one = b.constant(Const::int(bits, 1));
    let first = b.alu(Op::Shr, &[power, one])?;
    let second = super::arithmetic::sub(b, power, first)?;
    let mut mantissa = x;
    for part in [first, second] {
        // 2^-e by its bits.
        let exponent = b.constant(Const::int(bits, bias.into()));
        let exponent = super::arithmetic::sub(b, exponent, part)?;
        let exponent = b.alu(Op::Shl, &[exponent, shift])?;
        let factor = bitcast(b, exponent, wide)?;
        mantissa = b.alu(Op::Mul, &[mantissa, factor])?;
    }
    Ok(vec![cast(b, mantissa, dtype)?, cast(b, power, DType::I32)?])
}
