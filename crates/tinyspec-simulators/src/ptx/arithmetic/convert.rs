//! `cvt`: numbers of one type as numbers of another.

use super::super::types::Type;
use super::{Each, Shape, WARP};
use crate::float::{BF16, E4M3, E5M2, F16, F32, Format, Rounding, TF32, round_to_integer};
use std::sync::Arc;

/// The modifiers that the suffixes of a conversion encode.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Conversion {
    /// `.rn`, `.rz`, `.rm`, `.rp`, `.rna`: to a float.
    pub to_float: Option<Rounding>,
    /// `.rni`, `.rzi`, `.rmi`, `.rpi`: to an integer, or a float without a fraction.
    pub to_integer: Option<Rounding>,
    pub flush: bool,
    pub saturate: bool,
    /// Too large numbers become the largest.
    pub finite: bool,
    pub relu: bool,
}

fn format(kind: Type) -> Option<Format> {
    Some(match kind {
        Type::F16 => F16,
        Type::BF16 => BF16,
        Type::F32 => F32,
        Type::TF32 => TF32,
        _ => return None,
    })
}

/// The conversion of one value, into a register of `register` bits.
pub(in super::super) fn convert(to: Type, from: Type, how: Conversion, register: u32) -> Option<Each> {
    match (to, from) {
        _ if to.is_integer() && from.is_integer() => integers(to, from, how, register),
        _ if to.is_integer() && from.is_float() => float_to_integer(to, from, how, register),
        _ if to.is_float() && from.is_integer() => integer_to_float(to, from, how),
        _ if to.is_float() && from.is_float() => floats(to, from, how),
        _ => packed(to, from, how),
    }
}

/// A value of the type, with its sign.
fn integer(kind: Type, bits: u64) -> i128 {
    let unused = 64 - kind.bits();
    if kind.is_signed() { ((bits << unused) as i64 >> unused).into() } else { (bits << unused >> unused).into() }
}

fn range(kind: Type) -> (i128, i128) {
    match kind.is_signed() {
        true => (-(1 << (kind.bits() - 1)), (1 << (kind.bits() - 1)) - 1),
        false => (0, (1 << kind.bits()) - 1),
    }
}

/// A value of the type in a register, which its sign or zeros fill.
fn in_register(kind: Type, value: i128, register: u32) -> u64 {
    let bits = integer(kind, value as u64) as u64;
    if register == 64 { bits } else { bits & ((1 << register) - 1) }
}

fn integers(to: Type, from: Type, how: Conversion, register: u32) -> Option<Each> {
    if how.to_float.is_some() || how.to_integer.is_some() || how.flush {
        return None;
    }
    let (low, high) = range(to);
    Some(match how.saturate {
        true => Arc::new(move |bits, _| in_register(to, integer(from, bits).clamp(low, high), register)),
        false => Arc::new(move |bits, _| in_register(to, integer(from, bits), register)),
    })
}

fn number(kind: Type, bits: u64, flush: bool) -> f64 {
    match format(kind) {
        None => f64::from_bits(bits),
        Some(format) => format.decode(if flush { format.flush(bits) } else { bits }),
    }
}

fn float_to_integer(to: Type, from: Type, how: Conversion, register: u32) -> Option<Each> {
    let rounding = how.to_integer?;
    if how.flush && from != Type::F32 {
        return None;
    }
    let (low, high) = range(to);
    // Of nan a conversion from or to 64 bits makes the highest bit alone.
    let of_nan = match from == Type::F64 || to.bits() == 64 {
        true => 1i128 << (to.bits() - 1),
        false => 0,
    };
    Some(Arc::new(move |bits, _| {
        let value = number(from, bits, how.flush);
        if value.is_nan() {
            return in_register(to, of_nan, register);
        }
        let magnitude = round_to_integer(value.abs(), rounding, value < 0.0);
        let whole = if value < 0.0 { -magnitude } else { magnitude };
        in_register(to, (whole as i128).clamp(low, high), register)
    }))
}

/// An integer as f64, rounded to odd.
fn integer_to_odd(value: i128) -> f64 {
    let magnitude = value.unsigned_abs() as u64;
    let excess = 11u32.saturating_sub(magnitude.leading_zeros());
    let kept = magnitude >> excess;
    let lost = magnitude & ((1 << excess) - 1) != 0;
    let odd = ((kept | u64::from(lost)) as f64) * f64::from(2u32.pow(excess));
    if value < 0 { -odd } else { odd }
}

fn integer_to_float(to: Type, from: Type, how: Conversion) -> Option<Each> {
    let rounding = how.to_float.filter(|rounding| *rounding != Rounding::Away)?;
    if how.flush || how.to_integer.is_some() {
        return None;
    }
    let saturated = move |value: i128| if how.saturate { value.clamp(0, 1) } else { value };
    match format(to) {
        None if rounding == Rounding::Even => {
            Some(Arc::new(move |bits, _| (saturated(integer(from, bits)) as f64).to_bits()))
        }
        None if from.bits() < 64 => Some(Arc::new(move |bits, _| (saturated(integer(from, bits)) as f64).to_bits())),
        None => None,
        Some(format) => {
            Some(Arc::new(move |bits, _| format.encode(integer_to_odd(saturated(integer(from, bits))), rounding)))
        }
    }
}

/// Bits of a value in a format, after what the suffixes say.
fn encoded(format: Format, value: f64, rounding: Rounding, how: Conversion) -> u64 {
    if how.saturate {
        let clamped = if value > 0.0 { value.min(1.0) } else { 0.0 };
        return format.encode(clamped, rounding);
    }
    if how.relu && value < 0.0 {
        return 0;
    }
    let bits = match how.finite && !value.is_nan() {
        true => {
            let bits = format.encode(value, rounding);
            let sign = 1 << (format.exponent + format.mantissa);
            if bits & (sign - 1) > format.largest() { bits & sign | format.largest() } else { bits }
        }
        false => format.encode(value, rounding),
    };
    if how.flush && format == F32 { format.flush(bits) } else { bits }
}

fn floats(to: Type, from: Type, how: Conversion) -> Option<Each> {
    let is_narrower = match (format(to), format(from)) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(to), Some(from)) => to.mantissa < from.mantissa || to.exponent < from.exponent,
    };
    let flush = how.flush && (from == Type::F32 || to == Type::F32);
    if how.flush && !flush {
        return None;
    }
    if let Some(rounding) = how.to_integer {
        // Between floats of one size: without a fraction.
        if to != from || how.to_float.is_some() {
            return None;
        }
        return Some(Arc::new(move |bits, _| {
            let value = number(from, bits, flush);
            if value.is_nan() {
                return format(to).map_or(bits | 1 << 51, |format| format.nan);
            }
            let whole = round_to_integer(value.abs(), rounding, value < 0.0).copysign(value);
            match format(to) {
                Some(format) => encoded(format, whole, Rounding::Even, how),
                None if how.saturate => (if whole > 0.0 { whole.min(1.0) } else { 0.0 }).to_bits(),
                None => whole.to_bits(),
            }
        }));
    }
    let rounding = match (how.to_float, is_narrower) {
        (Some(rounding), true) if rounding != Rounding::Away || to == Type::TF32 => rounding,
        (None, false) => Rounding::Even,
        _ => return None,
    };
    // tf32 lies in a register as f32 does.
    let shift = if to == Type::TF32 { 13 } else { 0 };
    match format(to) {
        Some(format) => {
            Some(Arc::new(move |bits, _| encoded(format, number(from, bits, flush), rounding, how) << shift))
        }
        None => Some(Arc::new(move |bits, _| {
            let value = number(from, bits, flush);
            match how.saturate {
                true => (if value > 0.0 { value.min(1.0) } else { 0.0 }).to_bits(),
                false => value.to_bits(),
            }
        })),
    }
}

/// Pairs: the first operand is the upper half.
fn packed(to: Type, from: Type, how: Conversion) -> Option<Each> {
    let pair = |kind| match kind {
        Type::F16x2 => Some((F16, 16)),
        Type::BF16x2 => Some((BF16, 16)),
        Type::E4M3x2 => Some((E4M3, 8)),
        Type::E5M2x2 => Some((E5M2, 8)),
        _ => None,
    };
    let (to_format, to_bits) = pair(to)?;
    if how.to_integer.is_some() || how.saturate || how.flush {
        return None;
    }
    let is_byte = to_bits == 8;
    let rounding = how.to_float.filter(|rounding| matches!(rounding, Rounding::Even | Rounding::Zero))?;
    if is_byte && !(how.finite && rounding == Rounding::Even) {
        return None;
    }
    let put = move |value: f64| encoded(to_format, value, rounding, how);
    match from {
        Type::F32 => Some(Arc::new(move |high, low| put(F32.decode(high)) << to_bits | put(F32.decode(low)))),
        _ => {
            let (from_format, from_bits) = pair(from)?;
            // From bytes to f16 every value is exact; between pairs of 16 bits there is no conversion.
            if from_bits == to_bits || (!is_byte && to != Type::F16x2) {
                return None;
            }
            let mask = (1 << from_bits) - 1;
            Some(Arc::new(move |bits, _| {
                put(from_format.decode(bits >> from_bits & mask)) << to_bits | put(from_format.decode(bits & mask))
            }))
        }
    }
}

/// Two operands go into one register.
pub(in super::super) fn takes_two(to: Type, from: Type) -> bool {
    from == Type::F32 && matches!(to, Type::F16x2 | Type::BF16x2 | Type::E4M3x2 | Type::E5M2x2)
}

/// Frequent conversions, in loops over all lanes.
pub(in super::super) fn fast(to: Type, from: Type, how: Conversion, register: u32) -> Option<Shape> {
    if how.flush || how.saturate || how.finite || how.relu {
        return None;
    }
    let is_plain = how.to_float.is_none() && how.to_integer.is_none();
    let is_even = how.to_float == Some(Rounding::Even) && how.to_integer.is_none();
    Some(match (to, from) {
        (Type::U64 | Type::S64, Type::U32) if is_plain => Shape::LW(|x, out| {
            for lane in 0..WARP {
                out[lane] = x[lane].into();
            }
        }),
        (Type::U64 | Type::S64, Type::S32) if is_plain => Shape::LW(|x, out| {
            for lane in 0..WARP {
                out[lane] = x[lane] as i32 as i64 as u64;
            }
        }),
        (Type::U32 | Type::S32, Type::U64 | Type::S64) if is_plain && register == 32 => Shape::WL(|x, out| {
            for lane in 0..WARP {
                out[lane] = x[lane] as u32;
            }
        }),
        (Type::F32, Type::S32) if is_even => Shape::WW(|x, out| {
            for lane in 0..WARP {
                out[lane] = (x[lane] as i32 as f32).to_bits();
            }
        }),
        (Type::F32, Type::U32) if is_even => Shape::WW(|x, out| {
            for lane in 0..WARP {
                out[lane] = (x[lane] as f32).to_bits();
            }
        }),
        (Type::F32, Type::F16) if is_plain => Shape::WW(|x, out| {
            for lane in 0..WARP {
                out[lane] = half_to_single(x[lane]);
            }
        }),
        (Type::F32, Type::BF16) if is_plain => Shape::WW(|x, out| {
            for lane in 0..WARP {
                let bits = x[lane] << 16;
                out[lane] = if f32::from_bits(bits).is_nan() { F32.nan as u32 } else { bits };
            }
        }),
        (Type::F64, Type::F32) if is_plain => Shape::LW(|x, out| {
            for lane in 0..WARP {
                out[lane] = f64::from(f32::from_bits(x[lane])).to_bits();
            }
        }),
        (Type::F32, Type::F64) if is_even => Shape::WL(|x, out| {
            for lane in 0..WARP {
                let value = f64::from_bits(x[lane]) as f32;
                out[lane] = if value.is_nan() { F32.nan as u32 } else { value.to_bits() };
            }
        }),
        _ => return None,
    })
}

#[inline(always)]
fn half_to_single(bits: u32) -> u32 {
    let magnitude = (bits & 0x7fff) << 13;
    // The exponents' biases differ by 112; what is subnormal as f16 is normal as f32.
    let scaled = (f32::from_bits(magnitude) * f32::from_bits(0x7780_0000)).to_bits();
    let finite = if magnitude >= 0x0f80_0000 { 0x7f80_0000 } else { scaled };
    let value = if magnitude > 0x0f80_0000 { 0x7fff_ffff } else { finite };
    if magnitude > 0x0f80_0000 { value } else { value | (bits & 0x8000) << 16 }
}
