//! What two kernels made of the same numbers, compared.

use std::ops::Range;
use tinyspec_ir::{Arg, DType, Graph, NodeId, Op, float};

/// How far sums of a dtype may be off in another order, as a share of their size.
pub(crate) fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-9,
        DType::F32 => 1e-3,
        DType::F16 => 2e-2,
        _ if dtype.is_float() => 0.2,
        _ => 0.0,
    }
}

/// How far a kernel's results may be off on another device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tolerance {
    /// Floats, as a share of their size.
    pub floats: f64,
    /// Integers may have been made of floats that were rounded otherwise: an order, a position, bits.
    pub integers: bool,
}

impl Tolerance {
    /// That of the least exact dtype that the kernel computes in.
    pub fn of(graph: &Graph, kernel: NodeId) -> Tolerance {
        let mut tolerance = Tolerance::default();
        for node in graph.reachable(&[kernel]) {
            let dtype = graph.dtype(node);
            tolerance.floats = tolerance.floats.max(self::tolerance(dtype));
            tolerance.integers |= dtype.is_float() && rounds(graph, node);
        }
        tolerance
    }
}

/// It computes, where others only choose, move and convert.
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
    /// The first of them.
    pub element: usize,
    pub expected: f64,
    pub found: f64,
    /// How many there are.
    pub count: usize,
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
    let size = dtype.size();
    let value = |bytes: &[u8]| {
        let bits = bytes.iter().rev().fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
        let unused = 64 - 8 * size as u32;
        match dtype {
            _ if dtype.is_float() => float::from_bits(dtype, bits),
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => (((bits << unused) as i64) >> unused) as f64,
            _ => bits as f64,
        }
    };
    let pairs = || {
        let pairs = expected.chunks_exact(size).zip(found.chunks_exact(size)).enumerate();
        pairs.filter(|(element, _)| is_written(element * size..(element + 1) * size))
    };
    let mean = match dtype.is_float() {
        true => {
            let values = pairs().map(|(_, (expected, _))| value(expected).abs()).filter(|value| value.is_finite());
            let (sum, count) = values.fold((0.0, 1e-30), |(sum, count), value| (sum + value, count + 1.0));
            sum / count
        }
        false => 0.0,
    };
    let differs = |(_, (expected, found)): &(usize, (&[u8], &[u8]))| {
        if expected == found {
            return false;
        }
        if !dtype.is_float() {
            return true;
        }
        let (expected, found) = (value(expected), value(found));
        let is_same = expected == found || expected.is_nan() && found.is_nan();
        // Written so that a nan differs.
        !(is_same || (expected - found).abs() <= tolerance * (expected.abs() + mean))
    };
    let mut different = pairs().filter(differs);
    let (element, (expected, found)) = different.next()?;
    Some(Difference { element, expected: value(expected), found: value(found), count: 1 + different.count() })
}
