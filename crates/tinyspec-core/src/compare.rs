//! Compares the results of two kernels for the same inputs.

use std::collections::HashSet;
use std::ops::Range;
use tinyspec_ir::{Arg, DType, Graph, NodeId, Op, float};

/// The relative error that another order of summation may cause.
pub(crate) fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-9,
        DType::F32 => 1e-3,
        DType::F16 => 2e-2,
        _ if dtype.is_float() => 0.2,
        _ => 0.0,
    }
}

/// How far a kernel's results may differ on another device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tolerance {
    /// The relative error of floats.
    pub floats: f64,
    /// Integers may derive from floats that were rounded differently: an order, a position, bits.
    pub integers: bool,
    /// The results depend on whether two floats are equal, and one of them may have been rounded differently: nothing
    /// can be said about them.
    pub ties: bool,
}

impl Tolerance {
    /// The tolerance of the least precise dtype that the kernel computes in.
    pub fn of(graph: &Graph, kernel: NodeId) -> Tolerance {
        let mut tolerance = Tolerance::default();
        let mut rounded = HashSet::new();
        for node in graph.reachable(&[kernel]) {
            let (dtype, sources) = (graph.dtype(node), graph.sources(node));
            tolerance.floats = tolerance.floats.max(self::tolerance(dtype));
            let is_rounded = dtype.is_float() && rounds(graph, node);
            tolerance.integers |= is_rounded;
            if is_rounded || sources.iter().any(|source| rounded.contains(source)) {
                rounded.insert(node);
            }
            if let (Op::CmpNe, &[a, b]) = (graph.op(node), sources) {
                // Comparisons with a constant, such as 0, do not count: both devices compute such values exactly.
                let is_computed = a != b && graph.as_const(a).is_none() && graph.as_const(b).is_none();
                tolerance.ties |= is_computed && graph.dtype(a).is_float() && rounded.contains(&node);
            }
        }
        tolerance
    }
}

/// Whether the op computes, rather than selects, moves or converts.
fn rounds(graph: &Graph, node: NodeId) -> bool {
    match (graph.op(node), graph.arg(node)) {
        (Op::Reduce, Arg::Reduce { op, .. }) => *op != Op::Max,
        (Op::Where | Op::Max | Op::Cast | Op::Trunc, _) => false,
        (op, _) => op == Op::Reduce || op.is_elementwise(),
    }
}

/// Elements that differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Difference {
    /// The first such element.
    pub element: usize,
    pub expected: f64,
    pub found: f64,
    /// How many there are.
    pub count: usize,
}

/// Floats each moved up or down by the tolerance, as a share of its size; other numbers as they are.
pub(crate) fn moved(dtype: DType, tolerance: f64, data: &[u8]) -> Vec<u8> {
    if !dtype.is_float() {
        return data.to_vec();
    }
    let move_one = |(number, element): (usize, &[u8])| {
        let is_up = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1;
        let by = if is_up { tolerance } else { -tolerance };
        let bits = float::to_bits(dtype, value(dtype, element) * (1.0 + by));
        bits.to_le_bytes().into_iter().take(element.len())
    };
    data.chunks_exact(dtype.size()).enumerate().flat_map(move_one).collect()
}

fn value(dtype: DType, bytes: &[u8]) -> f64 {
    let bits = bytes.iter().rev().fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
    let unused = 64 - 8 * dtype.size() as u32;
    match dtype {
        _ if dtype.is_float() => float::from_bits(dtype, bits),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => (((bits << unused) as i64) >> unused) as f64,
        _ => bits as f64,
    }
}

/// The first difference between the results, among the elements whose bytes `is_written` accepts. Floats may differ by the
/// order of sums, all other dtypes not at all.
pub(crate) fn difference(
    dtype: DType,
    tolerance: f64,
    expected: &[u8],
    found: &[u8],
    is_written: impl Fn(Range<usize>) -> bool,
) -> Option<Difference> {
    difference_beyond(dtype, tolerance, [expected, expected], found, is_written)
}

/// Like [`difference`], given a second reference for inputs moved within the tolerance: where terms cancel, the two
/// references differ by more than the relative error, and so may the results.
pub(crate) fn difference_beyond(
    dtype: DType,
    tolerance: f64,
    [expected, second]: [&[u8]; 2],
    found: &[u8],
    is_written: impl Fn(Range<usize>) -> bool,
) -> Option<Difference> {
    let size = dtype.size();
    let value = |bytes: &[u8]| value(dtype, bytes);
    let pairs = || {
        let pairs = expected.chunks_exact(size).zip(found.chunks_exact(size)).enumerate();
        pairs.filter(|(element, _)| is_written(element * size..(element + 1) * size))
    };
    let spread = |element: usize| {
        let bytes = element * size..(element + 1) * size;
        (value(&second[bytes.clone()]) - value(&expected[bytes])).abs()
    };
    let mean = |of: &dyn Fn(usize, &[u8]) -> f64| {
        let values = pairs().map(|(element, (expected, _))| of(element, expected)).filter(|value| value.is_finite());
        let (sum, count) = values.fold((0.0, 1e-30), |(sum, count), value| (sum + value, count + 1.0));
        sum / count
    };
    let (mean, mean_spread) = match dtype.is_float() {
        true => (mean(&|_, expected| value(expected).abs()), mean(&|element, _| spread(element))),
        false => (0.0, 0.0),
    };
    let differs = |(element, (expected, found)): &(usize, (&[u8], &[u8]))| {
        if expected == found {
            return false;
        }
        if !dtype.is_float() {
            return true;
        }
        let (expected, found) = (value(expected), value(found));
        let is_same = expected == found || expected.is_nan() && found.is_nan();
        // Written so that a nan differs.
        let allowed = tolerance * (expected.abs() + mean) + spread(*element) + mean_spread;
        !(is_same || (expected - found).abs() <= allowed)
    };
    let mut different = pairs().filter(differs);
    let (element, (expected, found)) = different.next()?;
    Some(Difference { element, expected: value(expected), found: value(found), count: 1 + different.count() })
}
