//! Conversions of 8-bit floats by integer arithmetic on their bits.

use super::emit::Emit;
use tinyspec_ir::float::EightBits;
use tinyspec_ir::{DType, NodeId, Op, Result};

/// Whether this is one of the types converted here.
pub(super) fn is_eight_bit(dtype: DType) -> bool {
    EightBits::of(dtype).is_some()
}

/// `value` as `dtype`, through f32 where an 8-bit float is on either side.
pub(super) fn convert(emit: &mut Emit, value: NodeId, dtype: DType) -> Result<NodeId> {
    let from = emit.graph.dtype(value);
    if from == dtype {
        return Ok(value);
    }
    let value = match EightBits::of(from) {
        Some(format) => decode(emit, value, &format)?,
        None => value,
    };
    match EightBits::of(dtype) {
        Some(format) => {
            let single = to_single(emit, value)?;
            encode(emit, single, &format, dtype)
        }
        None => emit.cast(value, dtype),
    }
}

/// `value` as an f32 that rounds to an 8-bit float like `value` itself: the bits of an f64 beyond 24 are kept as a
/// sticky bit, so that no false tie arises ("rounding to odd": Boldo and Melquiond, 2008).
fn to_single(emit: &mut Emit, value: NodeId) -> Result<NodeId> {
    let single = emit.cast(value, DType::F32)?;
    if emit.graph.dtype(value) != DType::F64 {
        return Ok(single);
    }
    let back = emit.cast(single, DType::F64)?;
    let (wide, wide_back) = (emit.bitcast(value, DType::I64)?, emit.bitcast(back, DType::I64)?);
    let (wide, wide_back) = (emit.mask(wide, i64::MAX.into())?, emit.mask(wide_back, i64::MAX.into())?);
    let bits = emit.bitcast(single, DType::I32)?;
    let (none, one) = (emit.int(DType::I32, 0), emit.int(DType::I32, 1));
    let is_beyond = emit.less(wide, wide_back)?;
    let step = emit.select(is_beyond, one, none)?;
    let bits = emit.sub(bits, step)?;
    let is_rounded = emit.differs(wide, wide_back)?;
    let rest = emit.select(is_rounded, one, none)?;
    let bits = emit.op(Op::Or, bits, rest)?;
    emit.bitcast(bits, DType::F32)
}

fn decode(emit: &mut Emit, value: NodeId, format: &EightBits) -> Result<NodeId> {
    let byte = emit.bitcast(value, DType::U8)?;
    let code = emit.cast(byte, DType::I32)?;
    let magnitude = emit.mask(code, 0x7f)?;
    // The fields move to their positions in f32, and the exponent is rebiased.
    let shifted = emit.shift_left(magnitude, 23 - format.mantissa)?;
    let bias = emit.int(DType::I32, (127 - format.bias) << 23);
    let normal = emit.add(shifted, bias)?;
    let normal = emit.bitcast(normal, DType::F32)?;
    // A subnormal is a count of units.
    let unit = emit.float(DType::F32, 2f64.powi((1 - format.bias - format.mantissa) as i32));
    let units = emit.cast(magnitude, DType::F32)?;
    let subnormal = emit.mul(units, unit)?;
    let least_normal = emit.int(DType::I32, 1 << format.mantissa);
    let is_subnormal = emit.less(magnitude, least_normal)?;
    let finite = emit.select(is_subnormal, subnormal, normal)?;
    let greatest = emit.int(DType::I32, format.greatest);
    let is_special = emit.less(greatest, magnitude)?;
    let (nan, infinity) = (emit.float(DType::F32, f64::NAN), emit.float(DType::F32, f64::INFINITY));
    let special = if format.overflow == format.nan {
        nan
    } else {
        let overflow = emit.int(DType::I32, format.overflow);
        let is_nan = emit.differs(magnitude, overflow)?;
        emit.select(is_nan, nan, infinity)?
    };
    let unsigned = emit.select(is_special, special, finite)?;
    let sign = emit.mask(code, 0x80)?;
    let sign = emit.shift_left(sign, 24)?;
    let bits = emit.bitcast(unsigned, DType::I32)?;
    let bits = emit.op(Op::Or, bits, sign)?;
    emit.bitcast(bits, DType::F32)
}

fn encode(emit: &mut Emit, value: NodeId, format: &EightBits, dtype: DType) -> Result<NodeId> {
    let bits = emit.bitcast(value, DType::I32)?;
    let magnitude = emit.mask(bits, 0x7fff_ffff)?;
    // Half a unit less one, and the last kept bit, make ties go to even; a carry moves into the exponent by itself.
    let dropped = 23 - format.mantissa;
    let last = emit.shift_right(magnitude, dropped)?;
    let last = emit.mask(last, 1)?;
    let half = emit.int(DType::I32, (1 << (dropped - 1)) - 1);
    let rounded = emit.add(magnitude, half)?;
    let rounded = emit.add(rounded, last)?;
    let rounded = emit.shift_right(rounded, dropped)?;
    let bias = emit.int(DType::I32, -((127 - format.bias) << format.mantissa));
    let normal = emit.add(rounded, bias)?;
    // Below the least normal, a sum with 2^23 units leaves the rounded count of units in the low bits.
    let shift = emit.float(DType::F32, 2f64.powi((1 - format.bias - format.mantissa + 23) as i32));
    let absolute = emit.bitcast(magnitude, DType::F32)?;
    let sum = emit.add(absolute, shift)?;
    let (sum, shift) = (emit.bitcast(sum, DType::I32)?, emit.bitcast(shift, DType::I32)?);
    let subnormal = emit.sub(sum, shift)?;
    let least_normal = emit.int(DType::I32, (128 - format.bias) << 23);
    let is_subnormal = emit.less(magnitude, least_normal)?;
    let finite = emit.select(is_subnormal, subnormal, normal)?;
    let (greatest, overflow) = (emit.int(DType::I32, format.greatest), emit.int(DType::I32, format.overflow));
    let is_large = emit.less(greatest, finite)?;
    let bounded = emit.select(is_large, overflow, finite)?;
    let infinity = emit.int(DType::I32, 0x7f80_0000);
    let is_nan = emit.less(infinity, magnitude)?;
    let nan = emit.int(DType::I32, format.nan);
    let code = emit.select(is_nan, nan, bounded)?;
    let sign = emit.shift_right(bits, 24)?;
    let sign = emit.mask(sign, 0x80)?;
    let code = emit.op(Op::Or, code, sign)?;
    let byte = emit.cast(code, DType::U8)?;
    emit.bitcast(byte, dtype)
}
