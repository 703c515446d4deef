//! Floats of every format: exact values as f64, and one rounding from there.
//!
//! A sum or product of narrow floats is computed in f64 rounded to odd: inexact results end in a one bit. Rounding such a
//! value to a format of at most 51 bits gives what rounding the exact result would, in every mode.

/// How a result is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To nearest, ties to even.
    Even,
    /// To nearest, ties away from zero.
    Away,
    Zero,
    Down,
    Up,
}

/// A binary format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub exponent: u32,
    pub mantissa: u32,
    /// The largest exponent holds numbers too, and nan is all ones: e4m3.
    pub is_finite: bool,
    /// The encoding of nan.
    pub nan: u64,
}

pub(crate) const F16: Format = Format { exponent: 5, mantissa: 10, is_finite: false, nan: 0x7fff };
pub(crate) const BF16: Format = Format { exponent: 8, mantissa: 7, is_finite: false, nan: 0x7fff };
pub(crate) const F32: Format = Format { exponent: 8, mantissa: 23, is_finite: false, nan: 0x7fff_ffff };
pub(crate) const TF32: Format = Format { exponent: 8, mantissa: 10, is_finite: false, nan: 0x3ffff };
pub(crate) const E4M3: Format = Format { exponent: 4, mantissa: 3, is_finite: true, nan: 0x7f };
pub(crate) const E5M2: Format = Format { exponent: 5, mantissa: 2, is_finite: false, nan: 0x7f };

impl Format {
    pub fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    fn sign_bit(self) -> u64 {
        1 << (self.exponent + self.mantissa)
    }

    fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.mantissa
    }

    /// The largest finite number.
    pub fn largest(self) -> u64 {
        if self.is_finite { self.nan - 1 } else { self.infinity() - 1 }
    }

    pub fn is_nan(self, bits: u64) -> bool {
        let magnitude = bits & (self.sign_bit() - 1);
        if self.is_finite { magnitude == self.nan } else { magnitude > self.infinity() }
    }

    pub fn is_subnormal(self, bits: u64) -> bool {
        let magnitude = bits & (self.sign_bit() - 1);
        magnitude != 0 && magnitude < 1 << self.mantissa
    }

    /// A subnormal number as a zero of its sign.
    pub fn flush(self, bits: u64) -> u64 {
        if self.is_subnormal(bits) { bits & self.sign_bit() } else { bits }
    }

    pub fn decode(self, bits: u64) -> f64 {
        let sign = if bits & self.sign_bit() != 0 { -1.0 } else { 1.0 };
        let magnitude = bits & (self.sign_bit() - 1);
        if self.is_nan(bits) {
            return f64::NAN;
        }
        if !self.is_finite && magnitude == self.infinity() {
            return sign * f64::INFINITY;
        }
        let field = (magnitude >> self.mantissa) as i32;
        let fraction = magnitude & ((1 << self.mantissa) - 1);
        let (significand, exponent) = match field {
            0 => (fraction, 1 - self.bias()),
            _ => (fraction | 1 << self.mantissa, field - self.bias()),
        };
        sign * significand as f64 * power_of_two(exponent - self.mantissa as i32)
    }

    /// Rounds a number, or what is rounded to odd; too large ones become infinite, or the largest where the mode says so,
    /// or where the format has no infinity.
    pub fn encode(self, value: f64, rounding: Rounding) -> u64 {
        if value.is_nan() {
            return self.nan;
        }
        let sign = if value.is_sign_negative() { self.sign_bit() } else { 0 };
        let magnitude = value.abs();
        if magnitude == f64::INFINITY {
            return sign | if self.is_finite { self.nan } else { self.infinity() };
        }
        if magnitude == 0.0 {
            return sign;
        }
        let is_negative = sign != 0;
        let exponent = (magnitude.to_bits() >> 52) as i32 - 1023;
        // The least bit of the result stands for this power of two.
        let unit = exponent.max(1 - self.bias()) - self.mantissa as i32;
        let scaled = magnitude * power_of_two(-unit);
        let count = round_to_integer(scaled, rounding, is_negative) as u64;
        // As an integer, a number's bits count units from zero on: a carry out of the mantissa is the next exponent.
        let bits = match exponent < 1 - self.bias() {
            true => count,
            false => (((exponent + self.bias() - 1) as u64) << self.mantissa) + count,
        };
        if bits <= self.largest() {
            return sign | bits;
        }
        let stays_finite = match rounding {
            Rounding::Even | Rounding::Away => false,
            Rounding::Zero => true,
            Rounding::Down => !is_negative,
            Rounding::Up => is_negative,
        };
        match (stays_finite, self.is_finite) {
            (true, _) => sign | self.largest(),
            (false, true) => sign | self.nan,
            (false, false) => sign | self.infinity(),
        }
    }
}

/// 2^exponent; below the range of normal numbers a subnormal or 0.
fn power_of_two(exponent: i32) -> f64 {
    match exponent {
        1024.. => f64::INFINITY,
        -1022..=1023 => f64::from_bits(((exponent + 1023) as u64) << 52),
        -1074..=-1023 => f64::from_bits(1 << (exponent + 1074)),
        _ => 0.0,
    }
}

/// A number ≥ 0 without its fraction; the mode is that of the number with its sign.
pub(crate) fn round_to_integer(magnitude: f64, rounding: Rounding, is_negative: bool) -> f64 {
    match rounding {
        Rounding::Even => magnitude.round_ties_even(),
        Rounding::Away => magnitude.round(),
        Rounding::Zero => magnitude.trunc(),
        Rounding::Down if is_negative => magnitude.ceil(),
        Rounding::Down => magnitude.floor(),
        Rounding::Up if is_negative => magnitude.floor(),
        Rounding::Up => magnitude.ceil(),
    }
}

/// `value`, which is `error` short of the exact result, rounded to odd: of that result's two neighbours, the one with a last bit of 1.
fn to_odd(value: f64, error: f64) -> f64 {
    if error == 0.0 || !value.is_finite() || value.to_bits() & 1 == 1 {
        return value;
    }
    if (error > 0.0) == (value > 0.0) || value == 0.0 {
        f64::from_bits(value.to_bits() + 1)
    } else {
        f64::from_bits(value.to_bits() - 1)
    }
}

/// The sum, rounded to odd.
pub(crate) fn add_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if !sum.is_finite() {
        return sum;
    }
    let part = sum - a;
    to_odd(sum, (a - (sum - part)) + (b - part))
}

/// The product of two numbers of at most 26 bits is exact.
pub(crate) fn multiply_add_odd(a: f64, b: f64, c: f64) -> f64 {
    add_odd(a * b, c)
}

/// The quotient of two numbers of at most 25 bits, rounded to odd.
pub(crate) fn divide_odd(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    if !quotient.is_finite() || quotient == 0.0 {
        return quotient;
    }
    // The remainder: exact as one multiply-add. Its sign relative to the divisor's says on which side the exact quotient is.
    let rest = (-quotient).mul_add(b, a);
    to_odd(quotient, if b < 0.0 { -rest } else { rest })
}

/// The square root of a number of at most 25 bits, rounded to odd.
pub(crate) fn root_odd(a: f64) -> f64 {
    let root = a.sqrt();
    if !root.is_finite() || root == 0.0 {
        return root;
    }
    to_odd(root, (-root).mul_add(root, a))
}
