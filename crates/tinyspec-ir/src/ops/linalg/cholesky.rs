//! The root of a symmetric positive definite matrix: `A = L Lᵀ`.

use super::triangular::{Kind, inverse};
use super::{Matrix, as_columns, first_column, first_row, is_first, joined_on, rolled_on, step, turned};
use crate::ops::arithmetic::{add, div, mul, sub};
use crate::ops::elementwise::{scale, sqrt};
use crate::ops::matmul::matmul;
use crate::ops::movement::expand;
use crate::ops::{cast, like, promote, shape_of};
use crate::{Builder, NodeId, Op, Result};

/// The lower triangle L with `A = L Lᵀ`, or the upper one with `A = Uᵀ U`; A is the symmetric part of this. Where it is not
/// positive definite, there is nan.
pub fn cholesky(b: &mut dyn Builder, x: NodeId, upper: bool) -> Result<NodeId> {
    let matrix = Matrix::square(b, "cholesky", x)?;
    let mirrored = turned(b, matrix.x)?;
    let sum = add(b, matrix.x, mirrored)?;
    let mut a = scale(b, sum, 0.5)?;
    let is_top = is_first(b, matrix.rows)?;
    let is_left = turned(b, is_top)?;
    let is_done_with = b.alu(Op::Or, &[is_top, is_left])?;
    let zero = like(b, a, 0.0);
    let shape = shape_of(b, a);
    let mut factor = expand(b, zero, &shape)?;
    for _ in 0..matrix.rows {
        // What the first column stands for is taken off the others. Rows and columns that are done are 0, and last.
        let column = first_column(b, a)?;
        let pivot = first_row(b, column)?;
        let root = sqrt(b, pivot)?;
        let share = div(b, column, root)?;
        let share = b.alu(Op::Where, &[is_top, root, share])?;
        let row = turned(b, share)?;
        let product = mul(b, share, row)?;
        let rest = sub(b, a, product)?;
        let rest = b.alu(Op::Where, &[is_done_with, zero, rest])?;
        let rest = rolled_on(b, rest)?;
        a = step(b, rest)?;
        factor = joined_on(b, factor, share)?;
    }
    let factor = if upper { turned(b, factor)? } else { factor };
    cast(b, factor, matrix.dtype)
}

/// The `x` of `A x = this`, where `factor` is the root of A, as [`cholesky`] gives it.
pub fn cholesky_solve(b: &mut dyn Builder, x: NodeId, factor: NodeId, upper: bool) -> Result<NodeId> {
    const OP: &str = "cholesky_solve";
    let (x, factor) = promote(b, OP, x, factor)?;
    let matrix = Matrix::square(b, OP, factor)?;
    matrix.check_rows(b, OP, x)?;
    let inverse = inverse(b, matrix, Kind { upper, unit: false })?;
    let mirrored = turned(b, inverse)?;
    let (last, first) = if upper { (inverse, mirrored) } else { (mirrored, inverse) };
    let solution = as_columns(b, x, |b, x| {
        let half = matmul(b, first, x)?;
        matmul(b, last, half)
    });
    let solution = solution.map_err(|error| error.in_op(OP))?;
    cast(b, solution, matrix.dtype)
}
