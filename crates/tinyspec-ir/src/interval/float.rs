//! Bounds of floats. nan is kept apart, and -0 is below +0, so that what they prove holds bit for bit.

use crate::eval::maximum;
use crate::{DType, float};

/// Every value is between `low` and `high`, inclusive, or else nan, which is possible only if `nan` says so. If all are
/// nan, no number lies between the bounds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Floats {
    /// The least number. -0 is below +0.
    pub low: f64,
    /// The greatest number.
    pub high: f64,
    /// Whether a value may be nan.
    pub nan: bool,
}

impl Floats {
    /// Nothing but nan.
    pub const NAN: Floats = Floats { low: f64::INFINITY, high: f64::NEG_INFINITY, nan: true };

    /// The range of a float dtype.
    pub fn of(dtype: DType) -> Floats {
        let high = float::largest(dtype);
        Floats { low: -high, high, nan: true }
    }

    /// This value alone.
    pub fn only(value: f64) -> Floats {
        if value.is_nan() { Floats::NAN } else { Floats { low: value, high: value, nan: false } }
    }

    /// Numbers between two ends, once they have been rounded to `dtype`: rounding is monotone, so it moves the bounds
    /// like the values between them.
    pub(crate) fn rounded(dtype: DType, low: f64, high: f64, nan: bool) -> Floats {
        let (first, last) = (float::round(dtype, low), float::round(dtype, high));
        // A format without infinities overflows to nan.
        let overflows = first.is_nan() || last.is_nan();
        if first.is_nan() && last.is_nan() && (low > 0.0 || high < 0.0) {
            return Floats::NAN;
        }
        let largest = float::largest(dtype);
        Floats {
            low: if first.is_nan() { -largest } else { first },
            high: if last.is_nan() { largest } else { last },
            nan: nan || overflows,
        }
    }

    /// Whether all values are nan.
    pub fn is_empty(self) -> bool {
        self.low > self.high
    }

    /// Whether all values are finite numbers.
    pub fn is_finite(self) -> bool {
        !self.nan && self.low.is_finite() && self.high.is_finite()
    }

    /// Whether 0 of either sign is between the bounds.
    fn has_zero(self) -> bool {
        self.low <= 0.0 && 0.0 <= self.high
    }

    fn has(self, infinity: f64) -> bool {
        !self.is_empty() && (self.low == infinity || self.high == infinity)
    }

    fn is_infinite(self) -> bool {
        self.has(f64::INFINITY) || self.has(f64::NEG_INFINITY)
    }

    /// The least interval around both.
    pub(crate) fn hull(self, other: Floats) -> Floats {
        Floats { low: minimum(self.low, other.low), high: maximum(self.high, other.high), nan: self.nan || other.nan }
    }

    pub(crate) fn add(self, other: Floats, dtype: DType) -> Floats {
        if self.is_empty() || other.is_empty() {
            return Floats::NAN;
        }
        // Infinities of different signs have no sum.
        let cancel = |plus: Floats, minus: Floats| plus.has(f64::INFINITY) && minus.has(f64::NEG_INFINITY);
        let nan = self.nan || other.nan || cancel(self, other) || cancel(other, self);
        let (low, high) = (self.low + other.low, self.high + other.high);
        match (low.is_nan(), high.is_nan()) {
            (true, true) => Floats::NAN,
            // One side is an infinity alone: every sum that is a number is that infinity.
            (true, false) => Floats::rounded(dtype, high, high, nan),
            (false, true) => Floats::rounded(dtype, low, low, nan),
            (false, false) => Floats::rounded(dtype, low, high, nan),
        }
    }

    pub(crate) fn mul(self, other: Floats, dtype: DType) -> Floats {
        if self.is_empty() || other.is_empty() {
            return Floats::NAN;
        }
        let lost = |zero: Floats, infinite: Floats| zero.has_zero() && infinite.is_infinite();
        let nan = self.nan || other.nan || lost(self, other) || lost(other, self);
        let mut found = Floats { nan, ..Floats::NAN };
        for (a, b) in [(self.low, other.low), (self.low, other.high), (self.high, other.low), (self.high, other.high)] {
            let product = a * b;
            if !product.is_nan() {
                found = found.hull(Floats::only(product));
                continue;
            }
            // 0 times an infinity; beside that infinity there may be finite numbers, whose product with 0 is 0.
            let infinite = if a == 0.0 { other } else { self };
            if infinite.low < infinite.high {
                found = found.hull(Floats::only(0.0f64.copysign(a.signum() * b.signum())));
            }
        }
        if found.is_empty() { Floats::NAN } else { Floats::rounded(dtype, found.low, found.high, nan) }
    }

    pub(crate) fn max(self, other: Floats) -> Floats {
        if self.is_empty() || other.is_empty() {
            return Floats::NAN;
        }
        Floats { low: maximum(self.low, other.low), high: maximum(self.high, other.high), nan: self.nan || other.nan }
    }

    pub(crate) fn trunc(self) -> Floats {
        Floats { low: self.low.trunc(), high: self.high.trunc(), ..self }
    }

    pub(crate) fn cast(self, dtype: DType) -> Floats {
        if self.is_empty() { self } else { Floats::rounded(dtype, self.low, self.high, self.nan) }
    }

    /// Bounds of the integers of a range that these become: what is out of range saturates, and nan is 0.
    pub(crate) fn saturated(self, (least, greatest): (i128, i128)) -> (i128, i128) {
        let end = |value: f64| (value as i128).clamp(least, greatest);
        match (self.is_empty(), self.nan) {
            (true, _) => (0, 0),
            (false, true) => (end(self.low).min(0), end(self.high).max(0)),
            (false, false) => (end(self.low), end(self.high)),
        }
    }

    /// Whether `self < other` holds certainly, and whether it may hold. It never does with a nan.
    pub(crate) fn less(self, other: Floats) -> (bool, bool) {
        (self.high < other.low && !self.nan && !other.nan, self.low < other.high)
    }

    /// Whether `self != other` holds certainly, and whether it may hold. It always does with a nan.
    pub(crate) fn differs(self, other: Floats) -> (bool, bool) {
        let apart = self.is_empty() || other.is_empty() || self.high < other.low || other.high < self.low;
        let same = self.low == other.high && self.high == other.low && !self.nan && !other.nan;
        (apart, !same)
    }

    /// Whether the maximum of both is always `self`, bit for bit.
    pub(crate) fn is_above(self, other: Floats) -> bool {
        !other.nan && minimum(self.low, other.high).to_bits() == other.high.to_bits()
    }
}

/// The smaller of two numbers; -0 is below +0.
fn minimum(a: f64, b: f64) -> f64 {
    -maximum(-a, -b)
}
