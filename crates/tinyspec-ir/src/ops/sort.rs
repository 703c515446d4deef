//! Sorting. Short or few axes by rank: an element's place is the number of elements before it, n² independent comparisons in
//! one kernel. Others by a bitonic network (Batcher, 1968): n/2 · log₂n · (log₂n + 1)/2 comparisons. Both are of numbers that
//! hold an element's key and position, so that ties keep their order; nan is greater than all numbers.

use super::argmax::{key, word};
use super::arithmetic::reverse_order;
use super::creation::arange_dim;
use super::elementwise::stored;
use super::movement::{expand, flip, narrow, pad, reshape, stack, transpose, unsqueeze};
use super::{axis_of, cast, dtype_of, reduce, shape_of};
use crate::{Arg, Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};
use smallvec::{SmallVec, smallvec};

/// Comparisons of all with all that take as long as a step of a network over nothing: to build, plan and run a kernel.
const STEP: i64 = 250_000;

/// The same for each word of a step, which is read and written.
const WORD: i64 = 6;

/// Does it take less to compare all with all than the many steps of a network?
fn are_compared(rows: &Dim, length: i64) -> bool {
    let rows = rows.as_const().unwrap_or(1).max(1);
    let runs = i64::from((length.max(1) as u64).next_power_of_two().trailing_zeros());
    let steps = runs * (runs + 1) / 2;
    let words = rows.saturating_mul(length);
    words.saturating_mul(length) <= WORD.saturating_mul(words).saturating_add(STEP).saturating_mul(steps)
}

/// Numbers that stand for the elements and ascend in the order that is asked for: an element's key in the upper half of a
/// word and its position in the lower, or two words where the key takes 64 bits. No two elements have the same.
#[derive(Clone)]
pub(super) struct Words(SmallVec<[NodeId; 3]>);

impl Words {
    /// Of elements that have their places along the last axis.
    pub fn of(b: &mut dyn Builder, x: NodeId, descending: bool) -> Result<Words> {
        let shape = shape_of(b, x);
        let positions = arange_dim(b, &shape[shape.len() - 1], DType::I32)?;
        let positions = expand(b, positions, &shape)?;
        Words::at(b, x, positions, descending)
    }

    /// Of elements with these positions.
    pub fn at(b: &mut dyn Builder, x: NodeId, positions: NodeId, descending: bool) -> Result<Words> {
        let key = order_key(b, x, descending)?;
        if dtype_of(b, key) == DType::I64 {
            return Ok(Words(smallvec![key, positions]));
        }
        Ok(Words(smallvec![word(b, key, positions)?]))
    }

    pub fn map(&self, mut f: impl FnMut(NodeId) -> Result<NodeId>) -> Result<Words> {
        self.0.iter().map(|&word| f(word)).collect::<Result<_>>().map(Words)
    }

    /// The greatest number less each: where these are padded with 0, that stands after all elements.
    pub fn complement(&self, b: &mut dyn Builder) -> Result<Words> {
        self.map(|word| {
            let greatest = dtype_of(b, word).int_range().map_or(0, |range| range.1);
            let greatest = b.constant(Const::int(dtype_of(b, word), greatest));
            b.alu(Op::Xor, &[word, greatest])
        })
    }

    /// `[x stands before y]`: by the first words that differ.
    pub fn precede(&self, b: &mut dyn Builder, other: &Words) -> Result<NodeId> {
        let mut pairs = self.0.iter().zip(&other.0).rev();
        let Some((&x, &y)) = pairs.next() else { return Ok(b.constant(Const::int(DType::Bool, 0))) };
        let mut precedes = b.alu(Op::CmpLt, &[x, y])?;
        for (&x, &y) in pairs {
            let (before, same) = (b.alu(Op::CmpLt, &[x, y])?, super::arithmetic::eq(b, x, y)?);
            let tie = b.alu(Op::And, &[same, precedes])?;
            precedes = b.alu(Op::Or, &[before, tie])?;
        }
        Ok(precedes)
    }

    /// The first words along an axis, which is dropped.
    pub fn first_of(&self, b: &mut dyn Builder, axis: i64) -> Result<Words> {
        let (mut first, mut words) = (SmallVec::new(), self.0.clone());
        while !words.is_empty() {
            let word = words.remove(0);
            let least = reduce::min(b, word, Some(&[axis]), true)?;
            first.push(super::movement::squeeze(b, least, Some(&[axis]))?);
            // The others of those that have the least.
            let is_least = super::arithmetic::eq(b, word, least)?;
            for other in &mut words {
                let last = super::like(b, *other, f64::INFINITY);
                *other = b.alu(Op::Where, &[is_least, *other, last])?;
            }
        }
        Ok(Words(first))
    }

    /// The positions (i32).
    pub fn positions(&self, b: &mut dyn Builder) -> Result<NodeId> {
        let last = self.0[self.0.len() - 1];
        cast(b, last, DType::I32)
    }
}

/// A number for each element, ascending in the order that is asked for.
pub(super) fn order_key(b: &mut dyn Builder, x: NodeId, descending: bool) -> Result<NodeId> {
    let x = b.add(Op::Detach, &[x], Arg::None)?;
    let key = key(b, x)?;
    if descending { reverse_order(b, key) } else { Ok(key) }
}

/// The positions, along the last axis, of the elements in order (i32).
fn order(b: &mut dyn Builder, x: NodeId, descending: bool) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let words = Words::of(b, x, descending)?;
    match shape[shape.len() - 1].as_const() {
        Some(length) if !are_compared(&rows_of(&shape), length) => by_network(b, words, &shape, length),
        _ => by_rank(b, &words),
    }
}

fn rows_of(shape: &[Dim]) -> Dim {
    shape[..shape.len() - 1].iter().cloned().fold(Dim::from(1), |a, b| a * b)
}

/// Columns of the words in order (i32), where these are no longer in the places that they tell.
pub(super) fn columns_in_order(b: &mut dyn Builder, words: &Words) -> Result<NodeId> {
    let shape = shape_of(b, words.0[0]);
    match shape[shape.len() - 1].as_const() {
        Some(length) if !are_compared(&rows_of(&shape), length) => {
            let columns = arange_dim(b, &Dim::from(length), DType::I32)?;
            let mut words = words.clone();
            words.0.push(expand(b, columns, &shape)?);
            by_network(b, words, &shape, length)
        }
        _ => by_rank(b, words),
    }
}

/// A network that merges ever longer runs. The first step of a merge compares a run with the mirrored next one, so that all
/// runs ascend; the others compare halves.
fn by_network(b: &mut dyn Builder, words: Words, shape: &[Dim], length: i64) -> Result<NodeId> {
    let (rows, width) = (rows_of(shape), (length as u64).next_power_of_two() as i64);
    let flat = [rows.clone(), Dim::from(width)];
    let padded = words.complement(b)?.map(|word| {
        let word = reshape(b, word, &[rows.clone(), Dim::from(length)])?;
        pad(b, word, &[Dim::from(0), Dim::from(0)], &flat, 0.0)
    })?;
    let mut words = padded.complement(b)?;
    let mut run = 1;
    while run < width {
        let mut distance = run;
        while distance > 0 {
            let blocks = [rows.clone(), Dim::from(width / (2 * distance)), Dim::from(2), Dim::from(distance)];
            let mirrored = distance == run;
            words = compare(b, &words, &blocks, mirrored)?
                .map(|joined| reshape(b, joined, &flat).and_then(|joined| stored(b, joined)))?;
            distance /= 2;
        }
        run *= 2;
    }
    let order = words.positions(b)?;
    let order = narrow(b, order, 1, 0, length)?;
    reshape(b, order, shape)
}

/// A step of the network: of each pair that two halves of a block hold, the first one goes to the first half.
fn compare(b: &mut dyn Builder, words: &Words, blocks: &[Dim], mirrored: bool) -> Result<Words> {
    let half = |b: &mut dyn Builder, x: NodeId, number: i64| -> Result<NodeId> {
        let x = reshape(b, x, blocks)?;
        let half = narrow(b, x, 2, number, 1)?;
        if mirrored && number == 1 { flip(b, half, &[3]) } else { Ok(half) }
    };
    let first = words.map(|x| half(b, x, 0))?;
    let second = words.map(|x| half(b, x, 1))?;
    let swap = second.precede(b, &first)?;
    let shape: Shape = [0, 1, 3].iter().map(|&axis| blocks[axis].clone()).collect();
    let joined = first.0.iter().zip(&second.0).map(|(&first, &second)| {
        let low = b.alu(Op::Where, &[swap, second, first])?;
        let high = b.alu(Op::Where, &[swap, first, second])?;
        let high = if mirrored { flip(b, high, &[3])? } else { high };
        let (low, high) = (reshape(b, low, &shape)?, reshape(b, high, &shape)?);
        stack(b, &[low, high], 2)
    });
    joined.collect::<Result<_>>().map(Words)
}

fn by_rank(b: &mut dyn Builder, words: &Words) -> Result<NodeId> {
    let shape = shape_of(b, words.0[0]);
    let rank = ranks(b, words)?;
    let rank = stored(b, rank)?;
    // The inverse of the ranks: which element has this one.
    let rank = unsqueeze(b, rank, -2)?;
    let length = shape[shape.len() - 1].clone();
    let row = arange_dim(b, &length, DType::I32)?;
    let column = reshape(b, row, &[length.clone(), Dim::from(1)])?;
    let here = super::arithmetic::eq(b, rank, column)?;
    let zero = b.constant(Const::int(DType::I32, 0));
    let positions = b.alu(Op::Where, &[here, row, zero])?;
    reduce::sum(b, positions, Some(&[-1]), false)
}

/// How many elements of the last axis stand before each (i32).
fn ranks(b: &mut dyn Builder, words: &Words) -> Result<NodeId> {
    let own = words.map(|x| unsqueeze(b, x, -1))?;
    let other = words.map(|x| unsqueeze(b, x, -2))?;
    let precedes = other.precede(b, &own)?;
    reduce::sum(b, precedes, Some(&[-1]), false)
}

/// Positions that put `x` in order along `axis` (i32).
pub fn argsort(b: &mut dyn Builder, x: NodeId, axis: i64, descending: bool) -> Result<NodeId> {
    if let Some(result) = super::in_row(b, x, axis, |b, x| argsort(b, x, 0, descending)) {
        return result;
    }
    axis_of("argsort", axis, &shape_of(b, x))?;
    let moved = transpose(b, x, axis, -1)?;
    let order = order(b, moved, descending)?;
    transpose(b, order, axis, -1)
}

/// `x` in order along `axis`, and the positions its elements come from (i32).
pub fn sort(b: &mut dyn Builder, x: NodeId, axis: i64, descending: bool) -> Result<Vec<NodeId>> {
    let order = argsort(b, x, axis, descending).map_err(|error| error.in_op("sort"))?;
    let is_scalar = shape_of(b, x).is_empty();
    let sorted = if is_scalar { x } else { super::index::gather(b, x, order, axis)? };
    Ok(vec![sorted, order])
}

/// The `k` greatest (or least) elements along `axis`, in order, and their positions (i32).
pub fn topk(b: &mut dyn Builder, x: NodeId, k: i64, axis: i64, largest: bool) -> Result<Vec<NodeId>> {
    let shape = shape_of(b, x);
    let length = &shape[axis_of("topk", axis, &shape)?];
    if k < 0 || length.bounds().1 < k {
        return Err(Error::new(ErrorKind::Value, "topk", format!("{k} of {length} elements")));
    }
    let moved = transpose(b, x, axis, -1)?;
    let order = match super::selection::first(b, moved, k, largest).map_err(|error| error.in_op("topk"))? {
        Some(order) => transpose(b, order, axis, -1)?,
        None => {
            let order = argsort(b, x, axis, largest).map_err(|error| error.in_op("topk"))?;
            narrow(b, order, axis, 0, k)?
        }
    };
    let values = super::index::gather(b, x, order, axis)?;
    Ok(vec![values, order])
}
