//! Elements by their number in order, without bringing the others in order: by their bits, four at a time, and the first
//! few by rounds. Places in an ascending axis by halving it.

use super::argmax::{argmax, key};
use super::elementwise::stored;
use super::movement::{expand, narrow, pad, reshape, unsqueeze};
use super::sort::{Words, ranks};
use super::{cast, dtype_of, index, like, reduce, shape_of};
use crate::{Arg, Builder, Const, DType, Dim, NodeId, Op, Result};

/// Bits that a round decides.
const BITS: i64 = 4;

/// Up to this length comparing all elements with all others takes less than counting them in rounds.
const FEW: i64 = 64;

/// Elements of a block, at most, of which the first ones are kept.
const BLOCK: i64 = 1024;

/// Is this axis long enough that counting its elements several times takes less than bringing them in order?
pub(super) fn is_long(length: &Dim) -> bool {
    length.as_const().is_some_and(|length| length > FEW)
}

/// An unsigned number for each element, in their order: any nan is the greatest, and zeros are equal.
fn ordered_bits(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let key = key(b, x)?;
    let unsigned = if dtype_of(b, key) == DType::I32 { DType::U32 } else { DType::U64 };
    let bits = b.add(Op::Bitcast, &[key], Arg::DType(unsigned))?;
    let sign = b.constant(Const::int(unsigned, 1 << (unsigned.size() * 8 - 1)));
    b.alu(Op::Xor, &[bits, sign])
}

/// The element of the last axis that has this number (…, 1) in order, from 0 on: its position (…, 1), i32. Nan is the
/// greatest.
///
/// A round knows the upper bits of its key. It counts what is less than each way to go on with the next bits; the greatest
/// of them that no more than `number` elements are below is right.
pub(super) fn nth(b: &mut dyn Builder, x: NodeId, number: NodeId) -> Result<NodeId> {
    let x = b.add(Op::Detach, &[x], Arg::None)?;
    let keys = ordered_bits(b, x)?;
    let keys = unsqueeze(b, keys, -2)?;
    let dtype = dtype_of(b, keys);
    let bits = dtype.size() as i64 * 8;
    let mut rows = shape_of(b, number);
    rows.push(Dim::from(1));
    let number = reshape(b, number, &rows)?;
    let choices = super::creation::arange(b, 1.0, (1 << BITS) as f64, 1.0, dtype)?;
    let choices = reshape(b, choices, &[Dim::from((1 << BITS) - 1), Dim::from(1)])?;
    let [step, shift] = [1 << (bits - BITS), BITS.into()].map(|number| b.constant(Const::int(dtype, number)));
    let mut candidates = b.alu(Op::Mul, &[choices, step])?;
    let mut prefix = like(b, candidates, 0.0);
    for round in 1..=bits / BITS {
        let below = b.alu(Op::CmpLt, &[keys, candidates])?;
        let below = reduce::sum(b, below, Some(&[-1]), true)?;
        let too_many = b.alu(Op::CmpLt, &[number, below])?;
        let possible = b.alu(Op::Where, &[too_many, prefix, candidates])?;
        let greatest = reduce::max(b, possible, Some(&[-2]), true)?;
        prefix = stored(b, greatest)?;
        if round == bits / BITS {
            break;
        }
        // The step is data, so that all rounds are the same kernels.
        let (first, second) = (narrow(b, candidates, -2, 0, 1)?, narrow(b, candidates, -2, 1, 1)?);
        let step = super::arithmetic::sub(b, second, first)?;
        let step = b.alu(Op::Shr, &[step, shift])?;
        let above = b.alu(Op::Mul, &[choices, step])?;
        let next = b.alu(Op::Add, &[prefix, above])?;
        candidates = stored(b, next)?;
    }
    let found = super::arithmetic::eq(b, keys, prefix)?;
    argmax(b, found, -1)
}

/// The element of an axis that has this number in order, along that axis.
pub(super) fn nth_element(b: &mut dyn Builder, x: NodeId, axis: i64, number: NodeId) -> Result<NodeId> {
    let moved = super::movement::transpose(b, x, axis, -1)?;
    let number = super::movement::transpose(b, number, axis, -1)?;
    let position = nth(b, moved, number)?;
    let element = index::gather(b, moved, position, -1)?;
    super::movement::transpose(b, element, axis, -1)
}

/// The first `k` of the last axis in order, as positions (…, k), i32: of blocks, the first ones of each are kept, until one
/// block is left. None where `k` is too many for that.
pub(super) fn first(b: &mut dyn Builder, x: NodeId, k: i64, descending: bool) -> Result<Option<NodeId>> {
    let shape = shape_of(b, x);
    let block = (4 * k.max(1) as u64).next_power_of_two().max(64) as i64;
    let length = match shape.last().and_then(Dim::as_const) {
        // Of a few blocks as much is left as one holds.
        Some(length) if length >= 4 * block && block <= BLOCK => length,
        _ => return Ok(None),
    };
    let lead = &shape[..shape.len() - 1];
    let rows = lead.iter().cloned().fold(Dim::from(1), |a, b| a * b);
    let flat = [rows.clone(), Dim::from(length)];
    let mut words = Words::of(b, x, descending)?.map(|word| reshape(b, word, &flat))?;
    let mut left = length;
    while left > k {
        let (blocks, size) = ((left + block - 1) / block, block.min(left));
        let padded = [rows.clone(), Dim::from(blocks * size)];
        let cut = [rows.clone(), Dim::from(blocks), Dim::from(size)];
        let turned = words.complement(b)?.map(|word| {
            let word = pad(b, word, &[Dim::from(0), Dim::from(0)], &padded, 0.0)?;
            reshape(b, word, &cut)
        })?;
        let inner = turned.complement(b)?;
        let rank = ranks(b, &inner)?;
        let rank = stored(b, rank)?;
        let ranked = unsqueeze(b, rank, -2)?;
        let wanted = super::creation::arange_dim(b, &Dim::from(k), DType::I32)?;
        let wanted = reshape(b, wanted, &[Dim::from(k), Dim::from(1)])?;
        let here = super::arithmetic::eq(b, ranked, wanted)?;
        left = blocks * k;
        // A sum over ranks that only padding has is 0, which is padding again.
        let kept = turned.map(|word| {
            let (word, zero) = (unsqueeze(b, word, -2)?, like(b, word, 0.0));
            let kept = b.alu(Op::Where, &[here, word, zero])?;
            let kept = reduce::sum(b, kept, Some(&[-1]), false)?;
            reshape(b, kept, &[rows.clone(), Dim::from(left)])
        })?;
        words = kept.complement(b)?.map(|word| stored(b, word))?;
    }
    let mut shape = shape;
    let last = shape.len() - 1;
    shape[last] = Dim::from(k);
    let order = words.positions(b)?;
    reshape(b, order, &shape).map(Some)
}

/// Up to this length all are compared.
const SCANNED: i64 = 256;

/// Up to this length all are compared rather than brought in order.
const SORTED: i64 = 1024;

/// Where `values` (…, m) would stand among these (…, n), which ascend along the last axis: before what equals them, or
/// after if `right` (i32). Found by halving the axis, or by counting where it is short or its length no number.
pub(super) fn places(b: &mut dyn Builder, sorted: NodeId, values: NodeId, right: bool) -> Result<NodeId> {
    let is_before = if right { super::arithmetic::le } else { super::arithmetic::lt };
    let shape = shape_of(b, sorted);
    let lead = shape[..shape.len() - 1].iter().map(Dim::as_const).collect::<Option<Vec<i64>>>();
    let length = shape[shape.len() - 1].as_const().filter(|&length| length > SCANNED);
    let (Some(lead), Some(length)) = (lead, length) else {
        let (sorted, values) = (unsqueeze(b, sorted, -2)?, unsqueeze(b, values, -1)?);
        let before = is_before(b, sorted, values)?;
        return reduce::sum(b, before, Some(&[-1]), false);
    };
    let rows: i64 = lead.iter().product();
    let dtype = if rows * length < i32::MAX.into() { DType::I32 } else { DType::I64 };
    let flat = reshape(b, sorted, &[Dim::from(rows * length)])?;
    let flat = stored(b, flat)?;
    let number = |b: &mut dyn Builder, value: i64| b.constant(Const::int(dtype, value.into()));
    // One before the row, so that a count is the place of the last one counted.
    let from = super::creation::arange(b, -1.0, (rows * length - 1) as f64, length as f64, dtype)?;
    let mut column = shape.clone();
    column[shape.len() - 1] = Dim::from(1);
    let from = reshape(b, from, &column)?;
    let (all, zero) = (number(b, length), number(b, 0));
    let wanted = shape_of(b, values);
    let mut before = expand(b, zero, &wanted)?;
    let mut step = (length as u64 + 1).next_power_of_two() as i64 / 2;
    while step > 0 {
        let width = number(b, step);
        let next = b.alu(Op::Add, &[before, width])?;
        let beyond = b.alu(Op::CmpLt, &[all, next])?;
        let place = b.alu(Op::Add, &[from, next])?;
        let element = b.alu(Op::Index, &[flat, place])?;
        let stays = is_before(b, element, values)?;
        let stays = b.alu(Op::CmpLt, &[beyond, stays])?;
        before = b.alu(Op::Where, &[stays, next, before])?;
        step /= 2;
    }
    cast(b, before, DType::I32)
}

/// Is it worth while to bring so many in order before something is looked for among them?
pub(super) fn are_many(length: &Dim) -> bool {
    length.as_const().is_some_and(|length| length > SORTED)
}

/// Is each element of `x` among many `values`: is one where it would stand.
pub(super) fn is_among(b: &mut dyn Builder, x: NodeId, values: NodeId) -> Result<NodeId> {
    let sorted = super::sort::sort(b, values, 0, false)?[0];
    let sorted = stored(b, sorted)?;
    let shape = shape_of(b, x);
    let x = super::movement::flatten(b, x, 0, -1)?;
    let place = places(b, sorted, x, false)?;
    let found = b.alu(Op::Index, &[sorted, place])?;
    let length = shape_of(b, sorted)[0].clone();
    let all = super::creation::size(b, &length, DType::I32)?;
    let (inside, same) = (b.alu(Op::CmpLt, &[place, all])?, super::arithmetic::eq(b, found, x)?);
    let among = b.alu(Op::And, &[inside, same])?;
    reshape(b, among, &shape)
}
