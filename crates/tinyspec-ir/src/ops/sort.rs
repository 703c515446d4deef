//! Sorting. Short axes by rank: an element's place is the number of elements before it, n² independent comparisons of numbers
//! that hold an element's key and position. Others by counting the bytes of keys (`counting.rs`). Which are short depends on
//! the rows too (`cost.rs`). Ties keep their order; nan is greater than all numbers.

use super::argmax::{key, word};
use super::arithmetic::reverse_order;
use super::cost::Rows;
use super::creation::arange_dim;
use super::elementwise::stored;
use super::movement::{expand, narrow, reshape, transpose, unsqueeze};
use super::{axis_of, dtype_of, reduce, shape_of};
use crate::signature::NamedDim;
use crate::{Arg, Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result};
use smallvec::{SmallVec, smallvec};

/// The longest axis with a bounded dim that is sorted by comparing all pairs: that takes one kernel for all sizes, whereas a radix
/// sort takes one for each.
const RANGED_COMPARED: i64 = 2048;

/// Whether the last axis is sorted by comparing all pairs rather than by a radix sort of keys of this many bytes.
fn are_compared(shape: &[Dim], bytes: usize) -> bool {
    let is_ranged = |dim: &Dim| dim.as_const().is_none() && dim.bounds().1 < NamedDim::MAX;
    let is_short = |length: &Dim| length.bounds().1 <= RANGED_COMPARED;
    let rows = Rows::of(shape);
    shape.iter().any(is_ranged) && shape.last().is_some_and(is_short) || rows.compared() <= rows.counted(bytes)
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

    /// The words themselves: the first one counts most, the last one holds the position in its low half.
    pub fn parts(&self) -> &[NodeId] {
        &self.0
    }

    /// The positions that the words hold (i32).
    pub fn positions(&self, b: &mut dyn Builder) -> Result<NodeId> {
        super::cast(b, self.0[self.0.len() - 1], DType::I32)
    }

    pub fn map(&self, mut f: impl FnMut(NodeId) -> Result<NodeId>) -> Result<Words> {
        self.0.iter().map(|&word| f(word)).collect::<Result<_>>().map(Words)
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
    if !are_compared(&shape, dtype_of(b, x).size()) {
        return super::counting::order(b, x, descending);
    }
    let words = Words::of(b, x, descending)?;
    by_rank(b, &words)
}

/// Columns of the words in order (i32), where these are no longer in the places that they tell.
pub(super) fn columns_in_order(b: &mut dyn Builder, words: &Words) -> Result<NodeId> {
    let shape = shape_of(b, words.0[0]);
    let bytes = words.0.iter().map(|&word| dtype_of(b, word).size()).sum();
    match are_compared(&shape, bytes) {
        true => by_rank(b, words),
        false => super::counting::order_of_words(b, &words.0),
    }
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
        return Err(Error::new(ErrorKind::Value, "topk", format!("{k} of {length} elements"))
            .help(format!("from 0 to {length} of them, as the axis has")));
    }
    let moved = transpose(b, x, axis, -1)?;
    let order = match super::selection::first(b, moved, k, largest).map_err(|error| error.in_op("topk"))? {
        Some(order) => transpose(b, order, axis, -1)?,
        None => {
            let order = argsort(b, x, axis, largest).map_err(|error| error.in_op("topk"))?;
            narrow(b, order, axis, 0, k).map_err(|error| error.in_op("topk"))?
        }
    };
    let values = super::index::gather(b, x, order, axis)?;
    Ok(vec![values, order])
}
