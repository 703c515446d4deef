//! Estimates the cost of each algorithm for sorting, selecting and searching, so that an op picks the cheapest for its sizes. The
//! unit is one 32-bit comparison in a vector loop; the constants are ratios to it, measured on one thread with AVX2 (those of partial
//! selections with AVX-512, rounded up for AVX2). A dim
//! without a fixed size counts as its upper bound.

use crate::{DType, Dim};

/// An additional kernel: building its part of the graph and launching it.
const KERNEL: f64 = 131_072.0;

/// A step of a binary search: a load whose address depends on the previous step.
const HALVING: f64 = 16.0;

/// Counting one byte of an element in a radix sort, and moving the element.
const COUNTED_BYTE: f64 = 40.0;

/// Clearing the counters of a row and computing their prefix sums, per byte.
const COUNTERS: f64 = 2048.0;

/// The number of kernels that a radix sort launches in addition to those of a sort by comparison.
const COUNTING_KERNELS: f64 = 8.0;

/// Evaluating the counts of a row in a round of a selection.
const ROW_OF_ROUND: f64 = 200.0;

/// The end of a pass of a partial selection, where the lanes of a vector are compared.
const PASS: f64 = 70.0;

/// Comparing a word of 64 bits with the last one found and with the best one.
const WORD_OF_PASS: f64 = 3.0;

/// The kernels of a selection by way of blocks: the first of each, the blocks' own elements, and those that are chosen.
const KERNELS_OF_BLOCKS: f64 = 3.0;

/// The kernels that gather the elements not after an order statistic, and the cost of each element in all of them.
const KERNELS_OF_FIRST: f64 = 8.0;
const ELEMENT_OF_FIRST: f64 = 20.0;

fn most(dim: &Dim) -> f64 {
    dim.bounds().1 as f64
}

/// Rows of elements, each of which is sorted or searched by itself.
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

    /// The number of elements in all rows.
    pub fn count(&self) -> f64 {
        self.rows * self.length
    }

    /// Comparing all pairs of a row, once to rank the elements and once to invert the ranks.
    pub fn compared(&self) -> f64 {
        2.0 * self.rows * self.length * self.length
    }

    /// A radix sort of keys of this many bytes.
    pub fn counted(&self, bytes: usize) -> f64 {
        COUNTING_KERNELS * KERNEL + bytes as f64 * self.rows * (COUNTED_BYTE * self.length + COUNTERS)
    }

    /// The cheaper of both sorts.
    pub fn sorted(&self, bytes: usize) -> f64 {
        self.compared().min(self.counted(bytes))
    }

    /// A partial selection sort of the first `k`: one pass over the row per element.
    pub fn partial(&self, k: i64) -> f64 {
        KERNEL + self.rows * k as f64 * (WORD_OF_PASS * self.length + PASS)
    }

    /// Selecting an order statistic in `rounds`, and gathering the elements before it.
    pub fn by_last(&self, rounds: i64, choices: i64) -> f64 {
        self.selected(rounds, choices) + KERNELS_OF_FIRST * KERNEL + ELEMENT_OF_FIRST * self.count()
    }

    /// Finding the first element of each of some blocks, and gathering what is left of `k` blocks.
    pub fn blocks(&self) -> f64 {
        KERNELS_OF_BLOCKS * KERNEL + self.rows * WORD_OF_PASS * self.length
    }

    /// As many rows of another length.
    pub fn with_length(&self, length: i64) -> Rows {
        Rows { length: length as f64, ..*self }
    }

    /// Selecting an order statistic in `rounds`, each of which compares every element with `choices` values.
    pub fn selected(&self, rounds: i64, choices: i64) -> f64 {
        rounds as f64 * (KERNEL + self.rows * (choices as f64 * self.length + ROW_OF_ROUND))
    }
}

/// Comparing an element with `length` others of this many bytes.
pub(super) fn scanned(length: i64, bytes: usize) -> f64 {
    length as f64 * bytes as f64 / DType::I32.size() as f64
}

/// A binary search among `length` sorted elements.
pub(super) fn halved(length: i64) -> f64 {
    HALVING * halvings(length) as f64
}

/// The number of steps of a binary search among `length` elements.
pub(super) fn halvings(length: i64) -> u32 {
    i64::BITS - length.max(0).leading_zeros()
}
