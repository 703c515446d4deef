//! Tensors from nothing: constants and ramps. They have no device of their own and fuse into what uses them.

use super::movement::{expand, reshape};
use crate::{Arg, Axes, Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result};

/// One value everywhere.
pub fn full(b: &mut dyn Builder, shape: &[Dim], value: f64, dtype: DType) -> Result<NodeId> {
    let value = b.constant(Const::float(dtype, value));
    expand(b, value, shape)
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
    full(b, shape, 0.0, dtype)
}

/// Ones.
pub fn ones(b: &mut dyn Builder, shape: &[Dim], dtype: DType) -> Result<NodeId> {
    full(b, shape, 1.0, dtype)
}

/// 0, 1, … below `length`: a Stack of ranges by halves would be long, so it is the running count of ones
/// (the spec's arange), which Rangeify turns into the index itself.
pub(crate) fn arange_dim(b: &mut dyn Builder, length: &Dim, dtype: DType) -> Result<NodeId> {
    // Windows by the spec's repeat-reshape trick: row i holds i ones.
    let n = length.clone();
    let one = b.constant(Const::int(dtype, 1));
    let ones = expand(b, one, std::slice::from_ref(&n))?;
    let wide = n.clone() * Dim::from(2) - Dim::from(1);
    if n.is(0) {
        return Ok(ones);
    }
    let shape = b.shape(std::slice::from_ref(&wide))?;
    let offset = b.shape(&[n.clone() - Dim::from(1)])?;
    let padded = b.alu(Op::Pad, &[ones, offset, shape])?;
    let row = reshape(b, padded, &[Dim::from(1), wide.clone()])?;
    let tiled = expand(b, row, &[n.clone() + Dim::from(1), wide.clone()])?;
    let flat = reshape(b, tiled, &[(n.clone() + Dim::from(1)) * wide])?;
    let trimmed_shape = n.clone() * n.clone() * Dim::from(2);
    let (offset, shape) = (b.shape(&[Dim::from(0)])?, b.shape(&[trimmed_shape])?);
    let trimmed = b.alu(Op::Shrink, &[flat, offset, shape])?;
    let windows = reshape(b, trimmed, &[n.clone(), n.clone() * Dim::from(2)])?;
    let (offset, shape) = (b.shape(&[Dim::from(0), Dim::from(0)])?, b.shape(&[n.clone(), n.clone()])?);
    let windows = b.alu(Op::Shrink, &[windows, offset, shape])?;
    let counts = b.add(Op::Reduce, &[windows], Arg::Reduce { op: Op::Add, axes: Axes::from_iter([1]) })?;
    let counts = reshape(b, counts, &[n])?;
    let minus = b.constant(Const::int(dtype, -1));
    b.alu(Op::Add, &[counts, minus])
}

/// `start`, `start + step`, … before `stop`.
pub fn arange(b: &mut dyn Builder, start: f64, stop: f64, step: f64, dtype: DType) -> Result<NodeId> {
    let count = ((stop - start) / step).ceil();
    if !count.is_finite() || step == 0.0 {
        return Err(Error::new(ErrorKind::Value, "arange", format!("from {start} to {stop} by {step} never ends")));
    }
    let count = Dim::from(count.max(0.0) as i64);
    let ramp = arange_dim(b, &count, if dtype.is_float() { DType::I32 } else { dtype })?;
    let ramp = super::cast(b, ramp, dtype)?;
    let mut ramp = ramp;
    for (op, value, neutral) in [(Op::Mul, step, 1.0), (Op::Add, start, 0.0)] {
        if value != neutral {
            let value = b.constant(Const::float(dtype, value));
            ramp = b.alu(op, &[ramp, value])?;
        }
    }
    Ok(ramp)
}

/// `steps` values from `start` to `stop`, both included.
pub fn linspace(b: &mut dyn Builder, start: f64, stop: f64, steps: i64, dtype: DType) -> Result<NodeId> {
    if steps < 0 {
        return Err(Error::new(ErrorKind::Value, "linspace", format!("{steps} steps")));
    }
    let ramp = arange_dim(b, &Dim::from(steps), DType::I32)?;
    let ramp = super::cast(b, ramp, dtype)?;
    let step = b.constant(Const::float(dtype, if steps > 1 { (stop - start) / (steps - 1) as f64 } else { 0.0 }));
    let start = b.constant(Const::float(dtype, start));
    let scaled = b.alu(Op::Mul, &[ramp, step])?;
    b.alu(Op::Add, &[scaled, start])
}

/// Ones on the diagonal of an n×m matrix.
pub fn eye(b: &mut dyn Builder, n: i64, m: i64, dtype: DType) -> Result<NodeId> {
    let row = arange_dim(b, &Dim::from(n), DType::I32)?;
    let row = reshape(b, row, &[Dim::from(n), Dim::from(1)])?;
    let column = arange_dim(b, &Dim::from(m), DType::I32)?;
    let same = super::arithmetic::eq(b, row, column)?;
    super::cast(b, same, dtype)
}
