//! Data-dependent indexing: one-hot semantics, so what is outside reads 0.

use super::creation::arange_dim;
use super::movement::{shrink, transpose, unsqueeze};
use super::{axis_of, cast, dtype_of, like, shape_of};
use crate::dim::show;
use crate::{Builder, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

pub(super) fn require_int(b: &dyn Builder, op: &str, index: NodeId) -> Result<()> {
    let dtype = dtype_of(b, index);
    if dtype.is_int() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::DType, op, format!("an index must be an integer, found {dtype}"))
        .help("`.cast(DType::I32)`"))
}

/// `index` in at least 32 bits: an axis may be longer than a narrow index reaches.
pub(crate) fn wide(b: &mut dyn Builder, index: NodeId) -> Result<NodeId> {
    match dtype_of(b, index) {
        DType::Index => cast(b, index, DType::I64),
        dtype => cast(b, index, dtype.accumulator()),
    }
}

/// `[index = 0, …, index = classes - 1]` in a new last axis, as i32; what is outside is all 0.
pub fn one_hot(b: &mut dyn Builder, index: NodeId, classes: i64) -> Result<NodeId> {
    if classes < 0 {
        return Err(Error::new(ErrorKind::Value, "one_hot", format!("{classes} classes"))
            .help("as many classes as the greatest number and one, at least 0"));
    }
    let mut shape = shape_of(b, index);
    shape.push(Dim::from(classes));
    crate::derive::check_size(Op::Expand, &shape)?;
    let mask = one_hot_mask(b, "one_hot", index, &Dim::from(classes))?;
    cast(b, mask, DType::I32)
}

pub(super) fn one_hot_mask(b: &mut dyn Builder, op: &str, index: NodeId, classes: &Dim) -> Result<NodeId> {
    require_int(b, op, index)?;
    let index = wide(b, index)?;
    let dtype = dtype_of(b, index);
    let positions = arange_dim(b, classes, dtype)?;
    let index = unsqueeze(b, index, -1)?;
    super::arithmetic::eq(b, index, positions)
}

/// Negative indices count from the end.
pub(super) fn wrapped(b: &mut dyn Builder, index: NodeId, length: &Dim) -> Result<NodeId> {
    let index = wide(b, index)?;
    let zero = like(b, index, 0.0);
    let negative = b.alu(Op::CmpLt, &[index, zero])?;
    let dtype = dtype_of(b, index);
    let length = super::creation::size(b, length, dtype)?;
    let moved = b.alu(Op::Add, &[index, length])?;
    b.alu(Op::Where, &[negative, moved, index])
}

/// Rows of `x` (axis 0) by number: the shape of `index`, then the rest of `x`. Negative numbers count from the end.
pub fn index0(b: &mut dyn Builder, x: NodeId, index: NodeId) -> Result<NodeId> {
    require_int(b, "index0", index)?;
    let shape = shape_of(b, x);
    let Some(length) = shape.first() else {
        return Err(
            Error::new(ErrorKind::Rank, "index0", "a scalar has no rows").help("`reshape([1])` makes it one row")
        );
    };
    let index = if dtype_of(b, index).is_unsigned() { index } else { wrapped(b, index, length)? };
    b.alu(Op::Index, &[x, index])
}

/// Rows of a table of embeddings by token number; outside the table they are 0.
pub fn embedding(b: &mut dyn Builder, tokens: NodeId, table: NodeId) -> Result<NodeId> {
    if !dtype_of(b, tokens).is_int() && dtype_of(b, table).is_int() {
        let show = |b: &dyn Builder, x| format!("{} {}", dtype_of(b, x), show(&shape_of(b, x)));
        let message = format!("tokens of {} in a table of {}: they are swapped", show(b, tokens), show(b, table));
        return Err(Error::new(ErrorKind::DType, "embedding", message).help("`tokens.embedding(&table)`"));
    }
    require_int(b, "embedding", tokens)?;
    b.alu(Op::Index, &[table, tokens]).map_err(|error| error.in_op("embedding"))
}

/// Elements of a vector by number; outside they are 0.
pub fn take(b: &mut dyn Builder, x: NodeId, index: NodeId) -> Result<NodeId> {
    require_int(b, "take", index)?;
    b.alu(Op::Index, &[x, index]).map_err(|error| error.in_op("take"))
}

/// The part of `x` that an index of `extent` reaches when it picks along `axis`: as long as the index on the others.
pub(super) fn reached(
    b: &mut dyn Builder,
    op: &str,
    does: &str,
    x: NodeId,
    extent: &[Dim],
    axis: usize,
) -> Result<NodeId> {
    let shape = shape_of(b, x);
    // Of named dims too it must be certain.
    let goes_beyond = |other: usize| other != axis && (&extent[other] - &shape[other]).bounds().1 > 0;
    if extent.len() != shape.len() || (0..shape.len()).any(goes_beyond) {
        let message = format!(
            "{} {does} {}: as many axes, and outside axis {axis} no longer ones, are needed",
            show(extent),
            show(&shape)
        );
        return Err(
            Error::new(ErrorKind::Shape, op, message).help("`expand` or `unsqueeze` the numbers to as many axes")
        );
    }
    let mut part: Shape = extent.into();
    part[axis] = shape[axis].clone();
    let start: Shape = shape.iter().map(|_| Dim::from(0)).collect();
    shrink(b, x, &start, &part)
}

/// `out[i][j] = x[index[i][j]][j]` for axis 0, and so on: `index` has the rank of `x`, is nowhere longer but along `axis`,
/// and gives the shape.
pub fn gather(b: &mut dyn Builder, x: NodeId, index: NodeId, axis: i64) -> Result<NodeId> {
    require_int(b, "gather", index)?;
    let index = b.beside(x, index)?;
    let (shape, index_shape) = (shape_of(b, x), shape_of(b, index));
    let axis = axis_of("gather", axis, &shape)?;
    let x = reached(b, "gather", "picks from", x, &index_shape, axis)?;
    let mask = one_hot_mask(b, "gather", index, &shape[axis])?;
    // x with the picked axis last, and a size-1 axis where the index has its own.
    let moved = unsqueeze(b, x, -1)?;
    let moved = transpose(b, moved, axis as i64, -1)?;
    let zero = like(b, x, 0.0);
    let picked = b.alu(Op::Where, &[mask, moved, zero]).map_err(|error| error.in_op("gather"))?;
    let dtype = dtype_of(b, x);
    let sum = super::reduce::sum(b, picked, Some(&[-1]), false)?;
    cast(b, sum, dtype)
}
