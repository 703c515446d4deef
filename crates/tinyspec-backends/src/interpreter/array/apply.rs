//! The value of an op on arrays.

use super::{Array, element_count, lanes_for, value_error};
use smallvec::SmallVec;
use tinyspec_ir::eval::{eval_lanes, identity};
use tinyspec_ir::{Arg, DType, Error, ErrorKind, Op, Result};

/// The value of an op that only depends on the values of its sources. `dtype` is the node's own.
///
/// # Errors
/// When the op is not of this kind, or shapes that are known only at run time do not fit.
pub fn apply(op: Op, arg: &Arg, dtype: DType, sources: &[&Array]) -> Result<Array> {
    match (op, arg, sources) {
        (Op::Const, Arg::Const(value), _) => Ok(Array::scalar(*value)),
        (Op::Binary, Arg::Bytes(bytes), _) => Array::from_bytes(DType::U8, &[bytes.len()], bytes),
        (Op::Permute, Arg::Axes(order), [source]) => source.permuted(order),
        (Op::Flip, Arg::Flags(flags), [source]) => source.flipped(flags),
        (Op::Reshape, _, [source, shape]) => source.reshaped(&shape.sizes(op)?),
        (Op::Expand, _, [source, shape]) => source.expanded(op, &shape.sizes(op)?),
        (Op::Pad, _, [source, offset, shape]) => source.padded(&offset.sizes(op)?, &shape.sizes(op)?),
        (Op::Shrink, _, [source, offset, shape]) => source.shrunk(&offset.sizes(op)?, &shape.sizes(op)?),
        (Op::Index, _, [source, indices @ ..]) => source.indexed(indices),
        (Op::Stack, _, _) => Array::stacked(sources),
        (Op::Bitcast, _, [source]) => bitcast(source, dtype),
        (Op::Replicated, Arg::Number(axis), [source]) => replica(source, *axis as usize),
        (Op::Reduce, Arg::Reduce { op, axes }, [source]) => reduce(*op, source, axes),
        (Op::Contiguous | Op::ContiguousBackward | Op::Detach, _, [source]) => Ok((*source).clone()),
        _ if op.is_elementwise() => elementwise(op, dtype, sources),
        _ => Err(Error::new(ErrorKind::Unsupported, op.name(), "has no value on arrays")),
    }
}

fn elementwise(op: Op, dtype: DType, sources: &[&Array]) -> Result<Array> {
    // Most ops of a kernel are on scalars, for which the general path would take several allocations.
    if let [first, rest @ ..] = sources
        && rest.iter().all(|source| source.shape == first.shape)
    {
        return of_one_shape(op, dtype, &first.shape, sources);
    }
    let mut shape: Vec<usize> = Vec::new();
    for source in sources {
        let lead = source.shape.len().saturating_sub(shape.len());
        shape = std::iter::repeat_n(1, lead).chain(shape).collect();
        let lead = shape.len() - source.shape.len();
        for (dim, &other) in shape[lead..].iter_mut().zip(&source.shape) {
            if *dim == 1 {
                *dim = other;
            }
        }
    }
    let expanded = sources.iter().map(|source| source.expanded(op, &shape)).collect::<Result<Vec<_>>>()?;
    of_one_shape(op, dtype, &shape, &expanded.iter().collect::<Vec<_>>())
}

/// All sources have this shape.
fn of_one_shape(op: Op, dtype: DType, shape: &[usize], sources: &[&Array]) -> Result<Array> {
    let lanes: SmallVec<[&[u64]; 3]> = sources.iter().map(|source| source.lanes()).collect();
    let mut result = lanes_for(element_count(shape)?)?;
    eval_lanes(op, sources.first().map_or(DType::Void, |source| source.dtype), dtype, &lanes, &mut result)?;
    Ok(Array { dtype, shape: shape.to_vec(), lanes: result })
}

/// A tree over the reduced elements, in the accumulator's dtype; no elements give the identity.
fn reduce(op: Op, source: &Array, axes: &[u32]) -> Result<Array> {
    let accumulator = source.dtype.accumulator_of(op);
    let kept: Vec<u32> = (0..source.shape.len() as u32).filter(|axis| !axes.contains(axis)).collect();
    let order: Vec<u32> = axes.iter().chain(&kept).copied().collect();
    let mut shape = source.shape.clone();
    for &axis in axes {
        match shape.get_mut(axis as usize) {
            Some(dim) => *dim = 1,
            None => return Err(value_error(op.name(), format!("axis {axis} of {:?}", source.shape))),
        }
    }
    let width = element_count(&shape)?;
    let mut lanes = elementwise(Op::Cast, accumulator, &[&source.permuted(&order)?])?.lanes;
    let mut rows = lanes.len().checked_div(width).unwrap_or(0);
    if rows == 0 {
        lanes = Array::filled(&[width], identity(op, accumulator))?.lanes;
    }
    while rows > 1 {
        let half = rows / 2;
        let (first, rest) = lanes.split_at(half * width);
        let mut folded = lanes_for(half * width)?;
        eval_lanes(op, accumulator, accumulator, &[first, &rest[..half * width]], &mut folded)?;
        folded.extend_from_slice(&rest[half * width..]);
        lanes = folded;
        rows -= half;
    }
    elementwise(Op::Cast, source.dtype, &[&Array::new(accumulator, &shape, lanes)?])
}

fn bitcast(source: &Array, dtype: DType) -> Result<Array> {
    if source.dtype.size() == dtype.size() {
        return elementwise(Op::Bitcast, dtype, &[source]);
    }
    let mut shape = source.shape.clone();
    match shape.last_mut() {
        Some(last) => *last = *last * source.dtype.size() / dtype.size().max(1),
        None => return Err(value_error(Op::Bitcast.name(), format!("a scalar {} does not fit {dtype}", source.dtype))),
    }
    Array::from_bytes(dtype, &shape, &source.to_bytes())
}

/// All shards along the axis are equal, so the first one is the result.
fn replica(source: &Array, axis: usize) -> Result<Array> {
    let mut shape = source.shape.clone();
    match shape.get_mut(axis) {
        Some(dim) if *dim > 0 => *dim = 1,
        _ => return Err(value_error(Op::Replicated.name(), format!("axis {axis} of {:?}", source.shape))),
    }
    let first = source.shrunk(&vec![0; shape.len()], &shape)?;
    shape.remove(axis);
    first.reshaped(&shape)
}
