//! Sorting by rank: an element's place is the number of elements before it. That is n² comparisons, all of them
//! independent, in one kernel; ties keep their order, and nan is greater than all numbers.

use super::creation::arange_dim;
use super::movement::{narrow, reshape, transpose, unsqueeze};
use super::{axis_of, dtype_of, reduce, shape_of};
use crate::{Arg, Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result};

/// `[a < b]`, where nan is greater than all numbers.
fn less(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    let less = b.alu(Op::CmpLt, &[x, y])?;
    if !dtype_of(b, x).is_float() {
        return Ok(less);
    }
    let (x_is_number, y_is_nan) = (super::arithmetic::eq(b, x, x)?, b.alu(Op::CmpNe, &[y, y])?);
    let before_nan = b.alu(Op::And, &[x_is_number, y_is_nan])?;
    b.alu(Op::Or, &[less, before_nan])
}

/// The positions, along the last axis, of the elements in order (i32).
fn order(b: &mut dyn Builder, x: NodeId, descending: bool) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let length = shape[shape.len() - 1].clone();
    let x = b.add(Op::Detach, &[x], Arg::None)?;
    let (own, other) = (unsqueeze(b, x, -1)?, unsqueeze(b, x, -2)?);
    let (before, after) = (less(b, other, own)?, less(b, own, other)?);
    let (before, after) = if descending { (after, before) } else { (before, after) };
    let row = arange_dim(b, &length, DType::I32)?;
    let column = reshape(b, row, &[length.clone(), Dim::from(1)])?;
    let earlier = b.alu(Op::CmpLt, &[row, column])?;
    let not_after = super::arithmetic::logical_not(b, after)?;
    let tie = b.alu(Op::And, &[not_after, earlier])?;
    let precedes = b.alu(Op::Or, &[before, tie])?;
    let rank = reduce::sum(b, precedes, Some(&[-1]), true)?;
    // The inverse of the ranks: which element has this one.
    let rank = transpose(b, rank, -1, -2)?;
    let here = super::arithmetic::eq(b, rank, column)?;
    let zero = b.constant(Const::int(DType::I32, 0));
    let positions = b.alu(Op::Where, &[here, row, zero])?;
    reduce::sum(b, positions, Some(&[-1]), false)
}

/// Positions that put `x` in order along `axis` (i32).
pub fn argsort(b: &mut dyn Builder, x: NodeId, axis: i64, descending: bool) -> Result<NodeId> {
    axis_of("argsort", axis, &shape_of(b, x))?;
    let moved = transpose(b, x, axis, -1)?;
    let order = order(b, moved, descending)?;
    transpose(b, order, axis, -1)
}

/// `x` in order along `axis`, and the positions its elements come from (i32).
pub fn sort(b: &mut dyn Builder, x: NodeId, axis: i64, descending: bool) -> Result<Vec<NodeId>> {
    let order = argsort(b, x, axis, descending).map_err(|error| error.in_op("sort"))?;
    let sorted = super::index::gather(b, x, order, axis)?;
    Ok(vec![sorted, order])
}

/// The `k` greatest (or least) elements along `axis`, in order, and their positions (i32).
pub fn topk(b: &mut dyn Builder, x: NodeId, k: i64, axis: i64, largest: bool) -> Result<Vec<NodeId>> {
    let shape = shape_of(b, x);
    let length = &shape[axis_of("topk", axis, &shape)?];
    if k < 0 || length.bounds().1 < k {
        return Err(Error::new(ErrorKind::Value, "topk", format!("{k} of {length} elements")));
    }
    let order = argsort(b, x, axis, largest).map_err(|error| error.in_op("topk"))?;
    let order = narrow(b, order, axis, 0, k)?;
    let values = super::index::gather(b, x, order, axis)?;
    Ok(vec![values, order])
}
