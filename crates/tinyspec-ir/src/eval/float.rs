//! Floats: a lane is the f64 of the same value, and an op rounds once to its type. A sum, product, quotient or root of
//! values of a narrower type, computed in f64 and then rounded, gives the correctly rounded result.

use super::{binary, ternary, unary};
use crate::{DType, Op};

pub(super) fn lanes(op: Op, dtype: DType, sources: &[&[u64]], result: &mut [u64]) -> bool {
    match dtype {
        DType::F64 => rounded(op, sources, result, |value| value, f64::mul_add),
        DType::F32 => rounded(op, sources, result, |value| value as f32 as f64, mul_add_to_odd),
        _ => rounded(op, sources, result, |value| crate::float::round(dtype, value), mul_add_to_odd),
    }
}

fn rounded(
    op: Op,
    sources: &[&[u64]],
    result: &mut [u64],
    round: impl Fn(f64) -> f64,
    mul_add: impl Fn(f64, f64, f64) -> f64,
) -> bool {
    let of = f64::from_bits;
    let lane = |value: f64| round(value).to_bits();
    match op {
        Op::Add => binary(sources, result, |a, b| lane(of(a) + of(b))),
        Op::Mul => binary(sources, result, |a, b| lane(of(a) * of(b))),
        Op::Div => binary(sources, result, |a, b| lane(of(a) / of(b))),
        Op::Max => binary(sources, result, |a, b| lane(maximum(of(a), of(b)))),
        Op::Mulacc => ternary(sources, result, |a, b, c| lane(mul_add(of(a), of(b), of(c)))),
        Op::CmpLt => binary(sources, result, |a, b| (of(a) < of(b)) as u64),
        Op::CmpNe => binary(sources, result, |a, b| (of(a) != of(b)) as u64),
        Op::Recip => unary(sources, result, |a| lane(1.0 / of(a))),
        Op::Trunc => unary(sources, result, |a| lane(of(a).trunc())),
        Op::Sqrt => unary(sources, result, |a| lane(of(a).sqrt())),
        Op::Exp2 => unary(sources, result, |a| lane(of(a).exp2())),
        Op::Log2 => unary(sources, result, |a| lane(of(a).log2())),
        Op::Sin => unary(sources, result, |a| lane(of(a).sin())),
        Op::Pow => binary(sources, result, |a, b| lane(of(a).powf(of(b)))),
        Op::Mod => binary(sources, result, |a, b| lane(float_mod(of(a), of(b)))),
        Op::Idiv => {
            binary(sources, result, |a, b| if of(b) == 0.0 { 0.0f64.to_bits() } else { lane((of(a) / of(b)).floor()) })
        }
        _ => false,
    }
}

/// nan if either is nan; +0 is above -0.
pub fn maximum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a == b {
        if a.is_sign_negative() { b } else { a }
    } else if a > b {
        a
    } else {
        b
    }
}

/// Floored remainder of floats, with the sign of the divisor; x mod 0 = x.
pub fn float_mod(a: f64, b: f64) -> f64 {
    if b == 0.0 {
        return a;
    }
    let remainder = a % b;
    if remainder != 0.0 && (remainder < 0.0) != (b < 0.0) { remainder + b } else { remainder }
}

/// `a * b + c` for values of at most 24 bits, rounded to odd: rounding it again to their type gives the fused result,
/// without a libm call on machines without a fused multiply-add.
fn mul_add_to_odd(a: f64, b: f64, c: f64) -> f64 {
    let product = a * b; // exact
    let sum = product + c;
    let virtual_c = sum - product;
    let error = (product - (sum - virtual_c)) + (c - virtual_c);
    if error.abs() > 0.0 && sum.to_bits() & 1 == 0 {
        // The exact sum lies between two neighbours: take the odd one.
        let away = (error > 0.0) == (sum > 0.0);
        return f64::from_bits(if away { sum.to_bits() + 1 } else { sum.to_bits() - 1 });
    }
    sum
}
