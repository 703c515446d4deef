//! min_max: sound bounds of a node's value.

mod float;

pub use float::Floats;

use crate::DType;

/// Bounds of a value, inclusive.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Interval {
    /// An integer, bool or index.
    Int(i128, i128),
    /// A float.
    Float(Floats),
    /// No value (void).
    None,
}

impl Interval {
    /// The range of a dtype.
    pub fn of(dtype: DType) -> Interval {
        match dtype.int_range() {
            Some((low, high)) => Interval::Int(low, high),
            None if dtype.is_float() => Interval::Float(Floats::of(dtype)),
            None => Interval::None,
        }
    }

    /// Bounds of an integer value.
    pub fn int(self) -> Option<(i128, i128)> {
        match self {
            Interval::Int(low, high) => Some((low, high)),
            _ => None,
        }
    }

    /// Bounds of a float.
    pub fn float(self) -> Option<Floats> {
        match self {
            Interval::Float(floats) => Some(floats),
            _ => None,
        }
    }

    /// An integer interval, or the dtype's range where the value could leave it (wrap).
    pub fn checked(dtype: DType, low: i128, high: i128) -> Interval {
        match dtype.int_range() {
            Some((least, greatest)) if least <= low && high <= greatest => Interval::Int(low, high),
            _ => Interval::of(dtype),
        }
    }

    /// The least interval around both.
    pub fn hull(self, other: Interval) -> Interval {
        match (self, other) {
            (Interval::Int(a, b), Interval::Int(c, d)) => Interval::Int(a.min(c), b.max(d)),
            (Interval::Float(a), Interval::Float(b)) => Interval::Float(a.hull(b)),
            _ => Interval::None,
        }
    }

    /// The only value, if there is one.
    pub fn single(self) -> Option<i128> {
        match self {
            Interval::Int(low, high) if low == high => Some(low),
            _ => None,
        }
    }
}
