//! Tensors from nothing: constants and ramps. They have no device of their own and fuse into what uses them.

use super::movement::{expand, reshape};
use crate::{Arg, Axes, Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result};

/// One value everywhere.
pub fn full(b: &mut dyn Builder, shape: &[Dim], value: f64, dtype: DType) -> Result<NodeId> {
    let value = b.number(Const::float(dtype, value));
    expand(b, value, shape).map_err(|error| error.in_op("full"))
}

/// A size as a scalar of `dtype`.
pub fn size(b: &mut dyn Builder, size: &Dim, dtype: DType) -> Result<NodeId> {
    match size.as_const() {
        Some(number) => Ok(b.constant(Const::int(dtype, number.into()))),
        None => {
            let size = b.dim(size)?;
            super::cast(b, size, dtype)
        }
    }
}

/// Zeros.
pub fn zeros(b: &mut dyn Builder, shape: &[Dim], dtype: DType) -> Result<NodeId> {
    full(b, shape, 0.0, dtype).map_err(|error| error.in_op("zeros"))
}

/// Ones.
pub fn ones(b: &mut dyn Builder, shape: &[Dim], dtype: DType) -> Result<NodeId> {
    full(b, shape, 1.0, dtype).map_err(|error| error.in_op("ones"))
}

/// The longest ramp that is one running count: its windows are a square.
const LONGEST_COUNT: i64 = 1 << 16;

/// 0, 1, … below `length`: the running count of ones (the spec's arange), which Rangeify turns into the index itself.
/// A long one is the rows of a matrix, so that no shape is much longer than the ramp.
pub fn arange_dim(b: &mut dyn Builder, length: &Dim, dtype: DType) -> Result<NodeId> {
    let Some(number) = length.as_const().filter(|&number| number > LONGEST_COUNT) else {
        return running_count(b, length, dtype);
    };
    let columns = 1i64 << (number.ilog2() / 2);
    let rows = number / columns + i64::from(number % columns != 0);
    let (row, column) = (arange_dim(b, &Dim::from(rows), dtype)?, arange_dim(b, &Dim::from(columns), dtype)?);
    let row = reshape(b, row, &[Dim::from(rows), Dim::from(1)])?;
    let width = b.constant(Const::int(dtype, columns.into()));
    let start = b.alu(Op::Mul, &[row, width])?;
    let matrix = b.alu(Op::Add, &[start, column])?;
    let ramp = reshape(b, matrix, &[Dim::from(rows) * Dim::from(columns)])?;
    super::movement::shrink(b, ramp, &[Dim::from(0)], std::slice::from_ref(length))
}

/// 0, 1, … below `length`, as i32 or, where that does not reach, as i64.
pub fn count(b: &mut dyn Builder, length: &Dim) -> Result<NodeId> {
    let dtype = if i32::try_from(length.bounds().1).is_ok() { DType::I32 } else { DType::I64 };
    check_length("arange", length)?;
    match length.as_const() {
        Some(number) => arange(b, 0.0, number as f64, 1.0, dtype),
        None => arange_dim(b, length, dtype),
    }
}

fn running_count(b: &mut dyn Builder, length: &Dim, dtype: DType) -> Result<NodeId> {
    let n = length.clone();
    let one = b.constant(Const::int(dtype, 1));
    let ones = expand(b, one, std::slice::from_ref(&n))?;
    if n.is(0) {
        return Ok(ones);
    }
    let windows = super::scan::tiles(b, ones)?;
    let counts = b.add(Op::Reduce, &[windows], Arg::Reduce { op: Op::Add, axes: Axes::from_iter([1]) })?;
    let counts = reshape(b, counts, &[n])?;
    let minus = b.constant(Const::int(dtype, -1));
    b.alu(Op::Add, &[counts, minus])
}

/// The ramp itself is refused if it has too many elements, not what it is computed from.
fn check_length(op: &str, length: &Dim) -> Result<()> {
    let shape = length.as_const().filter(|&length| length > 0).map(Dim::from);
    crate::derive::check_size(Op::Expand, shape.as_slice()).map_err(|error| error.in_op(op))
}

/// 0, 1, … below `count` as a float or a wide integer.
fn ramp(b: &mut dyn Builder, count: i64, dtype: DType) -> Result<NodeId> {
    let whole = if i32::try_from(count).is_ok() { DType::I32 } else { DType::I64 };
    let ramp = arange_dim(b, &Dim::from(count), if dtype.is_float() { whole } else { dtype })?;
    super::cast(b, ramp, dtype)
}

/// The dtype in which elements are computed before they are cast once.
fn computed_in(dtype: DType) -> DType {
    if dtype.is_float() { dtype.accumulator() } else { DType::F64 }
}

/// `start`, `start + step`, … before `stop`; of an integer dtype the elements are cut to whole numbers.
pub fn arange(b: &mut dyn Builder, start: f64, stop: f64, step: f64, dtype: DType) -> Result<NodeId> {
    let count = ((stop - start) / step).ceil();
    if !count.is_finite() || step == 0.0 {
        return Err(Error::new(ErrorKind::Value, "arange", format!("from {start} to {stop} by {step} never ends"))
            .help("finite ends, and a step other than 0"));
    }
    let count = count.max(0.0) as i64;
    check_length("arange", &Dim::from(count))?;
    let last = start + (count - 1).max(0) as f64 * step;
    held_by("arange", dtype, [start, last])?;
    // Whole steps are exact in integers of 32 bits or 64, however narrow the elements are.
    let is_whole = |value: f64| value == value.trunc();
    let reaches = |low: f64, high: f64| [start, last].iter().all(|value| (low..=high).contains(value));
    let within = match () {
        () if dtype.is_float() || !is_whole(start) || !is_whole(step) => computed_in(dtype),
        () if reaches(i32::MIN.into(), i32::MAX.into()) => DType::I32,
        () => DType::I64,
    };
    let mut ramp = ramp(b, count, within)?;
    for (op, value, neutral) in [(Op::Mul, step, 1.0), (Op::Add, start, 0.0)] {
        if value != neutral {
            let value = b.number(Const::float(within, value));
            ramp = b.alu(op, &[ramp, value])?;
        }
    }
    super::cast(b, ramp, dtype)
}

/// `steps` values from `start` to `stop`, both included; of an integer dtype they are rounded down.
pub fn linspace(b: &mut dyn Builder, start: f64, stop: f64, steps: i64, dtype: DType) -> Result<NodeId> {
    if steps < 0 {
        return Err(
            Error::new(ErrorKind::Value, "linspace", format!("{steps} steps")).help("the number of values, at least 0")
        );
    }
    check_length("linspace", &Dim::from(steps))?;
    held_by("linspace", dtype, [start, stop])?;
    let within = computed_in(dtype);
    let ramp = ramp(b, steps, within)?;
    let (range, start) = (b.number(Const::float(within, stop - start)), b.number(Const::float(within, start)));
    let gaps = b.constant(Const::float(within, (steps - 1).max(1) as f64));
    // Multiplied first: a step that is not a float would add up to less than `stop`.
    let scaled = b.alu(Op::Mul, &[ramp, range])?;
    let scaled = b.alu(Op::Div, &[scaled, gaps])?;
    let values = b.alu(Op::Add, &[scaled, start])?;
    let values = if dtype.is_float() { values } else { super::elementwise::floor(b, values)? };
    super::cast(b, values, dtype)
}

/// An integer dtype holds the ends of a ramp.
fn held_by(op: &str, dtype: DType, ends: [f64; 2]) -> Result<()> {
    let Some((least, greatest)) = dtype.int_range() else { return Ok(()) };
    match ends.into_iter().find(|end| !(least..=greatest).contains(&(end.trunc() as i128)) || !end.is_finite()) {
        Some(end) => {
            let message = format!("{end} is not a value of {dtype}, which goes from {least} to {greatest}");
            Err(Error::new(ErrorKind::Value, op, message).help("a wider dtype"))
        }
        None => Ok(()),
    }
}

/// Ones on the diagonal of an n×m matrix.
pub fn eye(b: &mut dyn Builder, n: &Dim, m: &Dim, dtype: DType) -> Result<NodeId> {
    if n.bounds().1 < 0 || m.bounds().1 < 0 {
        return Err(
            Error::new(ErrorKind::Value, "eye", format!("{n} rows and {m} columns")).help("both are at least 0")
        );
    }
    crate::derive::check_size(Op::Expand, &[n.clone(), m.clone()])?;
    let row = arange_dim(b, n, DType::I32)?;
    let row = reshape(b, row, &[n.clone(), Dim::from(1)])?;
    let column = arange_dim(b, m, DType::I32)?;
    let same = super::arithmetic::eq(b, row, column)?;
    super::cast(b, same, dtype)
}
