//! x^y as 2^(y·log2 |x|), with the signs, zeros and infinities of IEEE 754.

use super::emit::Emit;
use super::exponential::{exp2_of_sum, log2_in_two_parts};
use super::magnitude::magnitude;
use tinyspec_ir::masks::repeated;
use tinyspec_ir::{Builder, Const, DType, Graph, NodeId, Op, Result};

/// The largest magnitude of a constant exponent that is computed by multiplication.
const FACTORS: f64 = 32.0;

/// The approximate number of nodes that [`by_products`] emits.
pub(super) const FEW: usize = 4;

/// The constant exponent of a power that [`by_products`] computes: a multiple of 1/2. For f64, only exponents that take
/// one or two operations qualify, since longer products would be less accurate than the general power.
pub(super) fn exponent_of_product(graph: &Graph, node: NodeId) -> Option<f64> {
    let (Op::Pow, &[_, exponent]) = (graph.op(node), graph.sources(node)) else { return None };
    let exponent = graph.as_const(repeated(graph, exponent)).and_then(Const::as_float)?;
    let is_short = matches!(exponent, 1.0 | 2.0 | 3.0 | -1.0 | -2.0 | 0.5 | -0.5);
    let has_wider = graph.dtype(node).size() < DType::F64.size();
    let is_product = has_wider && (2.0 * exponent).fract() == 0.0 && (0.5..=FACTORS).contains(&exponent.abs());
    (is_short || is_product).then_some(exponent)
}

/// `x ^ exponent`, without a logarithm.
pub(super) fn by_products(emit: &mut Emit, x: NodeId, exponent: f64) -> Result<NodeId> {
    match exponent {
        1.0 => Ok(x),
        2.0 => emit.mul(x, x),
        3.0 => {
            let square = emit.mul(x, x)?;
            emit.mul(square, x)
        }
        -1.0 => emit.graph.alu(Op::Recip, &[x]),
        // Squaring first could overflow or underflow where the result does not.
        -2.0 => {
            let reciprocal = emit.graph.alu(Op::Recip, &[x])?;
            emit.graph.alu(Op::Div, &[reciprocal, x])
        }
        0.5 => root(emit, x),
        -0.5 => {
            let root = root(emit, x)?;
            emit.graph.alu(Op::Recip, &[root])
        }
        _ => {
            let wide = emit.cast(x, DType::F64)?;
            let power = product(emit, wide, exponent)?;
            let dtype = emit.graph.dtype(x);
            emit.cast(power, dtype)
        }
    }
}

/// Exponentiation by squaring.
fn product(emit: &mut Emit, x: NodeId, exponent: f64) -> Result<NodeId> {
    let is_whole = exponent.fract() == 0.0;
    let mut total = if is_whole { None } else { Some(root(emit, x)?) };
    // Negative bases give nan through the root; powers of -0 and of negative infinity are positive.
    let mut square = if is_whole { x } else { magnitude(emit, x)? };
    let mut left = exponent.abs().trunc() as u32;
    while left > 0 {
        if left % 2 == 1 {
            total = Some(match total {
                Some(total) => emit.mul(total, square)?,
                None => square,
            });
        }
        left /= 2;
        if left > 0 {
            square = emit.mul(square, square)?;
        }
    }
    let total = total.unwrap_or_else(|| emit.number(x, 1.0));
    if exponent < 0.0 { emit.graph.alu(Op::Recip, &[total]) } else { Ok(total) }
}

/// `x ^ 0.5`: a square root, except that -0 gives 0 and negative infinity gives infinity.
fn root(emit: &mut Emit, x: NodeId) -> Result<NodeId> {
    let (zero, infinity) = (emit.number(x, 0.0), emit.number(x, f64::INFINITY));
    let root = emit.graph.alu(Op::Sqrt, &[x])?;
    let root = emit.add(root, zero)?;
    let negative = emit.number(x, f64::NEG_INFINITY);
    let is_other = emit.differs(x, negative)?;
    emit.select(is_other, root, infinity)
}

/// f32 powers are computed in f64: an error of the logarithm is multiplied by up to 128.
pub(super) fn pow_f32(emit: &mut Emit, sources: &[NodeId]) -> Result<NodeId> {
    let (x, y) = (emit.cast(sources[0], DType::F64)?, emit.cast(sources[1], DType::F64)?);
    let power = pow(emit, x, y)?;
    emit.cast(power, DType::F32)
}

pub(super) fn pow_f64(emit: &mut Emit, sources: &[NodeId]) -> Result<NodeId> {
    pow(emit, sources[0], sources[1])
}

fn pow(emit: &mut Emit, x: NodeId, y: NodeId) -> Result<NodeId> {
    let (zero, one, infinity) = (emit.number(x, 0.0), emit.number(x, 1.0), emit.number(x, f64::INFINITY));
    let nan = emit.number(x, f64::NAN);
    let bits = emit.bitcast(x, DType::I64)?;
    let absolute = magnitude(emit, x)?;

    // y·log2 |x| with the error of the product; |x| is replaced where it is 0, infinite or nan.
    let finite = emit.less(absolute, infinity)?;
    let positive = emit.less(zero, absolute)?;
    let regular = emit.op(Op::And, finite, positive)?;
    let base = emit.select(regular, absolute, one)?;
    let (high, low) = log2_in_two_parts(emit, base)?;
    let log = emit.add(high, low)?;
    let lost = emit.sub(high, log)?;
    let low = emit.add(lost, low)?;
    let product = emit.mul(y, log)?;
    let minus_product = emit.number(x, -1.0);
    let minus_product = emit.mul(product, minus_product)?;
    let error = emit.fma(y, log, minus_product)?;
    let error = emit.fma(y, low, error)?;
    // Beyond this, 2^x is 0 or infinite, and the error term may be infinity minus infinity.
    let (least, greatest) = (emit.number(x, -1100.0), emit.number(x, 1100.0));
    let above = emit.less(least, product)?;
    let below = emit.less(product, greatest)?;
    let ordinary = emit.op(Op::And, above, below)?;
    let error = emit.select(ordinary, error, zero)?;
    let regular_power = exp2_of_sum(emit, product, error)?;
    // `exp2_of_sum` clamps the product to 1024, and a negative error would then give a finite result.
    let greatest = emit.number(x, 1024.0);
    let overflows = emit.less(greatest, product)?;
    let regular_power = emit.select(overflows, infinity, regular_power)?;

    // 0 and infinity: 0^y is 0 or infinite by the sign of y.
    let y_negative = emit.less(y, zero)?;
    let is_zero = emit.less(absolute, one)?;
    let grows = emit.differs(is_zero, y_negative)?;
    let irregular = emit.select(grows, zero, infinity)?;
    let infinite_grows = emit.select(y_negative, zero, infinity)?;
    let irregular = emit.select(is_zero, irregular, infinite_grows)?;
    let magnitude = emit.select(regular, regular_power, irregular)?;

    // 1 to the power of infinity is 1.
    let not_one = emit.differs(absolute, one)?;
    let magnitude = emit.select(not_one, magnitude, one)?;

    // Negative bases.
    let whole = emit.graph.alu(Op::Trunc, &[y])?;
    let fractional = emit.differs(whole, y)?;
    let half = emit.number(x, 0.5);
    let half = emit.mul(y, half)?;
    let half_whole = emit.graph.alu(Op::Trunc, &[half])?;
    let half_fractional = emit.differs(half_whole, half)?;
    let minus_one = emit.number(x, -1.0);
    let negative = emit.mul(magnitude, minus_one)?;
    let odd = emit.select(fractional, zero, one)?;
    let odd = emit.select(half_fractional, odd, zero)?;
    let odd = emit.differs(odd, zero)?;
    let zero_bits = emit.int(DType::I64, 0);
    let sign = emit.less(bits, zero_bits)?;
    let flips = emit.op(Op::And, sign, odd)?;
    let value = emit.select(flips, negative, magnitude)?;
    let below_zero = emit.less(x, zero)?;
    let undefined = emit.op(Op::And, below_zero, finite)?;
    let undefined = emit.op(Op::And, undefined, fractional)?;
    let value = emit.select(undefined, nan, value)?;

    // nan propagates, except that x^0 and 1^y are 1 for every x and y.
    let (x_nan, y_nan) = (emit.is_nan(x)?, emit.is_nan(y)?);
    let any_nan = emit.op(Op::Or, x_nan, y_nan)?;
    let value = emit.select(any_nan, nan, value)?;
    let x_differs = emit.differs(x, one)?;
    let value = emit.select(x_differs, value, one)?;
    let y_differs = emit.differs(y, zero)?;
    emit.select(y_differs, value, one)
}
