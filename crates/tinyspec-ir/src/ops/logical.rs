//! Logic of numbers, comparisons that pass nan by, and sums with weights.

use super::arithmetic::{add, div, maximum, minimum, mul};
use super::elementwise::isnan;
use super::{cast, dtype_of, in_wide_of, like, promote};
use crate::{Builder, DType, NodeId, Op, Result};

/// Both as `[x != 0]`.
fn truths(b: &mut dyn Builder, op: Op, name: &str, x: NodeId, y: NodeId) -> Result<NodeId> {
    let (x, y) = (cast(b, x, DType::Bool)?, cast(b, y, DType::Bool)?);
    b.alu(op, &[x, y]).map_err(|error| error.in_op(name))
}

/// `[x != 0 and y != 0]`.
pub fn logical_and(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    truths(b, Op::And, "logical_and", x, y)
}

/// `[x != 0 or y != 0]`.
pub fn logical_or(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    truths(b, Op::Or, "logical_or", x, y)
}

/// `[x != 0]` and `[y != 0]` differ.
pub fn logical_xor(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    truths(b, Op::Xor, "logical_xor", x, y)
}

/// The other one where one is nan.
fn unless_nan(
    b: &mut dyn Builder,
    name: &str,
    x: NodeId,
    y: NodeId,
    choose: fn(&mut dyn Builder, NodeId, NodeId) -> Result<NodeId>,
) -> Result<NodeId> {
    let (x, y) = promote(b, name, x, y)?;
    if !dtype_of(b, x).is_float() {
        return choose(b, x, y).map_err(|error| error.in_op(name));
    }
    let (no_x, no_y) = (isnan(b, x)?, isnan(b, y)?);
    let left = b.alu(Op::Where, &[no_x, y, x]).map_err(|error| error.in_op(name))?;
    let right = b.alu(Op::Where, &[no_y, x, y])?;
    choose(b, left, right)
}

/// The larger one, and the other one of nan.
pub fn fmax(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    unless_nan(b, "fmax", x, y, maximum)
}

/// The smaller one, and the other one of nan.
pub fn fmin(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    unless_nan(b, "fmin", x, y, minimum)
}

/// The sign bit, of -0 too.
pub fn signbit(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    if dtype_of(b, x).is_float() {
        return super::arithmetic::is_negative(b, x);
    }
    let zero = like(b, x, 0.0);
    b.alu(Op::CmpLt, &[x, zero])
}

/// `x + value * first * second`.
pub fn addcmul(b: &mut dyn Builder, x: NodeId, first: NodeId, second: NodeId, value: f64) -> Result<NodeId> {
    let sum = |b: &mut dyn Builder, [x, first, second]: [NodeId; 3]| {
        let product = mul(b, first, second).map_err(|error| error.in_op("addcmul"))?;
        weighted(b, "addcmul", x, product, value)
    };
    let operands = [x, first, second];
    let is_float = super::common(b, "addcmul", &operands)?.is_float();
    if is_float { in_wide_of(b, "addcmul", operands, sum) } else { sum(b, operands) }
}

/// `x + value * first / second`.
pub fn addcdiv(b: &mut dyn Builder, x: NodeId, first: NodeId, second: NodeId, value: f64) -> Result<NodeId> {
    in_wide_of(b, "addcdiv", [x, first, second], |b, [x, first, second]| {
        let quotient = div(b, first, second).map_err(|error| error.in_op("addcdiv"))?;
        weighted(b, "addcdiv", x, quotient, value)
    })
}

fn weighted(b: &mut dyn Builder, name: &str, x: NodeId, summand: NodeId, value: f64) -> Result<NodeId> {
    let summand = match value {
        1.0 => summand,
        value if value == value.trunc() => super::elementwise::scale_given(b, summand, value)?,
        value => {
            let summand = super::to_float(b, summand)?;
            super::elementwise::scale_given(b, summand, value)?
        }
    };
    add(b, x, summand).map_err(|error| error.in_op(name))
}

/// `x * 2^exponent`.
pub fn ldexp(b: &mut dyn Builder, x: NodeId, exponent: NodeId) -> Result<NodeId> {
    let x = super::to_float(b, x)?;
    let dtype = dtype_of(b, x);
    let exponent = cast(b, exponent, dtype.accumulator())?;
    let power = b.alu(Op::Exp2, &[exponent])?;
    let product = mul(b, x, power).map_err(|error| error.in_op("ldexp"))?;
    cast(b, product, dtype)
}
