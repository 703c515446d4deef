//! Binary ops with promotion, comparisons, and the spec's shorthands (Neg, Sub, CmpGt, …).

use super::{cast, dtype_of, in_wide_of, like, promote, to_float};
use crate::masks::repeated;
use crate::{Arg, Builder, Const, DType, Error, ErrorKind, Graph, NodeId, Op, Result};

fn binary(b: &mut dyn Builder, name: &str, op: Op, x: NodeId, y: NodeId) -> Result<NodeId> {
    let (x, y) = promote(b, name, x, y)?;
    b.alu(op, &[x, y]).map_err(|error| error.in_op(name))
}

/// `x + y`.
pub fn add(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    binary(b, "add", Op::Add, x, y)
}

/// `x * y`.
pub fn mul(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    binary(b, "mul", Op::Mul, x, y)
}

/// `-x`: Mul by -1.
pub fn neg(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    if dtype_of(b, x) == DType::Bool {
        return Err(Error::new(ErrorKind::DType, "neg", "a bool has no sign")
            .help("`logical_not` inverts it, and `logical_xor` tells two apart"));
    }
    let minus = b.constant(Const::int(dtype_of(b, x), -1));
    b.alu(Op::Mul, &[x, minus])
}

/// The `x` whose [`neg`] a node is.
pub fn negated(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let (Op::Mul, &[x, factor]) = (graph.op(node), graph.sources(node)) else { return None };
    let minus = Const::int(graph.dtype(node), -1);
    (graph.as_const(repeated(graph, factor)) == Some(minus)).then_some(x)
}

/// `x - y`: Add of Neg.
pub fn sub(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    let (x, y) = promote(b, "sub", x, y)?;
    let y = neg(b, y).map_err(|error| error.in_op("sub"))?;
    b.alu(Op::Add, &[x, y]).map_err(|error| error.in_op("sub"))
}

/// `x / y`, in floats: integers become the default float.
pub fn div(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    let (x, y) = promote(b, "div", x, y)?;
    let (x, y) = (to_float(b, x)?, to_float(b, y)?);
    b.alu(Op::Div, &[x, y]).map_err(|error| error.in_op("div"))
}

/// Quotient of integers, rounded down (`"floor"`) or toward zero (`"trunc"`); x / 0 is 0.
pub fn idiv(b: &mut dyn Builder, x: NodeId, y: NodeId, rounding: &str) -> Result<NodeId> {
    let (x, y) = promote(b, "idiv", x, y)?;
    let floor = b.alu(Op::Idiv, &[x, y]).map_err(|error| error.in_op("idiv"))?;
    if rounding_is_floor("idiv", rounding)? || dtype_of(b, x).is_unsigned() {
        return Ok(floor);
    }
    // Toward zero: one more where the exact quotient is negative and not whole.
    let remainder = b.alu(Op::Mod, &[x, y])?;
    let zero = like(b, x, 0.0);
    let inexact = b.alu(Op::CmpNe, &[remainder, zero])?;
    let (x_negative, y_negative) = (b.alu(Op::CmpLt, &[x, zero])?, b.alu(Op::CmpLt, &[y, zero])?);
    let negative = b.alu(Op::CmpNe, &[x_negative, y_negative])?;
    let defined = b.alu(Op::CmpNe, &[y, zero])?;
    let correct = b.alu(Op::And, &[inexact, negative])?;
    let correct = b.alu(Op::And, &[correct, defined])?;
    let dtype = dtype_of(b, x);
    let correction = cast(b, correct, dtype)?;
    b.alu(Op::Add, &[floor, correction])
}

fn rounding_is_floor(op: &str, rounding: &str) -> Result<bool> {
    match rounding {
        "floor" => Ok(true),
        "trunc" => Ok(false),
        _ => {
            Err(Error::new(ErrorKind::Value, op, format!("rounding `{rounding}` is unknown"))
                .help("`floor` or `trunc`"))
        }
    }
}

/// Remainder of the quotient that `rounding` names; by 0 it is x of integers.
pub fn imod(b: &mut dyn Builder, x: NodeId, y: NodeId, rounding: &str) -> Result<NodeId> {
    let (x, y) = promote(b, "imod", x, y)?;
    if rounding_is_floor("imod", rounding)? {
        return floored(b, "imod", x, y);
    }
    let quotient = idiv(b, x, y, rounding)?;
    let product = b.alu(Op::Mul, &[quotient, y])?;
    sub(b, x, product)
}

/// Floored remainder: the sign of `y`. By 0 it is x of integers, nan of floats.
pub fn modulo(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    let (x, y) = promote(b, "mod", x, y)?;
    floored(b, "mod", x, y)
}

fn floored(b: &mut dyn Builder, name: &str, x: NodeId, y: NodeId) -> Result<NodeId> {
    let remainder = b.alu(Op::Mod, &[x, y]).map_err(|error| error.in_op(name))?;
    unless_by_zero(b, y, remainder)
}

/// The op Mod is total, by 0 too; of floats there is no such remainder.
fn unless_by_zero(b: &mut dyn Builder, y: NodeId, remainder: NodeId) -> Result<NodeId> {
    if !dtype_of(b, y).is_float() {
        return Ok(remainder);
    }
    let (zero, nan) = (like(b, y, 0.0), like(b, y, f64::NAN));
    let defined = b.alu(Op::CmpNe, &[y, zero])?;
    b.alu(Op::Where, &[defined, remainder, nan])
}

/// Remainder with the sign of `x`, `x - y * trunc(x / y)`. By 0 it is x of integers, nan of floats.
pub fn fmod(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    let (x, y) = promote(b, "fmod", x, y)?;
    let zero = like(b, x, 0.0);
    if dtype_of(b, x).is_float() {
        // Not `abs(x)`, whose slope at 0 is 0: the slope here is 1.
        let (negative, minus) = (is_negative(b, x)?, neg(b, x)?);
        let magnitude = b.alu(Op::Where, &[negative, minus, x])?;
        let y_abs = super::elementwise::abs(b, y)?;
        let remainder = b.alu(Op::Mod, &[magnitude, y_abs]).map_err(|error| error.in_op("fmod"))?;
        let minus = neg(b, remainder)?;
        let remainder = b.alu(Op::Where, &[negative, minus, remainder])?;
        return unless_by_zero(b, y, remainder);
    }
    // The floored one has the sign of y. Magnitudes would not do: the least integer has none.
    let floored = b.alu(Op::Mod, &[x, y]).map_err(|error| error.in_op("fmod"))?;
    if dtype_of(b, x).is_unsigned() {
        return Ok(floored);
    }
    let (x_negative, negative) = (b.alu(Op::CmpLt, &[x, zero])?, b.alu(Op::CmpLt, &[floored, zero])?);
    let other_sign = b.alu(Op::CmpNe, &[x_negative, negative])?;
    let inexact = b.alu(Op::CmpNe, &[floored, zero])?;
    let turned = b.alu(Op::And, &[other_sign, inexact])?;
    let truncated = sub(b, floored, y)?;
    b.alu(Op::Where, &[turned, truncated, floored])
}

/// `x ^ y` in floats.
pub fn pow(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    let (x, y) = promote(b, "pow", x, y)?;
    let (x, y) = (to_float(b, x)?, to_float(b, y)?);
    b.alu(Op::Pow, &[x, y]).map_err(|error| error.in_op("pow"))
}

/// The larger one; nan if either is.
pub fn maximum(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    binary(b, "maximum", Op::Max, x, y)
}

/// The smaller one; nan if either is.
pub fn minimum(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    let (x, y) = promote(b, "minimum", x, y)?;
    let (x, y) = (reverse_order(b, x)?, reverse_order(b, y)?);
    let larger = b.alu(Op::Max, &[x, y]).map_err(|error| error.in_op("minimum"))?;
    reverse_order(b, larger)
}

/// The bijection that turns the order around: `-x` for floats, `!x` for integers (exact where `-x` would wrap).
pub(crate) fn reverse_order(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let dtype = dtype_of(b, x);
    if dtype.is_float() { neg(b, x) } else { not(b, x) }
}

/// Bitwise complement; of a bool, its negation.
pub fn not(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let dtype = dtype_of(b, x);
    let ones = b.constant(Const::int(dtype, if dtype == DType::Bool { 1 } else { -1 }));
    b.alu(Op::Xor, &[x, ones]).map_err(|error| error.in_op("not"))
}

/// `[x = 0]`: Not of any dtype.
pub fn logical_not(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let x = if dtype_of(b, x) == DType::Bool { x } else { cast(b, x, DType::Bool)? };
    not(b, x)
}

/// Bitwise or logical and.
pub fn and(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    binary(b, "and", Op::And, x, y)
}

/// Bitwise or logical or.
pub fn or(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    binary(b, "or", Op::Or, x, y)
}

/// Bitwise or logical exclusive or.
pub fn xor(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    binary(b, "xor", Op::Xor, x, y)
}

/// Shift left; a count beyond the width gives 0.
pub fn shl(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    binary(b, "shl", Op::Shl, x, y)
}

/// Shift right, arithmetic for signed types.
pub fn shr(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    binary(b, "shr", Op::Shr, x, y)
}

/// `[x < y]`.
pub fn lt(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    binary(b, "lt", Op::CmpLt, x, y)
}

/// `[x > y]`.
pub fn gt(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    binary(b, "gt", Op::CmpLt, y, x)
}

/// `[x != y]`.
pub fn ne(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    binary(b, "ne", Op::CmpNe, x, y)
}

/// `[x = y]`.
pub fn eq(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    let different = binary(b, "eq", Op::CmpNe, x, y)?;
    not(b, different)
}

/// `[x >= y]`; false if either is nan.
pub fn ge(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    let (x, y) = promote(b, "ge", x, y)?;
    if !dtype_of(b, x).is_float() {
        let less = binary(b, "ge", Op::CmpLt, x, y)?;
        return not(b, less);
    }
    let greater = binary(b, "ge", Op::CmpLt, y, x)?;
    let equal = eq(b, x, y)?;
    b.alu(Op::Or, &[greater, equal])
}

/// `[x <= y]`; false if either is nan.
pub fn le(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    ge(b, y, x).map_err(|error| error.in_op("le"))
}

/// `x` where `condition`, else `y`.
pub fn where_(b: &mut dyn Builder, condition: NodeId, x: NodeId, y: NodeId) -> Result<NodeId> {
    let (x, y) = promote(b, "where_", x, y)?;
    b.alu(Op::Where, &[condition, x, y]).map_err(|error| error.in_op("where_"))
}

/// `x + weight * (y - x)`.
pub fn lerp(b: &mut dyn Builder, x: NodeId, y: NodeId, weight: NodeId) -> Result<NodeId> {
    let moved = |b: &mut dyn Builder, [x, y, weight]: [NodeId; 3]| {
        let difference = sub(b, y, x)?;
        let step = mul(b, difference, weight)?;
        add(b, x, step)
    };
    let operands = [x, y, weight];
    let is_float = super::common(b, "lerp", &operands)?.is_float();
    let moved = if is_float { in_wide_of(b, "lerp", operands, moved) } else { moved(b, operands) };
    moved.map_err(|error| error.in_op("lerp"))
}

/// The magnitude of `x` with the sign of `y`.
pub fn copysign(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    let (x, y) = promote(b, "copysign", x, y)?;
    copysign_of(b, x, y)
}

/// [`copysign`] of one dtype.
pub(super) fn copysign_of(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    let magnitude = super::elementwise::abs(b, x)?;
    let negative = is_negative(b, y)?;
    let minus = neg(b, magnitude)?;
    b.alu(Op::Where, &[negative, minus, magnitude])
}

/// The sign bit, of -0 too: 1/-0 is -inf.
pub(super) fn is_negative(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let zero = like(b, x, 0.0);
    let below = b.alu(Op::CmpLt, &[x, zero])?;
    let reciprocal = b.add(Op::Recip, &[x], Arg::None)?;
    let reciprocal_below = b.alu(Op::CmpLt, &[reciprocal, zero])?;
    b.alu(Op::Or, &[below, reciprocal_below])
}

/// `log(exp(x) + exp(y))`: `max(x, y) + log(1 + e^-|x - y|)`.
pub fn logaddexp(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    in_wide_of(b, "logaddexp", [x, y], wide_logaddexp)
}

fn wide_logaddexp(b: &mut dyn Builder, [x, y]: [NodeId; 2]) -> Result<NodeId> {
    let larger = b.alu(Op::Max, &[x, y]).map_err(|error| error.in_op("logaddexp"))?;
    // Two equal infinities differ by 0.
    let different = b.alu(Op::CmpNe, &[x, y])?;
    let difference = sub(b, x, y)?;
    let zero = like(b, x, 0.0);
    let difference = b.alu(Op::Where, &[different, difference, zero])?;
    let distance = super::elementwise::abs(b, difference)?;
    let minus = neg(b, distance)?;
    let rest = super::hyperbolic::log1p_exp(b, minus)?;
    b.alu(Op::Add, &[larger, rest])
}
