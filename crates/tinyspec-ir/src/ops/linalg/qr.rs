//! Orthogonal columns by reflections (Householder, 1958): `A = Q R`.

use super::triangular::{Kind, inverse, scale_columns, scale_rows, with_unit_diagonal};
use super::{Matrix, beside, eye, first_column, first_row, is_first, joined_on, rolled_on, step, turned};
use crate::ops::arithmetic::{div, eq, logical_not, mul, ne, neg, sub};
use crate::ops::elementwise::{abs, detach, sqrt, square};
use crate::ops::matmul::matmul;
use crate::ops::movement::{diagonal, expand, narrow, roll, squeeze, tril, triu};
use crate::ops::{cast, dtype_of, like, reduce};
use crate::{Builder, NodeId, Op, Result};

/// Q and R with `A = Q R`: orthonormal columns and an upper triangle, both as narrow as A allows.
pub fn qr(b: &mut dyn Builder, x: NodeId) -> Result<Vec<NodeId>> {
    let matrix = Matrix::of(b, "qr", x)?;
    let reflected = reflected(b, matrix)?;
    let count = matrix.rows.min(matrix.columns);
    let top = narrow(b, reflected.rest, -2, 0, count)?;
    let upper = triu(b, top, 0)?;
    let q = product(b, matrix, reflected.vectors, count)?;
    Ok(vec![cast(b, q, matrix.dtype)?, cast(b, upper, matrix.dtype)?])
}

struct Reflected {
    /// R, in its upper triangle.
    rest: NodeId,
    /// The vectors v of the reflections `1 - τ v vᵀ`, as columns, with 1 on the diagonal and 0 above.
    vectors: NodeId,
}

/// The state is the matrix, whose first row and column are next, and beside it whether a row is still to come.
fn reflected(b: &mut dyn Builder, matrix: Matrix) -> Result<Reflected> {
    let Matrix { rows, columns, .. } = matrix;
    let count = rows.min(columns);
    let is_top = is_first(b, rows)?;
    let is_left = is_first(b, columns)?;
    let is_left = turned(b, is_left)?;
    let (zero, one) = (like(b, matrix.x, 0.0), like(b, matrix.x, 1.0));
    let flags = matrix.like(b, &[rows, 1]);
    let flags = expand(b, one, &flags)?;
    let state = beside(b, &[matrix.x, flags])?;
    let mut state = step(b, state)?;
    let none = matrix.like(b, &[rows, count]);
    let mut vectors = expand(b, zero, &none)?;
    for _ in 0..count {
        let a = narrow(b, state, -1, 0, columns)?;
        let waits = narrow(b, state, -1, columns, 1)?;
        let waits = ne(b, waits, zero)?;
        let own = first_column(b, a)?;
        let column = b.alu(Op::Where, &[waits, own, zero])?;
        // Scaled, so that no square overflows or is lost.
        let magnitude = greatest(b, column)?;
        let magnitude = step(b, magnitude)?;
        let is_zero = eq(b, magnitude, zero)?;
        let scale = b.alu(Op::Where, &[is_zero, one, magnitude])?;
        let column = div(b, column, scale)?;
        let head = first_row(b, column)?;
        let squares = square(b, column)?;
        let total = reduce::sum(b, squares, Some(&[-2]), true)?;
        let total = b.alu(Op::Where, &[is_zero, one, total])?;
        let length = sqrt(b, total)?;
        // Away from the head: the difference keeps its digits.
        let negative = b.alu(Op::CmpLt, &[head, zero])?;
        let minus = neg(b, length)?;
        let image = b.alu(Op::Where, &[negative, length, minus])?;
        let gap = sub(b, head, image)?;
        let tail = div(b, column, gap)?;
        let tail = b.alu(Op::Where, &[is_top, zero, tail])?;
        let tail = step(b, tail)?;
        let reflects = reflects(b, tail)?;
        let vector = b.alu(Op::Where, &[is_top, one, tail])?;
        let weight = sub(b, image, head)?;
        let weight = div(b, weight, image)?;
        let weight = b.alu(Op::Where, &[reflects, weight, zero])?;

        let shares = mul(b, vector, a)?;
        let shares = reduce::sum(b, shares, Some(&[-2]), true)?;
        let shares = mul(b, shares, weight)?;
        let shares = step(b, shares)?;
        let taken = mul(b, vector, shares)?;
        let rest = sub(b, a, taken)?;
        let image = mul(b, image, scale)?;
        let top = first_row(b, own)?;
        let image = b.alu(Op::Where, &[reflects, image, top])?;
        let left = b.alu(Op::Where, &[is_top, image, zero])?;
        let is_done_with = b.alu(Op::And, &[is_left, waits])?;
        let rest = b.alu(Op::Where, &[is_done_with, left, rest])?;
        let later = logical_not(b, is_top)?;
        let waits = b.alu(Op::And, &[waits, later])?;
        let flags = b.alu(Op::Where, &[waits, one, zero])?;
        let flags = roll(b, flags, &[-1], &[-2])?;
        let rest = rolled_on(b, rest)?;
        let next = beside(b, &[rest, flags])?;
        state = step(b, next)?;

        vectors = joined_on(b, vectors, vector)?;
    }
    let rest = narrow(b, state, -1, 0, columns)?;
    let rest = roll(b, rest, &[count, count], &[-2, -1])?;
    let vectors = roll(b, vectors, &[count], &[-2])?;
    Ok(Reflected { rest, vectors })
}

/// The greatest magnitude of a column, without a gradient.
fn greatest(b: &mut dyn Builder, column: NodeId) -> Result<NodeId> {
    let column = detach(b, column)?;
    let magnitudes = abs(b, column)?;
    reduce::max(b, magnitudes, Some(&[-2]), true)
}

/// Is anything below the diagonal: if not, the column stays as it is.
fn reflects(b: &mut dyn Builder, tail: NodeId) -> Result<NodeId> {
    let (greatest, zero) = (greatest(b, tail)?, like(b, tail, 0.0));
    ne(b, greatest, zero)
}

/// The first columns of the product of all reflections, `1 - V T Vᵀ` with `T = (1 + τ triu(Vᵀ V))⁻¹ τ`.
fn product(b: &mut dyn Builder, matrix: Matrix, vectors: NodeId, count: i64) -> Result<NodeId> {
    let mirrored = turned(b, vectors)?;
    let gram = matmul(b, mirrored, vectors)?;
    let tails = tril(b, vectors, -1)?;
    let reflects = reflects(b, tails)?;
    let reflects = squeeze(b, reflects, Some(&[-2]))?;
    let squares = diagonal(b, gram, 0)?;
    let (two, zero) = (like(b, gram, 2.0), like(b, gram, 0.0));
    let weights = div(b, two, squares)?;
    let weights = b.alu(Op::Where, &[reflects, weights, zero])?;
    let above = triu(b, gram, 1)?;
    let above = scale_rows(b, above, weights)?;
    let system = with_unit_diagonal(b, above, count, count)?;
    let square = Matrix { x: system, rows: count, columns: count, ..matrix };
    let inverse = inverse(b, square, Kind { upper: true, unit: true })?;
    let core = scale_columns(b, inverse, weights)?;
    let top = narrow(b, vectors, -2, 0, count)?;
    let top = turned(b, top)?;
    let right = matmul(b, core, top)?;
    let taken = matmul(b, vectors, right)?;
    let dtype = dtype_of(b, taken);
    let identity = eye(b, matrix.rows, count, dtype)?;
    sub(b, identity, taken)
}
