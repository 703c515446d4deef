//! Positions of the greatest and the least.
//!
//! One Reduce finds both the greatest and where it stands first: it goes over 64-bit numbers with a key of the element in
//! the upper half, and the remaining length of the axis in the lower.

use super::arithmetic::{add, sub};
use super::creation::size;
use super::{axis_of, cast, dtype_of, shape_of};
use crate::{Arg, Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// Position of the first greatest element (i32).
pub fn argmax(b: &mut dyn Builder, x: NodeId, axis: i64) -> Result<NodeId> {
    if let Some(result) = super::in_row(b, x, axis, |b, x| argmax(b, x, 0)) {
        return result;
    }
    let shape = shape_of(b, x);
    let position = axis_of("argmax", axis, &shape)?;
    let length = shape[position].clone();
    if length.bounds().1 <= 0 {
        return Err(Error::new(
            ErrorKind::Shape,
            "argmax",
            format!("axis {axis} of {} is empty", crate::dim::show(&shape)),
        )
        .help("among no elements there is none: leave empty ones out first"));
    }
    let rank = shape.len();
    if !has_short_key(dtype_of(b, x)) {
        return by_comparing(b, x, position, &length);
    }
    let key = key(b, x)?;
    let left = countdown(b, &length, position, rank)?;
    let both = word(b, key, left)?;
    let axis = position as i64;
    let best = super::reduce::max(b, both, Some(&[axis]), false)?;
    let lower = b.constant(Const::int(DType::I64, u32::MAX.into()));
    let left = b.alu(Op::And, &[best, lower])?;
    let left = cast(b, left, DType::I32)?;
    let length = size(b, &length, DType::I32)?;
    sub(b, length, left)
}

/// A signed number for each element, in their order: any nan is the greatest, and zeros are equal. It has 32 bits where
/// they are enough, else 64.
pub(super) fn key(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let dtype = dtype_of(b, x);
    let signed = if has_short_key(dtype) { DType::I32 } else { DType::I64 };
    let [last, greatest] = [signed.size() as i128 * 8 - 1, signed.int_range().map_or(0, |range| range.1)]
        .map(|number| b.constant(Const::int(signed, number)));
    match dtype {
        DType::U64 => {
            let bits = b.add(Op::Bitcast, &[x], Arg::DType(signed))?;
            let sign = b.constant(Const::int(signed, i64::MIN.into()));
            return b.alu(Op::Xor, &[bits, sign]);
        }
        _ if !dtype.is_float() => return cast(b, x, signed),
        _ => {}
    }
    let x = if signed == DType::I32 { cast(b, x, DType::F32)? } else { x };
    let zero = super::like(b, x, 0.0);
    let x = add(b, x, zero)?;
    let bits = b.add(Op::Bitcast, &[x], Arg::DType(signed))?;
    // The bits of negative floats descend: all but the sign are turned round.
    let sign = b.alu(Op::Shr, &[bits, last])?;
    let turn = b.alu(Op::And, &[sign, greatest])?;
    let key = b.alu(Op::Xor, &[bits, turn])?;
    let is_nan = b.alu(Op::CmpNe, &[x, x])?;
    b.alu(Op::Where, &[is_nan, greatest, key])
}

/// A short key in the upper half of a word (i64), and a position, or another number of 31 bits, in the lower.
pub(super) fn word(b: &mut dyn Builder, key: NodeId, lower: NodeId) -> Result<NodeId> {
    let (key, lower) = (cast(b, key, DType::I64)?, cast(b, lower, DType::I64)?);
    let half = b.constant(Const::int(DType::I64, 32));
    let upper = b.alu(Op::Shl, &[key, half])?;
    b.alu(Op::Or, &[upper, lower])
}

pub(super) fn has_short_key(dtype: DType) -> bool {
    match dtype.int_range() {
        Some((least, greatest)) => least >= i32::MIN.into() && greatest <= i32::MAX.into(),
        None => dtype.size() <= 4,
    }
}

/// The position by two Reduces: the greatest, then the first that equals it.
fn by_comparing(b: &mut dyn Builder, x: NodeId, position: usize, length: &Dim) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let Some((parts, size)) = length.as_const().and_then(parts_of) else {
        return first_greatest(b, x, position, length);
    };
    // Each part is searched while the caches hold it.
    let mut cut = shape.clone();
    cut[position] = Dim::from(parts);
    cut.insert(position + 1, Dim::from(size));
    let rows = super::movement::reshape(b, x, &cut)?;
    let inside = first_greatest(b, rows, position + 1, &Dim::from(size))?;
    let greatest = super::reduce::max(b, rows, Some(&[position as i64 + 1]), false)?;
    let left = countdown(b, &Dim::from(parts), position, shape.len())?;
    let step = b.constant(Const::int(DType::I32, size.into()));
    let left = b.alu(Op::Mul, &[left, step])?;
    let left = sub(b, left, inside)?;
    greatest_of(b, greatest, left, position, length)
}

/// How many parts of at most 2^15 elements, which caches hold, make up a long axis, and how many elements each has; none
/// where no number divides it.
fn parts_of(length: i64) -> Option<(i64, i64)> {
    const LONG: i64 = 1 << 17;
    let least = (length + (1 << 15) - 1) >> 15;
    let parts = (length >= LONG).then(|| (least..least * 8).find(|parts| length % parts == 0)).flatten()?;
    Some((parts, length / parts))
}

/// `from, from - 1, …` down to 1 along an axis (i32).
fn countdown(b: &mut dyn Builder, from: &Dim, axis: usize, rank: usize) -> Result<NodeId> {
    let mut shape: Shape = std::iter::repeat_n(Dim::from(1), rank).collect();
    shape[axis] = from.clone();
    let left = match from.as_const() {
        // As one ramp it is known to fall, so that of equal keys none has to be compared.
        Some(from) => super::creation::arange(b, from as f64, 0.0, -1.0, DType::I32)?,
        None => {
            let (positions, from) = (super::creation::arange_dim(b, from, DType::I32)?, size(b, from, DType::I32)?);
            sub(b, from, positions)?
        }
    };
    super::movement::reshape(b, left, &shape)
}

fn first_greatest(b: &mut dyn Builder, x: NodeId, axis: usize, length: &Dim) -> Result<NodeId> {
    let rank = shape_of(b, x).len();
    // Counting down makes the first of equals the greatest.
    let left = countdown(b, length, axis, rank)?;
    greatest_of(b, x, left, axis, length)
}

/// `length` less the most that is `left` where an element is the greatest along an axis.
fn greatest_of(b: &mut dyn Builder, x: NodeId, left: NodeId, axis: usize, length: &Dim) -> Result<NodeId> {
    let axis = axis as i64;
    let greatest = super::reduce::max(b, x, Some(&[axis]), true)?;
    // nan is the greatest and differs from itself.
    let different = b.alu(Op::CmpNe, &[x, greatest])?;
    let different = if dtype_of(b, x).is_float() {
        let number = super::arithmetic::eq(b, x, x)?;
        b.alu(Op::And, &[different, number])?
    } else {
        different
    };
    let zero = b.constant(Const::int(DType::I32, 0));
    let candidates = b.alu(Op::Where, &[different, zero, left])?;
    let best = super::reduce::max(b, candidates, Some(&[axis]), false)?;
    let length = size(b, length, DType::I32)?;
    sub(b, length, best)
}

/// Position of the first least element (i32).
pub fn argmin(b: &mut dyn Builder, x: NodeId, axis: i64) -> Result<NodeId> {
    let reversed = super::arithmetic::reverse_order(b, x)?;
    argmax(b, reversed, axis).map_err(|error| error.in_op("argmin"))
}

/// The first greatest elements of an axis and their positions.
pub fn max_with_place(b: &mut dyn Builder, x: NodeId, axis: i64, keepdim: bool) -> Result<Vec<NodeId>> {
    let place = argmax(b, x, axis).map_err(|error| error.in_op("max_with_place"))?;
    with_place(b, x, place, axis, keepdim)
}

/// The first least elements of an axis and their positions.
pub fn min_with_place(b: &mut dyn Builder, x: NodeId, axis: i64, keepdim: bool) -> Result<Vec<NodeId>> {
    let place = argmin(b, x, axis).map_err(|error| error.in_op("min_with_place"))?;
    with_place(b, x, place, axis, keepdim)
}

/// The value at a position of each row, and the position.
fn with_place(b: &mut dyn Builder, x: NodeId, place: NodeId, axis: i64, keepdim: bool) -> Result<Vec<NodeId>> {
    let mut shape = shape_of(b, x);
    let axis = axis_of("argmax", axis, &shape)?;
    shape[axis] = Dim::from(1);
    let kept = super::movement::reshape(b, place, &shape)?;
    let values = super::index::gather(b, x, kept, axis as i64)?;
    if keepdim {
        return Ok(vec![values, kept]);
    }
    let shape = shape_of(b, place);
    Ok(vec![super::movement::reshape(b, values, &shape)?, place])
}
