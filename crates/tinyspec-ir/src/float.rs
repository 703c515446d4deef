//! Correct rounding to the small float formats.

use crate::DType;

/// `value` rounded to the nearest value of a float `dtype` (ties to even); other dtypes leave it alone.
///
/// f8e4m3 has no infinity: overflow gives nan.
pub fn round(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::F32 => value as f32 as f64,
        _ => match format(dtype) {
            Some(format) => decode(format, encode(format, value)),
            None => value,
        },
    }
}

/// The largest value of a float `dtype`: infinity, if the format has one.
pub fn largest(dtype: DType) -> f64 {
    match format(dtype) {
        Some(format) if !format.has_infinity => decode(format, encode(format, f64::INFINITY) - 1),
        _ => f64::INFINITY,
    }
}

/// Bits of `value` in the storage of a float `dtype` (zero-extended).
pub fn to_bits(dtype: DType, value: f64) -> u64 {
    match dtype {
        DType::F64 => value.to_bits(),
        DType::F32 => (value as f32).to_bits() as u64,
        _ => format(dtype).map_or(0, |format| encode(format, value) as u64),
    }
}

/// The value with these storage bits.
pub fn from_bits(dtype: DType, bits: u64) -> f64 {
    match dtype {
        DType::F64 => f64::from_bits(bits),
        DType::F32 => f32::from_bits(bits as u32) as f64,
        _ => format(dtype).map_or(0.0, |format| decode(format, bits as u16)),
    }
}

/// A float format of at most 16 bits.
#[derive(Clone, Copy)]
struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    has_infinity: bool,
}

fn format(dtype: DType) -> Option<Format> {
    let (exponent_bits, mantissa_bits, has_infinity) = match dtype {
        DType::F16 => (5, 10, true),
        DType::BF16 => (8, 7, true),
        DType::F8E5M2 => (5, 2, true),
        DType::F8E4M3 => (4, 3, false),
        _ => return None,
    };
    Some(Format { exponent_bits, mantissa_bits, has_infinity })
}

/// The format of an 8-bit float's magnitude, in seven bits, for conversion code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EightBits {
    /// Bits of the mantissa.
    pub mantissa: i128,
    /// The exponent bias.
    pub bias: i128,
    /// The greatest finite code.
    pub greatest: i128,
    /// The code for overflow.
    pub overflow: i128,
    /// The code for nan.
    pub nan: i128,
}

impl EightBits {
    /// The layout of an 8-bit float; `None` for other dtypes.
    ///
    /// ```
    /// use tinyspec_ir::{DType, float::EightBits};
    /// let layout = EightBits::of(DType::F8E5M2).expect("eight bits");
    /// assert_eq!((layout.mantissa, layout.bias, layout.greatest, layout.overflow), (2, 15, 0x7b, 0x7c));
    /// assert_eq!(EightBits::of(DType::F16), None);
    /// ```
    pub fn of(dtype: DType) -> Option<EightBits> {
        let format = format(dtype).filter(|_| dtype.size() == 1)?;
        let code = |value| i128::from(encode(format, value));
        let (overflow, nan) = (code(f64::INFINITY), code(f64::NAN));
        let bias = (1 << (format.exponent_bits - 1)) - 1;
        Some(EightBits { mantissa: format.mantissa_bits.into(), bias, greatest: overflow - 1, overflow, nan })
    }
}

fn encode(format: Format, value: f64) -> u16 {
    let Format { exponent_bits, mantissa_bits, has_infinity } = format;
    let sign = (value.is_sign_negative() as u16) << (exponent_bits + mantissa_bits);
    let bias = (1i32 << (exponent_bits - 1)) - 1;
    let all_ones = (1u16 << (exponent_bits + mantissa_bits)) - 1;
    let infinity = ((1u16 << exponent_bits) - 1) << mantissa_bits;
    let nan = if has_infinity { infinity | 1 << (mantissa_bits - 1) } else { all_ones };
    if value.is_nan() {
        return sign | nan;
    }
    let magnitude = value.abs();
    let overflow = if has_infinity { infinity } else { nan };
    if magnitude.is_infinite() {
        return sign | overflow;
    }
    // The exponent, which subnormals share with the least normal number.
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(1 - bias);
    let unit = (exponent - mantissa_bits as i32) as f64;
    // Scaling by a power of two is exact here; the rounding happens once, to an integer count of units.
    let units = (magnitude * (-unit).exp2()).round_ties_even() as u32;
    // A carry out of the mantissa increments the exponent.
    let bits = (((exponent + bias - 1) as u32) << mantissa_bits) + units;
    let greatest = if has_infinity { infinity as u32 - 1 } else { nan as u32 - 1 };
    sign | if bits > greatest { overflow } else { bits as u16 }
}

fn decode(format: Format, bits: u16) -> f64 {
    let Format { exponent_bits, mantissa_bits, has_infinity } = format;
    let bias = (1i32 << (exponent_bits - 1)) - 1;
    let negative = bits >> (exponent_bits + mantissa_bits) & 1 == 1;
    let field = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
    let mantissa = bits & ((1 << mantissa_bits) - 1);
    let top = field == (1 << exponent_bits) - 1;
    let magnitude = if top && has_infinity {
        if mantissa == 0 { f64::INFINITY } else { f64::NAN }
    } else if top && mantissa == (1 << mantissa_bits) - 1 {
        f64::NAN
    } else {
        let (units, exponent) = match field {
            0 => (mantissa, 1 - bias),
            _ => (mantissa | 1 << mantissa_bits, field as i32 - bias),
        };
        units as f64 * ((exponent - mantissa_bits as i32) as f64).exp2()
    };
    if negative { -magnitude } else { magnitude }
}
