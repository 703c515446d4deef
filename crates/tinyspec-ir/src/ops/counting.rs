//! Order by counting (radix sort, from the lowest byte on): each pass counts how often a byte has each value, which tells
//! where the elements go, and equal ones stay in order. Linear in the number of elements.
//!
//! A row is sorted by one kernel. A few long rows are cut into parts, which other threads count and move.

use super::argmax::key;
use super::creation::arange_dim;
use super::loops::{Loops, Memory, Size};
use super::movement::{expand, narrow, pad, reshape, transpose};
use super::{cast, dtype_of, index, shape_of};
use crate::kernel::WrittenKernel;
use crate::{Arg, AxisType, Builder, Const, DType, Dim, NodeId, Op, Result};

/// Values of a byte.
const DIGITS: i64 = 256;
/// Counters that are set to zero or copied together.
const LANES: i64 = 16;
/// Elements of a part: many more than there are counters.
const PART: i64 = 4096;
/// Rows of at least so many elements are cut into parts,
const LONG: i64 = 8 * PART;
/// unless there are so many rows that each thread has some.
const MANY: i64 = 32;

/// Unsigned numbers (u64) in the order of the elements, and how many of their low bytes count.
struct Keys {
    bits: NodeId,
    bytes: i64,
}

/// The positions (i32) of the elements of the last axis in order; equal ones stay in order.
pub(super) fn order(b: &mut dyn Builder, x: NodeId, descending: bool) -> Result<NodeId> {
    let x = b.add(Op::Detach, &[x], Arg::None)?;
    let Keys { mut bits, bytes } = keys(b, x)?;
    if descending {
        let last = number(b, !0 >> (64 - 8 * bytes));
        bits = b.alu(Op::Xor, &[bits, last])?;
    }
    after(b, None, Keys { bits, bytes })
}

/// The same for elements whose order several numbers tell, the first of which counts most: i64, or i32 that are not negative.
pub(super) fn order_of_words(b: &mut dyn Builder, words: &[NodeId]) -> Result<NodeId> {
    let mut order = None;
    for &word in words.iter().rev() {
        let keys = match dtype_of(b, word) {
            DType::I64 => keys(b, word)?,
            _ => Keys { bits: cast(b, word, DType::U64)?, bytes: 4 },
        };
        order = Some(after(b, order, keys)?);
    }
    match order {
        Some(order) => Ok(order),
        None => Ok(b.constant(Const::int(DType::I32, 0))),
    }
}

fn number(b: &mut dyn Builder, value: u64) -> NodeId {
    b.constant(Const::int(DType::U64, value.into()))
}

fn keys(b: &mut dyn Builder, x: NodeId) -> Result<Keys> {
    let dtype = dtype_of(b, x);
    let bytes = dtype.size() as i64;
    match dtype.int_range() {
        Some((0, _)) => return Ok(Keys { bits: cast(b, x, DType::U64)?, bytes }),
        Some((least, _)) if bytes < 4 => {
            let key = key(b, x)?;
            let least = b.constant(Const::int(dtype_of(b, key), least));
            let bits = super::arithmetic::sub(b, key, least)?;
            return Ok(Keys { bits: cast(b, bits, DType::U64)?, bytes });
        }
        _ => {}
    }
    let key = key(b, x)?;
    let unsigned = if dtype_of(b, key) == DType::I32 { DType::U32 } else { DType::U64 };
    let bits = b.add(Op::Bitcast, &[key], Arg::DType(unsigned))?;
    let sign = b.constant(Const::int(unsigned, 1 << (unsigned.size() * 8 - 1)));
    let bits = b.alu(Op::Xor, &[bits, sign])?;
    let bits = cast(b, bits, DType::U64)?;
    // The low bits of what was a shorter float are zeros.
    let zeros = match dtype {
        DType::BF16 => 16,
        DType::F16 => 8,
        _ => 0,
    };
    let shift = number(b, zeros);
    let bits = if zeros > 0 { b.alu(Op::Shr, &[bits, shift])? } else { bits };
    Ok(Keys { bits, bytes: unsigned.size() as i64 - zeros as i64 / 8 })
}

/// The order by these keys of elements that are in some `order` already. A word holds four bytes of a key beside a
/// position: of longer keys the low half goes first.
fn after(b: &mut dyn Builder, mut order: Option<NodeId>, keys: Keys) -> Result<NodeId> {
    let half = number(b, 32);
    let low = number(b, u32::MAX.into());
    let parts = match keys.bytes {
        ..=4 => vec![keys],
        bytes => vec![
            Keys { bits: b.alu(Op::And, &[keys.bits, low])?, bytes: 4 },
            Keys { bits: b.alu(Op::Shr, &[keys.bits, half])?, bytes: bytes - 4 },
        ],
    };
    for Keys { bits, bytes } in parts {
        let bits = match order {
            Some(order) => index::gather(b, bits, order, -1)?,
            None => bits,
        };
        let next = positions(b, bits, bytes)?;
        order = Some(match order {
            Some(order) => index::gather(b, order, next, -1)?,
            None => next,
        });
    }
    match order {
        Some(order) => Ok(order),
        None => Ok(b.constant(Const::int(DType::I32, 0))),
    }
}

/// The positions (i32), along the last axis, of numbers of at most four bytes in order.
fn positions(b: &mut dyn Builder, bits: NodeId, bytes: i64) -> Result<NodeId> {
    let shape = shape_of(b, bits);
    let (lead, length) = (&shape[..shape.len() - 1], shape[shape.len() - 1].clone());
    let rows = lead.iter().cloned().fold(Dim::from(1), |a, b| a * b);
    let bits = reshape(b, bits, &[rows.clone(), length.clone()])?;
    let position = arange_dim(b, &length, DType::I32)?;
    let position = cast(b, position, DType::U64)?;
    let shift = number(b, 8 * bytes as u64);
    let position = b.alu(Op::Shl, &[position, shift])?;
    let words = b.alu(Op::Or, &[position, bits])?;
    let is_cut =
        length.as_const().is_some_and(|length| length >= LONG) && rows.as_const().is_some_and(|rows| rows < MANY);
    let positions = if is_cut { in_parts(b, words, bytes)? } else { whole(b, words, bytes)? };
    let positions = cast(b, positions, DType::I32)?;
    reshape(b, positions, &shape)
}

/// Memory that a kernel fills.
fn empty(b: &mut dyn Builder, dtype: DType, shape: &[Dim]) -> Result<NodeId> {
    let zero = b.constant(Const::int(dtype, 0));
    expand(b, zero, shape)
}

/// Words (rows, length) sorted by their low bytes, without those: each pass of the radix sort drops one.
fn whole(b: &mut dyn Builder, words: NodeId, bytes: i64) -> Result<NodeId> {
    let shape = shape_of(b, words);
    let others = empty(b, DType::U64, &shape)?;
    let (rows, length) = (b.dim(&shape[0])?, b.dim(&shape[1])?);
    let results = of_rows(bytes)?.call(b, &[words, others, rows, length])?;
    Ok(results[bytes as usize % 2])
}

/// The same for rows that are cut into parts: the destinations of a part's elements follow from the counts of all parts.
fn in_parts(b: &mut dyn Builder, words: NodeId, bytes: i64) -> Result<NodeId> {
    let shape = shape_of(b, words);
    let (rows, length) = (shape[0].clone(), shape[1].as_const().unwrap_or(0));
    let parts = (length + PART - 1) / PART;
    let padded = [rows.clone(), Dim::from(parts * PART)];
    let mut words = pad(b, words, &[0, 0].map(Dim::from), &padded, f64::INFINITY)?;
    let by_part = [rows.clone(), Dim::from(parts), Dim::from(DIGITS)];
    let by_digit = [rows.clone(), Dim::from(DIGITS), Dim::from(parts)];
    let flat = [rows.clone(), Dim::from(parts * DIGITS)];
    let (dims, [count, scatter]) = ([b.dim(&rows)?, b.index(parts)], [counts_of_parts()?, moves_of_parts()?]);
    for _ in 0..bytes {
        let counts = empty(b, DType::I32, &flat)?;
        let counts = count.call(b, &[counts, words, dims[0], dims[1]])?[0];
        let counts = reshape(b, counts, &by_part)?;
        let counts = transpose(b, counts, 1, 2)?;
        let counts = reshape(b, counts, &flat)?;
        let ends = super::scan::cumsum(b, counts, 1)?;
        let starts = super::arithmetic::sub(b, ends, counts)?;
        let starts = reshape(b, starts, &by_digit)?;
        let starts = transpose(b, starts, 1, 2)?;
        let starts = reshape(b, starts, &flat)?;
        let others = empty(b, DType::U64, &padded)?;
        words = scatter.call(b, &[others, words, starts, dims[0], dims[1]])?[0];
    }
    narrow(b, words, 1, 0, length)
}

impl Loops {
    /// The low byte of `word >> shift`.
    fn digit(&mut self, word: NodeId, shift: i64) -> Result<NodeId> {
        let (shift, last) = (number(&mut self.graph, shift as u64), number(&mut self.graph, DIGITS as u64 - 1));
        let byte = self.graph.alu(Op::Shr, &[word, shift])?;
        let byte = self.graph.alu(Op::And, &[byte, last])?;
        self.graph.add(Op::Cast, &[byte], Arg::DType(DType::Index))
    }

    /// Adds `step` to a counter; returns its old value.
    fn advance(&mut self, counters: Memory, place: &[NodeId], step: i64) -> Result<NodeId> {
        let (old, step) = (self.load(counters, place, None)?, self.int(step));
        let new = self.graph.alu(Op::Add, &[old, step])?;
        self.store(counters, place, new, None)?;
        Ok(old)
    }

    /// Opens a loop over the elements of a part of a row; gives the word of each.
    fn words_of_part(&mut self, words: Memory, row: NodeId, part: NodeId) -> Result<NodeId> {
        let trips = self.graph.index(PART);
        let number = self.serial(trips)?;
        let element = self.sum(&[(PART, part), (1, number)], 0)?;
        self.load(words, &[row, element], None)
    }

    /// Stores a word without its low byte, at a place of a row of `size`.
    fn put(&mut self, target: Memory, row: NodeId, (place, size): (NodeId, NodeId), word: NodeId) -> Result<()> {
        let byte = number(&mut self.graph, 8);
        let rest = self.graph.alu(Op::Shr, &[word, byte])?;
        let (is_inside, place) = self.stored_index(place, size)?;
        self.store(target, &[row, place], rest, Some(is_inside))
    }
}

/// The kernel for rows as a whole, which go back and forth between two buffers.
fn of_rows(bytes: i64) -> Result<WrittenKernel> {
    let row = [Size::With(0, 1)];
    let (mut w, memories) = Loops::new(&[("words", DType::U64, &row), ("others", DType::U64, &row)], &[])?;
    let counters = w.local(DType::I32, &[bytes * DIGITS])?;
    let row = w.open(w.count, AxisType::Global)?;
    let length = w.groups;

    let trips = w.graph.index(bytes * DIGITS / LANES);
    let group = w.serial(trips)?;
    let lane = w.lanes(LANES)?;
    let place = w.sum(&[(LANES, group), (1, lane)], 0)?;
    let zero = w.int(0);
    w.store(counters, &[place], zero, None)?;
    w.close(2)?;

    let element = w.serial(length)?;
    let word = w.load(memories[0], &[row, element], None)?;
    for pass in 0..bytes {
        let digit = w.digit(word, 8 * pass)?;
        let place = w.sum(&[(1, digit)], pass * DIGITS)?;
        w.advance(counters, &[place], 1)?;
    }
    w.close(1)?;

    // Where the elements of each digit end.
    let trips = w.graph.index(DIGITS - 1);
    let digit = w.serial(trips)?;
    for pass in 0..bytes {
        let (own, next) = (w.sum(&[(1, digit)], pass * DIGITS)?, w.sum(&[(1, digit)], pass * DIGITS + 1)?);
        let (before, count) = (w.load(counters, &[own], None)?, w.load(counters, &[next], None)?);
        let end = w.graph.alu(Op::Add, &[before, count])?;
        w.store(counters, &[next], end, None)?;
    }
    w.close(1)?;

    for pass in 0..bytes {
        let (source, target) = (memories[pass as usize % 2], memories[(pass as usize + 1) % 2]);
        let from_end = w.serial(length)?;
        let element = w.sum(&[(1, length), (-1, from_end)], -1)?;
        let word = w.load(source, &[row, element], None)?;
        let digit = w.digit(word, 0)?;
        let place = w.sum(&[(1, digit)], pass * DIGITS)?;
        let end = w.advance(counters, &[place], -1)?;
        let one = w.int(-1);
        let place = w.graph.alu(Op::Add, &[end, one])?;
        w.put(target, row, (place, length), word)?;
        w.close(1)?;
    }
    w.close(1)?;
    w.finish("sort")
}

/// The kernel that counts, in each part, how often the low byte has each value.
fn counts_of_parts() -> Result<WrittenKernel> {
    let (counts, words) = ([Size::With(0, DIGITS)], [Size::With(0, PART)]);
    let (mut w, memories) = Loops::new(&[("counts", DType::I32, &counts)], &[("words", DType::U64, &words)])?;
    let (counts, words) = (memories[0], memories[1]);
    let row = w.open(w.count, AxisType::Global)?;
    let part = w.open(w.groups, AxisType::Global)?;

    let trips = w.graph.index(DIGITS / LANES);
    let group = w.serial(trips)?;
    let lane = w.lanes(LANES)?;
    let place = w.sum(&[(DIGITS, part), (LANES, group), (1, lane)], 0)?;
    let zero = w.int(0);
    w.store(counts, &[row, place], zero, None)?;
    w.close(2)?;

    let word = w.words_of_part(words, row, part)?;
    let digit = w.digit(word, 0)?;
    let place = w.sum(&[(DIGITS, part), (1, digit)], 0)?;
    w.advance(counts, &[row, place], 1)?;
    w.close(3)?;
    w.finish("count")
}

/// The kernel that moves the elements of each part to their places, of which `starts` are the first for each byte.
fn moves_of_parts() -> Result<WrittenKernel> {
    let (starts, words) = ([Size::With(0, DIGITS)], [Size::With(0, PART)]);
    let inputs = [("words", DType::U64, &words[..]), ("starts", DType::I32, &starts)];
    let (mut w, memories) = Loops::new(&[("moved", DType::U64, &words)], &inputs)?;
    let (moved, words, starts) = (memories[0], memories[1], memories[2]);
    let counters = w.local(DType::I32, &[DIGITS])?;
    let row = w.open(w.count, AxisType::Global)?;
    let part = w.open(w.groups, AxisType::Global)?;

    let trips = w.graph.index(DIGITS / LANES);
    let group = w.serial(trips)?;
    let lane = w.lanes(LANES)?;
    let digit = w.sum(&[(LANES, group), (1, lane)], 0)?;
    let place = w.sum(&[(DIGITS, part), (1, digit)], 0)?;
    let start = w.load(starts, &[row, place], None)?;
    w.store(counters, &[digit], start, None)?;
    w.close(2)?;

    let word = w.words_of_part(words, row, part)?;
    let digit = w.digit(word, 0)?;
    let place = w.advance(counters, &[digit], 1)?;
    let size = w.sum(&[(PART, w.groups)], 0)?;
    w.put(moved, row, (place, size), word)?;
    w.close(3)?;
    w.finish("move")
}
