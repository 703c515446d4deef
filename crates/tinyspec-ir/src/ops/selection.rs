//! Elements by their number in order, without bringing the others in order: by their bits, a few at a time, and the first
//! few by way of the first ones of blocks. Places in an ascending axis by halving it.

mod partial;

use super::argmax::{argmax, has_short_key, key};
use super::cost::{self, Rows};
use super::elementwise::stored;
use super::movement::{expand, narrow, pad, reshape, unsqueeze};
use super::sort::{Words, columns_in_order, order_key};
use super::{cast, dtype_of, index, like, reduce, shape_of};
use crate::{Arg, Builder, Const, DType, Dim, NodeId, Op, Result};

/// Bits that a round decides: of few, all of whose ways to go on are compared with each element, and not so few that the
/// rounds take more than the comparisons.
const BITS: i64 = 2;

/// Whether selecting this many order statistics one after the other is cheaper than sorting the axis.
pub(super) fn is_cheaper(b: &dyn Builder, x: NodeId, axis: usize, numbers: i64) -> bool {
    let (shape, dtype) = (shape_of(b, x), dtype_of(b, x));
    let (rows, rounds) = (Rows::along(&shape, axis), numbers * rounds(dtype));
    shape[axis].as_const().is_some() && rows.selected(rounds, (1 << BITS) - 1) < rows.sorted(dtype.size())
}

/// Rounds of a selection.
fn rounds(dtype: DType) -> i64 {
    if has_short_key(dtype) { 32 / BITS } else { 64 / BITS }
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
/// A round knows the upper bits of its key. It counts the elements below each continuation by the next bits; the greatest
/// continuation that no more than `number` elements are below is right.
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

/// Bytes of a word that holds a key and a position.
const WORD: usize = 8;

/// How the first elements of rows are found.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    /// All are brought in order.
    Sorted,
    /// One pass over the row for each.
    Passes,
    /// By way of the first elements of so many blocks.
    Blocks(i64),
}

/// The cheapest way to find the first `k` of each row of `length` words, and its cost.
fn cheapest(rows: &Rows, length: i64, k: i64) -> (Way, f64) {
    let best = without_blocks(rows, length, k);
    let blocks = (length.saturating_mul(k) as u64).isqrt().next_power_of_two() as i64;
    let size = (length + blocks - 1) / blocks;
    // Otherwise neither the blocks nor what is chosen of them are fewer.
    if 2 * blocks > length || 2 * size * k > length {
        return best;
    }
    let (heads, chosen) = (cheapest(rows, blocks, k), without_blocks(rows, size * k, k));
    let cost = rows.with_length(length).blocks() + heads.1 + chosen.1;
    if cost < best.1 { (Way::Blocks(blocks), cost) } else { best }
}

/// The same for words in any order, which cannot be dealt out to blocks by position.
fn without_blocks(rows: &Rows, length: i64, k: i64) -> (Way, f64) {
    let rows = rows.with_length(length);
    let (sorted, passes) = (rows.sorted(WORD), rows.partial(k));
    if passes < sorted { (Way::Passes, passes) } else { (Way::Sorted, sorted) }
}

/// The first `k` of the last axis in order, as positions (…, k), i32. None where bringing all in order takes less, or the length is not
/// a number.
pub(super) fn first(b: &mut dyn Builder, x: NodeId, k: i64, descending: bool) -> Result<Option<NodeId>> {
    let mut shape = shape_of(b, x);
    let last = shape.len() - 1;
    let Some(length) = shape[last].as_const().filter(|_| k > 0) else { return Ok(None) };
    let (all, bytes) = (Rows::of(&shape), dtype_of(b, x).size());
    let (way, cost) = cheapest(&all, length, k);
    let by_last = all.by_last(rounds(dtype_of(b, x)), (1 << BITS) - 1) + all.with_length(k).sorted(WORD);
    if all.sorted(bytes) <= cost.min(by_last) {
        return Ok(None);
    }
    let rows = shape[..last].iter().cloned().fold(Dim::from(1), |a, b| a * b);
    let x = reshape(b, x, &[rows.clone(), Dim::from(length)])?;
    let row = Row { x, rows, length, descending };
    let columns = if by_last < cost {
        row.up_to(b, k)?
    } else {
        let words = Words::of(b, x, descending)?;
        row.leading(b, &words, [length, k], way)?
    };
    shape[last] = Dim::from(k);
    reshape(b, columns, &shape).map(Some)
}

/// Elements (rows, length), and their order.
struct Row {
    x: NodeId,
    rows: Dim,
    length: i64,
    descending: bool,
}

impl Row {
    /// Columns (rows, k) of the first `k` of `length` words, in order.
    ///
    /// With blocks, words are dealt out to them. The first `k` are all in the `k` blocks whose own first ones are first, so these
    /// blocks are looked for among as many words as there are blocks, and the first `k` among the words of these blocks. Both are
    /// about `√(length · k)` where there are as many blocks.
    fn leading(&self, b: &mut dyn Builder, words: &Words, [length, k]: [i64; 2], way: Way) -> Result<NodeId> {
        let rows = &self.rows;
        let blocks = match way {
            Way::Sorted => {
                let order = columns_in_order(b, words)?;
                let order = narrow(b, order, -1, 0, k)?;
                let order = stored(b, order)?;
                let columns = words.positions(b)?;
                return index::gather(b, columns, order, -1);
            }
            Way::Passes => return partial::columns(b, words, k),
            Way::Blocks(blocks) => blocks,
        };
        let all = Rows::of(&[rows.clone(), Dim::from(length)]);
        let size = (length + blocks - 1) / blocks;
        let dealt = words.map(|word| {
            let padded = [rows.clone(), Dim::from(size * blocks)];
            let padded = pad(b, word, &[Dim::from(0), Dim::from(0)], &padded, f64::INFINITY)?;
            reshape(b, padded, &[rows.clone(), Dim::from(size), Dim::from(blocks)])
        })?;
        let heads = dealt.first_of(b, 1)?.map(|word| stored(b, word))?;
        let chosen = self.leading(b, &heads, [blocks, k], cheapest(&all, blocks, k).0)?;
        // Block j has places j, j + blocks, …. Numbers of blocks are powers of two, so a word's column and its place are equal modulo
        // their number.
        let number = b.constant(Const::int(DType::I32, blocks.into()));
        let chosen = b.alu(Op::Mod, &[chosen, number])?;
        let chosen = unsqueeze(b, chosen, 1)?;
        let starts = super::creation::arange(b, 0.0, (size * blocks) as f64, blocks as f64, DType::I32)?;
        let starts = reshape(b, starts, &[Dim::from(size), Dim::from(1)])?;
        let places = b.alu(Op::Add, &[chosen, starts])?;
        let places = reshape(b, places, &[rows.clone(), Dim::from(size * k)])?;
        let limit = b.constant(Const::int(DType::I32, length.into()));
        let inside = b.alu(Op::CmpLt, &[places, limit])?;
        let candidates = match length == self.length {
            true => self.at(b, places)?,
            false => words.map(|word| index::gather(b, word, places, -1))?,
        };
        let candidates = candidates.map(|word| {
            let last = like(b, word, f64::INFINITY);
            let word = b.alu(Op::Where, &[inside, word, last])?;
            stored(b, word)
        })?;
        self.leading(b, &candidates, [size * k, k], without_blocks(&all, size * k, k).0)
    }

    /// The words of some columns of the row.
    fn at(&self, b: &mut dyn Builder, columns: NodeId) -> Result<Words> {
        let x = index::gather(b, self.x, columns, -1)?;
        Words::at(b, x, columns, self.descending)
    }

    /// Columns (rows, k) of the first `k`, in order: the elements before the last of them, and as many of those equal to it as there
    /// is room for.
    fn up_to(&self, b: &mut dyn Builder, k: i64) -> Result<NodeId> {
        let length = self.length;
        let number = b.constant(Const::int(DType::I32, if self.descending { length - k } else { k - 1 }.into()));
        let number = expand(b, number, &[self.rows.clone(), Dim::from(1)])?;
        let last = nth(b, self.x, number)?;
        let keys = order_key(b, self.x, self.descending)?;
        let last = index::gather(b, keys, last, -1)?;
        let last = stored(b, last)?;
        let (before, same) = (b.alu(Op::CmpLt, &[keys, last])?, super::arithmetic::eq(b, keys, last)?);
        let count = reduce::sum(b, before, Some(&[-1]), true)?;
        let all = b.constant(Const::int(DType::I32, k.into()));
        let room = super::arithmetic::sub(b, all, count)?;
        let same_so_far = super::scan::cumsum(b, same, -1)?;
        let has_room = super::arithmetic::le(b, same_so_far, room)?;
        let fits = b.alu(Op::And, &[same, has_room])?;
        let kept = b.alu(Op::Or, &[before, fits])?;
        let kept = stored(b, kept)?;
        let so_far = super::scan::cumsum(b, kept, -1)?;
        // The rank of each kept column; dropped columns have rank 0, which none of the wanted ranks equals.
        let zero = b.constant(Const::int(DType::I32, 0));
        let number = b.alu(Op::Where, &[kept, so_far, zero])?;
        let number = stored(b, number)?;
        let number = unsqueeze(b, number, -2)?;
        let wanted = super::creation::arange(b, 1.0, (k + 1) as f64, 1.0, DType::I32)?;
        let wanted = reshape(b, wanted, &[Dim::from(k), Dim::from(1)])?;
        let here = super::arithmetic::eq(b, number, wanted)?;
        let column = super::creation::arange_dim(b, &Dim::from(length), DType::I32)?;
        let columns = b.alu(Op::Where, &[here, column, zero])?;
        let columns = reduce::sum(b, columns, Some(&[-1]), false)?;
        let columns = stored(b, columns)?;
        let words = self.at(b, columns)?.map(|word| stored(b, word))?;
        let order = columns_in_order(b, &words)?;
        index::gather(b, columns, order, -1)
    }
}

/// Insertion points of `values` (…, m) among these (…, n), which ascend along the last axis: before equal elements, or
/// after if `right` (i32). Found by halving the axis, or by counting where that costs less or its length is not a number.
pub(super) fn places(b: &mut dyn Builder, sorted: NodeId, values: NodeId, right: bool) -> Result<NodeId> {
    let is_before = if right { super::arithmetic::le } else { super::arithmetic::lt };
    let shape = shape_of(b, sorted);
    let lead = shape[..shape.len() - 1].iter().map(Dim::as_const).collect::<Option<Vec<i64>>>();
    // Counts have 32 bits, so narrower elements are not compared faster.
    let width = DType::I32.size().max(dtype_of(b, sorted).size());
    let is_long = |&length: &i64| cost::halved(length) < cost::scanned(length, width);
    let length = shape[shape.len() - 1].as_const().filter(is_long);
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
    for step in (0..cost::halvings(length)).rev().map(|bit| 1 << bit) {
        let width = number(b, step);
        let next = b.alu(Op::Add, &[before, width])?;
        let beyond = b.alu(Op::CmpLt, &[all, next])?;
        let place = b.alu(Op::Add, &[from, next])?;
        let element = b.alu(Op::Index, &[flat, place])?;
        let stays = is_before(b, element, values)?;
        let stays = b.alu(Op::CmpLt, &[beyond, stays])?;
        before = b.alu(Op::Where, &[stays, next, before])?;
    }
    cast(b, before, DType::I32)
}

/// Whether sorting the vector `values` and looking up each element of `x` is cheaper than comparing all pairs.
pub(super) fn are_sorted_first(b: &dyn Builder, x: NodeId, values: NodeId) -> bool {
    let (shape, elements) = (shape_of(b, values), shape_of(b, x));
    let Some(length) = shape[0].as_const() else { return false };
    let dtype = dtype_of(b, values);
    let computed = if dtype.is_float() { dtype.accumulator() } else { dtype };
    let count = Rows::of(&elements).count();
    let looked_up = Rows::of(&shape).sorted(dtype.size()) + count * cost::halved(length);
    looked_up < count * cost::scanned(length, computed.size())
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
