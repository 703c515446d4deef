//! Tensors with parts replaced by number: what an index vector names of an axis, and diagonals.

use super::movement::{expand, reshape, unsqueeze};
use super::scatter::{scatter_add, scatter_rows};
use super::{axis_of, cast, dtype_of, index, shape_of};
use crate::dim::show;
use crate::{Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// The index vector as places in `x`, one for each element of the positions that it names; negative ones count from the
/// end.
fn places(b: &mut dyn Builder, op: &str, x: NodeId, axis: i64, index: NodeId) -> Result<(NodeId, Shape)> {
    let (index, part) = numbers(b, op, x, axis, index)?;
    let axis = axis_of(op, axis, &part)?;
    let mut along: Shape = part.iter().map(|_| Dim::from(1)).collect();
    along[axis] = part[axis].clone();
    let index = reshape(b, index, &along)?;
    Ok((expand(b, index, &part)?, part))
}

/// The index vector without negative numbers, and the shape of what it names.
fn numbers(b: &mut dyn Builder, op: &str, x: NodeId, axis: i64, index: NodeId) -> Result<(NodeId, Shape)> {
    index::require_int(b, op, index)?;
    let index = b.beside(x, index)?;
    let (shape, found) = (shape_of(b, x), shape_of(b, index));
    let axis = axis_of(op, axis, &shape)?;
    let [count] = &found[..] else {
        let message = format!("the numbers must be a vector, found {}", show(&found));
        return Err(Error::new(ErrorKind::Rank, op, message).help("`flatten(0, -1)` makes one of any tensor"));
    };
    let index = if dtype_of(b, index).is_unsigned() { index } else { index::wrapped(b, index, &shape[axis])? };
    let mut part = shape.clone();
    part[axis] = count.clone();
    Ok((index, part))
}

/// `value` over the whole part.
fn over(b: &mut dyn Builder, op: &str, x: NodeId, value: NodeId, part: &Shape) -> Result<NodeId> {
    let dtype = dtype_of(b, x);
    let value = cast(b, value, dtype)?;
    let found = shape_of(b, value);
    if crate::dim::broadcast(part, &found).is_none_or(|both| both != *part) {
        let message = format!("values of {} for places of {}", show(&found), show(part));
        return Err(
            Error::new(ErrorKind::Shape, op, message).help("a part for each number, or what broadcasts to that")
        );
    }
    expand(b, value, part)
}

/// `x` plus `value` at the numbers of the vector `index` along an axis, collisions added up.
pub fn index_add(b: &mut dyn Builder, x: NodeId, axis: i64, index: NodeId, value: NodeId) -> Result<NodeId> {
    let (places, part) = places(b, "index_add", x, axis, index)?;
    let value = over(b, "index_add", x, value, &part)?;
    scatter_add(b, x, places, value, axis).map_err(|error| error.in_op("index_add"))
}

/// `x` with `value` at the numbers of the vector `index` along an axis; the last of several stays.
pub fn index_copy(b: &mut dyn Builder, x: NodeId, axis: i64, index: NodeId, value: NodeId) -> Result<NodeId> {
    const OP: &str = "index_copy";
    let (index, part) = numbers(b, OP, x, axis, index)?;
    let value = over(b, OP, x, value, &part)?;
    let axis = axis_of(OP, axis, &part)?;
    scatter_rows(b, OP, x, index, value, axis).map_err(|error| error.in_op(OP))
}

/// `x` with one `value` at the numbers of the vector `index` along an axis.
pub fn index_fill(b: &mut dyn Builder, x: NodeId, axis: i64, index: NodeId, value: NodeId) -> Result<NodeId> {
    const OP: &str = "index_fill";
    let shape = shape_of(b, x);
    let position = axis_of(OP, axis, &shape)?;
    let (index, _) = numbers(b, OP, x, axis, index)?;
    // Counting takes a step per number; comparing each number with each place would be quadratic.
    let [zero, one] = [0, 1].map(|value| b.constant(Const::int(DType::I32, value)));
    let (length, count) = (Shape::from_iter([shape[position].clone()]), shape_of(b, index));
    let (none, ones) = (expand(b, zero, &length)?, expand(b, one, &count)?);
    let counts = scatter_add(b, none, index, ones, 0)?;
    let hit = b.alu(Op::CmpNe, &[counts, none])?;
    let mut along: Shape = shape.iter().map(|_| Dim::from(1)).collect();
    along[position] = shape[position].clone();
    let hit = reshape(b, hit, &along)?;
    super::masked::masked_fill(b, x, hit, value).map_err(|error| error.in_op(OP))
}

/// The `k`-th diagonal of the last two axes replaced by `value`.
pub fn diagonal_scatter(b: &mut dyn Builder, x: NodeId, value: NodeId, offset: i64) -> Result<NodeId> {
    const OP: &str = "diagonal_scatter";
    let place = super::movement::diagonal(b, x, offset).map_err(|error| error.in_op(OP))?;
    let part = shape_of(b, place);
    let value = over(b, OP, x, value, &part)?;
    let shape = shape_of(b, x);
    let (rows, columns) = (shape[shape.len() - 2].clone(), shape[shape.len() - 1].clone());
    let first = offset.saturating_neg().max(0);
    // Row i of the diagonal lies in row i + first: a column of values, seen through the mask of the diagonal.
    let mut tall = part.clone();
    let last = tall.len() - 1;
    tall[last] = rows.clone();
    let mut start: Shape = tall.iter().map(|_| Dim::from(0)).collect();
    start[last] = Dim::from(if part[last].is(0) { 0 } else { first });
    let value = super::movement::pad(b, value, &start, &tall, 0.0)?;
    let value = unsqueeze(b, value, -1)?;
    let row = super::creation::arange_dim(b, &rows, DType::I64)?;
    let row = unsqueeze(b, row, -1)?;
    let column = super::creation::arange_dim(b, &columns, DType::I64)?;
    let shift = b.constant(Const::int(DType::I64, offset.into()));
    let place = b.alu(Op::Add, &[row, shift])?;
    let hit = super::arithmetic::eq(b, place, column)?;
    b.alu(Op::Where, &[hit, value, x])
}
