//! Elimination with the greatest pivots of the columns: `A = P L U`.

use super::triangular::with_unit_diagonal;
use super::{Matrix, beside, first_column, first_row, is_first, numbers, rolled_on, step, turned};
use crate::ops::arithmetic::{div, eq, logical_not, mul, ne, sub};
use crate::ops::elementwise::abs;
use crate::ops::movement::{expand, narrow, roll, squeeze, tril, triu, unsqueeze};
use crate::ops::{cast, dtype_of, like, reduce};
use crate::{Builder, Const, DType, NodeId, Op, Result};

/// Both triangles in one matrix, whose diagonal is that of U, and the rows in the order of the pivots.
pub(super) struct Packed {
    pub factors: NodeId,
    /// Which row of A each row was (i32), in the last axis.
    pub order: NodeId,
}

/// The state of the elimination: matrices, whose first row and column are next, and beside them whether a row is still to
/// come, and its number. Both are columns of the state: what only depends on the step would make each step another kernel.
pub(super) fn packed(b: &mut dyn Builder, matrix: Matrix) -> Result<Packed> {
    let size = matrix.rows;
    let column = matrix.like(b, &[size, 1]);
    let number = numbers(b, size)?;
    let is_top = is_first(b, size)?;
    let is_left = turned(b, is_top)?;
    let one = like(b, matrix.x, 1.0);
    let flags = expand(b, one, &column)?;
    let dtype = dtype_of(b, matrix.x);
    let row_numbers = cast(b, number, dtype)?;
    let row_numbers = expand(b, row_numbers, &column)?;
    let state = beside(b, &[matrix.x, flags, row_numbers])?;
    let mut state = step(b, state)?;
    let zero = like(b, state, 0.0);
    let none = like(b, state, -1.0);
    for _ in 0..size {
        let waits = narrow(b, state, -1, size, 1)?;
        let waits = ne(b, waits, zero)?;
        let column = first_column(b, state)?;
        let magnitude = abs(b, column)?;
        let candidates = b.alu(Op::Where, &[waits, magnitude, none])?;
        let place = reduce::argmax(b, candidates, -2)?;
        let place = super::as_row(b, place)?;
        let place = step(b, place)?;

        let is_pivot = eq(b, number, place)?;
        let pivot_row = b.alu(Op::Where, &[is_pivot, state, zero])?;
        let pivot_row = reduce::sum(b, pivot_row, Some(&[-2]), true)?;
        let top = first_row(b, state)?;
        let exchanged = b.alu(Op::Where, &[is_pivot, top, state])?;
        let exchanged = b.alu(Op::Where, &[is_top, pivot_row, exchanged])?;

        // How often the pivot's row is taken off each other one; that is kept in the pivot's column.
        let pivot = first_column(b, pivot_row)?;
        let is_zero = eq(b, pivot, zero)?;
        let divisor = b.alu(Op::Where, &[is_zero, one, pivot])?;
        let column = first_column(b, exchanged)?;
        let share = div(b, column, divisor)?;
        let later = logical_not(b, is_top)?;
        let below = b.alu(Op::And, &[waits, later])?;
        let share = b.alu(Op::Where, &[below, share, zero])?;
        let right = turned(b, below)?;
        let row = narrow(b, pivot_row, -1, 0, size)?;
        let row = b.alu(Op::Where, &[right, row, zero])?;
        let taken = mul(b, share, row)?;
        let inner = narrow(b, exchanged, -1, 0, size)?;
        let rest = sub(b, inner, taken)?;
        let is_share = b.alu(Op::And, &[is_left, below])?;
        let rest = b.alu(Op::Where, &[is_share, share, rest])?;

        let flags = b.alu(Op::Where, &[below, one, zero])?;
        let row_numbers = narrow(b, exchanged, -1, size + 1, 1)?;
        let columns = beside(b, &[flags, row_numbers])?;
        let columns = roll(b, columns, &[-1], &[-2])?;
        let rest = rolled_on(b, rest)?;
        let next = beside(b, &[rest, columns])?;
        state = step(b, next)?;
    }
    let factors = narrow(b, state, -1, 0, size)?;
    let order = narrow(b, state, -1, size + 1, 1)?;
    let order = squeeze(b, order, Some(&[-1]))?;
    let order = cast(b, order, DType::I32)?;
    Ok(Packed { factors, order })
}

impl Packed {
    /// The rows of `x` in the order of the pivots.
    pub fn arranged_rows(&self, b: &mut dyn Builder, x: NodeId, rows: i64) -> Result<NodeId> {
        let hit = self.arrangement(b, rows)?;
        let (hit, x) = (unsqueeze(b, hit, -1)?, unsqueeze(b, x, -3)?);
        picked(b, hit, x, -2)
    }

    /// The columns of `x` at the places that the rows of A have.
    pub fn returned_columns(&self, b: &mut dyn Builder, x: NodeId, rows: i64) -> Result<NodeId> {
        let hit = self.arrangement(b, rows)?;
        let (hit, x) = (unsqueeze(b, hit, -3)?, unsqueeze(b, x, -1)?);
        picked(b, hit, x, -2)
    }

    /// `[row k of the result is row j of A]`, a bool at (k, j).
    pub fn arrangement(&self, b: &mut dyn Builder, rows: i64) -> Result<NodeId> {
        let number = numbers(b, rows)?;
        let number = turned(b, number)?;
        let order = unsqueeze(b, self.order, -1)?;
        eq(b, order, number)
    }

    /// 1 or -1: whether an even or an odd number of exchanges made the order, in the dtype of the factors.
    pub fn sign(&self, b: &mut dyn Builder, rows: i64) -> Result<NodeId> {
        let row = super::as_row(b, self.order)?;
        let column = turned(b, row)?;
        let reversed = b.alu(Op::CmpLt, &[row, column])?;
        let number = numbers(b, rows)?;
        let other = turned(b, number)?;
        let before = b.alu(Op::CmpLt, &[number, other])?;
        let reversed = b.alu(Op::And, &[reversed, before])?;
        let count = reduce::sum(b, reversed, Some(&[-2, -1]), false)?;
        let last_bit = b.constant(Const::int(DType::I32, 1));
        let is_odd = b.alu(Op::And, &[count, last_bit])?;
        let is_odd = cast(b, is_odd, DType::Bool)?;
        let (minus, plus) = (like(b, self.factors, -1.0), like(b, self.factors, 1.0));
        b.alu(Op::Where, &[is_odd, minus, plus])
    }
}

/// The elements of `x` that are hit, one along the axis.
fn picked(b: &mut dyn Builder, hit: NodeId, x: NodeId, axis: i64) -> Result<NodeId> {
    let zero = like(b, x, 0.0);
    let seen = b.alu(Op::Where, &[hit, x, zero])?;
    reduce::sum(b, seen, Some(&[axis]), false)
}

/// P, L and U with `A = P L U`: a permutation, a lower triangle with a diagonal of ones, an upper triangle.
pub fn lu(b: &mut dyn Builder, x: NodeId) -> Result<Vec<NodeId>> {
    let matrix = Matrix::square(b, "lu", x)?;
    let packed = packed(b, matrix)?;
    let arrangement = packed.arrangement(b, matrix.rows)?;
    let permutation = turned(b, arrangement)?;
    let lower = tril(b, packed.factors, -1)?;
    let lower = with_unit_diagonal(b, lower, matrix.rows, matrix.rows)?;
    let upper = triu(b, packed.factors, 0)?;
    [permutation, lower, upper].into_iter().map(|part| cast(b, part, matrix.dtype)).collect()
}
