//! `eval_op`: what every elementwise op computes, on scalars. The constant folder and all interpreters call it;
//! every backend is tested against it (SEMANTICS, "Numbers": every op is total).

mod threefry;

pub use threefry::threefry;

use crate::dim::floor_div;
use crate::{Const, DType, Error, ErrorKind, Op, Result};

/// The value of `op` on scalars. `dtype` is the node's own: the target of a Cast or Bitcast.
///
/// ```
/// use tinyspec_ir::{Const, DType, Op, eval::eval_op};
/// let (seven, zero) = (Const::int(DType::I32, -7), Const::int(DType::I32, 0));
/// let three = Const::int(DType::I32, 3);
/// assert_eq!(eval_op(Op::Idiv, DType::I32, &[seven, three])?, Const::int(DType::I32, -3));
/// assert_eq!(eval_op(Op::Idiv, DType::I32, &[seven, zero])?, zero);
/// # Ok::<(), tinyspec_ir::Error>(())
/// ```
///
/// # Errors
/// When `op` is not elementwise, or its operands are too few or of no value.
pub fn eval_op(op: Op, dtype: DType, operands: &[Const]) -> Result<Const> {
    let refuse = || Error::new(ErrorKind::Unsupported, op.name(), format!("no value for {operands:?} as {dtype}"));
    let value = match (op, operands) {
        (Op::Cast, [a]) => Some(cast(*a, dtype)),
        (Op::Bitcast, [a]) => bitcast(*a, dtype),
        (Op::Where, [condition, a, b]) => Some(if condition.bits != 0 { *a } else { *b }),
        (_, [a, ..]) if a.dtype.is_float() => {
            let floats: Option<Vec<f64>> = operands.iter().map(|operand| operand.as_float()).collect();
            floats.and_then(|floats| float(op, a.dtype, &floats))
        }
        (_, [a, ..]) => {
            let ints: Option<Vec<i128>> = operands.iter().map(|operand| operand.as_int()).collect();
            ints.and_then(|ints| int(op, a.dtype, &ints))
        }
        _ => None,
    };
    value.ok_or_else(refuse)
}

/// int → int wraps, float → int saturates with nan to 0, to bool is `!= 0`.
fn cast(value: Const, dtype: DType) -> Const {
    match (value.as_int(), value.as_float()) {
        (Some(value), _) if dtype == DType::F32 => Const::float(dtype, value as f32 as f64),
        (Some(value), _) => Const::int(dtype, value),
        (_, Some(value)) => Const::float(dtype, value),
        _ => value,
    }
}

fn bitcast(value: Const, dtype: DType) -> Option<Const> {
    if value.dtype.size() != dtype.size() {
        return None;
    }
    let bits = if value.dtype.is_float() {
        crate::float::to_bits(value.dtype, f64::from_bits(value.bits))
    } else {
        value.bits
    };
    Some(if dtype.is_float() {
        Const { dtype, bits: crate::float::from_bits(dtype, bits & mask(dtype)).to_bits() }
    } else {
        Const::int(dtype, bits as i64 as i128)
    })
}

fn mask(dtype: DType) -> u64 {
    u64::MAX >> (64 - 8 * dtype.size().clamp(1, 8))
}

/// One rounding to the operands' type. Arithmetic of types narrower than f64 is done in f64, where a sum, product,
/// quotient or root of two such values rounds to the same result as if done directly.
fn float(op: Op, operand: DType, operands: &[f64]) -> Option<Const> {
    let truth = |value: bool| Some(Const::int(DType::Bool, value as i128));
    let value = match (op, operands) {
        (Op::CmpLt, [a, b]) => return truth(a < b),
        (Op::CmpNe, [a, b]) => return truth(a != b),
        (Op::Recip, [a]) => 1.0 / a,
        (Op::Trunc, [a]) => a.trunc(),
        (Op::Exp2, [a]) => a.exp2(),
        (Op::Log2, [a]) => a.log2(),
        (Op::Sin, [a]) => a.sin(),
        (Op::Sqrt, [a]) => a.sqrt(),
        (Op::Add, [a, b]) => a + b,
        (Op::Mul, [a, b]) => a * b,
        (Op::Div, [a, b]) => a / b,
        (Op::Max, [a, b]) => maximum(*a, *b),
        (Op::Pow, [a, b]) => a.powf(*b),
        (Op::Mod, [a, b]) => float_mod(*a, *b),
        (Op::Idiv, [a, b]) => {
            if *b == 0.0 {
                0.0
            } else {
                (a / b).floor()
            }
        }
        (Op::Mulacc, [a, b, c]) if operand == DType::F32 => (*a as f32).mul_add(*b as f32, *c as f32) as f64,
        (Op::Mulacc, [a, b, c]) => a.mul_add(*b, *c),
        _ => return None,
    };
    Some(Const::float(operand, value))
}

/// nan if either is; +0 over -0.
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

/// Floored remainder of floats: the sign of the divisor; x mod 0 = x.
pub fn float_mod(a: f64, b: f64) -> f64 {
    if b == 0.0 {
        return a;
    }
    let remainder = a % b;
    if remainder != 0.0 && (remainder < 0.0) != (b < 0.0) { remainder + b } else { remainder }
}

fn int(op: Op, operand: DType, operands: &[i128]) -> Option<Const> {
    let truth = |value: bool| Some(Const::int(DType::Bool, value as i128));
    let width = operand.size() as i128 * 8;
    let is_bool = operand == DType::Bool;
    let value = match (op, operands) {
        (Op::CmpLt, [a, b]) => return truth(a < b),
        (Op::CmpNe, [a, b]) => return truth(a != b),
        (Op::Trunc, [a]) => *a,
        // On bools, + and max are or, * is and.
        (Op::Add, [a, b]) if is_bool => a | b,
        (Op::Add, [a, b]) => a + b,
        (Op::Mul, [a, b]) => a.wrapping_mul(*b),
        (Op::Max, [a, b]) => *a.max(b),
        (Op::Idiv, [a, b]) => wide_floor_div(*a, *b),
        (Op::Mod, [a, b]) => {
            if *b == 0 {
                *a
            } else {
                a - wide_floor_div(*a, *b) * b
            }
        }
        (Op::Xor, [a, b]) => a ^ b,
        (Op::Or, [a, b]) => a | b,
        (Op::And, [a, b]) => a & b,
        // A negative count is a count beyond the width.
        (Op::Shl, [a, b]) => {
            if (0..width).contains(b) {
                a.wrapping_shl(*b as u32)
            } else {
                0
            }
        }
        (Op::Shr, [a, b]) => {
            if (0..width).contains(b) {
                a >> b
            } else if *a < 0 {
                -1
            } else {
                0
            }
        }
        (Op::Mulacc, [a, b, c]) => a.wrapping_mul(*b).wrapping_add(*c),
        (Op::Threefry, [counter, key]) => threefry(*counter as u64, *key as u64) as i128,
        _ => return None,
    };
    Some(Const::int(operand, value))
}

fn wide_floor_div(a: i128, b: i128) -> i128 {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) => floor_div(a, b) as i128,
        // Only u64 is wider than i64, and it has no negative values.
        _ => a.checked_div(b).unwrap_or(0),
    }
}
