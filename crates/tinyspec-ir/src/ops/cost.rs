//! What the ways to order and to search elements cost, by sizes, so that an op takes the cheapest. The unit is a comparison of
//! 32 bits made in a vector with its neighbours; the constants are ratios to it, measured on one thread with AVX2. A dim
//! without a size counts as its greatest.

use crate::{DType, Dim};

/// One more kernel: building its part of the graph, and launching it.
const KERNEL: f64 = 131_072.0;

/// A step of a binary search, which loads from the place that the step before has found.
const HALVING: f64 = 16.0;

/// Counting one byte of an element, and moving the element by it.
const COUNTED_BYTE: f64 = 40.0;

/// Clearing and adding up the counters of a row, for each byte.
const COUNTERS: f64 = 2048.0;

/// Kernels that counting launches beyond those of comparing.
const COUNTING_KERNELS: f64 = 8.0;

/// Finishing the counts of a row in a round of a selection.
const ROW_OF_ROUND: f64 = 200.0;

fn most(dim: &Dim) -> f64 {
    dim.bounds().1 as f64
}

/// Rows of elements that are ordered apart from each other.
pub(super) struct Rows {
    rows: f64,
    length: f64,
}

impl Rows {
    /// The rows along the last axis.
    pub fn of(shape: &[Dim]) -> Rows {
        Rows::along(shape, shape.len().saturating_sub(1))
    }

    /// The rows along an axis.
    pub fn along(shape: &[Dim], axis: usize) -> Rows {
        let others = shape.iter().enumerate().filter(|&(other, _)| other != axis);
        Rows { rows: others.map(|(_, dim)| most(dim)).product(), length: shape.get(axis).map_or(1.0, most) }
    }

    /// Elements of all rows.
    pub fn count(&self) -> f64 {
        self.rows * self.length
    }

    /// Comparing all elements of a row with all others: once for their ranks, once to invert these.
    pub fn compared(&self) -> f64 {
        2.0 * self.rows * self.length * self.length
    }

    /// Counting the bytes of keys of this size.
    pub fn counted(&self, bytes: usize) -> f64 {
        COUNTING_KERNELS * KERNEL + bytes as f64 * self.rows * (COUNTED_BYTE * self.length + COUNTERS)
    }

    /// The cheaper of the two.
    pub fn sorted(&self, bytes: usize) -> f64 {
        self.compared().min(self.counted(bytes))
    }

    /// Finding one element by its number, in `rounds` that compare each element with `choices`.
    pub fn selected(&self, rounds: i64, choices: i64) -> f64 {
        rounds as f64 * (KERNEL + self.rows * (choices as f64 * self.length + ROW_OF_ROUND))
    }
}

/// Comparing an element with so many others of this size in bytes.
pub(super) fn scanned(length: i64, bytes: usize) -> f64 {
    length as f64 * bytes as f64 / DType::I32.size() as f64
}

/// Finding the place of an element among so many in order.
pub(super) fn halved(length: i64) -> f64 {
    HALVING * halvings(length) as f64
}

/// How often so many elements are halved until one is left.
pub(super) fn halvings(length: i64) -> u32 {
    i64::BITS - length.max(0).leading_zeros()
}
