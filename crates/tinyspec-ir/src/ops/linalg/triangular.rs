//! Triangular matrices: their inverses by blocks, and systems of equations.

use super::{Matrix, as_columns, as_row, numbers, step, turned};
use crate::ops::arithmetic::{div, eq, mul, neg};
use crate::ops::matmul::matmul;
use crate::ops::movement::{cat, diagonal, expand, narrow, pad, permute, reshape, shrink, squeeze, unsqueeze};
use crate::ops::{cast, like, promote, shape_of};
use crate::{Builder, Const, DType, Dim, NodeId, Op, Result, Shape};

/// What is known of a triangular matrix.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    /// The upper triangle counts.
    pub upper: bool,
    /// The diagonal is ones, whatever it holds.
    pub unit: bool,
}

/// The inverse of a triangle of `matrix`: that of two diagonal blocks beside each other is both inverses and
/// `-second⁻¹ · below · first⁻¹` below them.
pub(super) fn inverse(b: &mut dyn Builder, matrix: Matrix, kind: Kind) -> Result<NodeId> {
    if kind.upper {
        let x = turned(b, matrix.x)?;
        let lower = inverse(b, Matrix { x, ..matrix }, Kind { upper: false, ..kind })?;
        return turned(b, lower);
    }
    let size = matrix.rows;
    if size == 0 {
        return Ok(matrix.x);
    }
    let width = size.unsigned_abs().next_power_of_two() as i64;
    let lead = matrix.like(b, &[]);
    let zeros = |rank: usize| -> Shape { (0..rank).map(|_| Dim::from(0)).collect() };
    let with = |last: &[i64]| -> Shape { lead.iter().cloned().chain(last.iter().map(|&dim| Dim::from(dim))).collect() };
    let x = pad(b, matrix.x, &zeros(lead.len() + 2), &with(&[width, width]), 0.0)?;

    let ends = diagonal(b, x, 0)?;
    let one = like(b, ends, 1.0);
    let mut inverses = if kind.unit {
        expand(b, one, &with(&[width]))?
    } else {
        // What was padded is an identity.
        let (places, bound) = (numbers(b, width)?, b.constant(Const::int(DType::I32, size.into())));
        let places = squeeze(b, places, Some(&[-1]))?;
        let inside = b.alu(Op::CmpLt, &[places, bound])?;
        let ends = b.alu(Op::Where, &[inside, ends, one])?;
        div(b, one, ends)?
    };
    inverses = reshape(b, inverses, &with(&[width, 1, 1]))?;

    let mut block = 1;
    while block < width {
        let pairs = width / (2 * block);
        let below = diagonal_blocks(b, x, lead.len(), pairs, 2 * block)?;
        let below = narrow(b, below, -2, block, block)?;
        let below = narrow(b, below, -1, 0, block)?;
        let halves = reshape(b, inverses, &with(&[pairs, 2, block, block]))?;
        let mut half = |number: i64| {
            let half = narrow(b, halves, -3, number, 1)?;
            squeeze(b, half, Some(&[-3]))
        };
        let (first, second) = (half(0)?, half(1)?);
        let product = matmul(b, below, first)?;
        let product = matmul(b, second, product)?;
        let corner = neg(b, product)?;
        let top = pad(b, first, &zeros(lead.len() + 3), &with(&[pairs, block, 2 * block]), 0.0)?;
        let bottom = cat(b, &[corner, second], -1)?;
        let joined = cat(b, &[top, bottom], -2)?;
        inverses = step(b, joined)?;
        block *= 2;
    }
    let inverse = reshape(b, inverses, &with(&[width, width]))?;
    shrink(b, inverse, &zeros(lead.len() + 2), &with(&[size, size]))
}

/// The `count` blocks of `size` along the diagonal, in a new axis in front of the last two.
fn diagonal_blocks(b: &mut dyn Builder, x: NodeId, lead: usize, count: i64, size: i64) -> Result<NodeId> {
    let mut shape: Shape = shape_of(b, x)[..lead].into();
    shape.extend([count, size, count, size].map(Dim::from));
    let x = reshape(b, x, &shape)?;
    let first = lead as i64;
    let in_front = |last: [i64; 3]| (0..first).chain(last.map(|axis| first + axis)).collect::<Vec<i64>>();
    let mut order = in_front([1, 3, 0]);
    order.push(first + 2);
    let x = permute(b, x, &order)?;
    let blocks = diagonal(b, x, 0)?;
    permute(b, blocks, &in_front([2, 0, 1]))
}

/// The `x` of `A x = other`, where A is this matrix' lower or `upper` triangle; `unit` takes its diagonal for ones.
pub fn solve_triangular(b: &mut dyn Builder, x: NodeId, other: NodeId, upper: bool, unit: bool) -> Result<NodeId> {
    const OP: &str = "solve_triangular";
    let (x, other) = promote(b, OP, x, other)?;
    let matrix = Matrix::square(b, OP, x)?;
    matrix.check_rows(b, OP, other)?;
    let inverse = inverse(b, matrix, Kind { upper, unit })?;
    let solution = as_columns(b, other, |b, other| matmul(b, inverse, other)).map_err(|error| error.in_op(OP))?;
    cast(b, solution, matrix.dtype)
}

/// The matrix whose columns are scaled.
pub(super) fn scale_columns(b: &mut dyn Builder, x: NodeId, factors: NodeId) -> Result<NodeId> {
    let factors = as_row(b, factors)?;
    mul(b, x, factors)
}

/// The matrix whose rows are scaled.
pub(super) fn scale_rows(b: &mut dyn Builder, x: NodeId, factors: NodeId) -> Result<NodeId> {
    let factors = unsqueeze(b, factors, -1)?;
    mul(b, x, factors)
}

/// `x` with ones on its diagonal.
pub(super) fn with_unit_diagonal(b: &mut dyn Builder, x: NodeId, rows: i64, columns: i64) -> Result<NodeId> {
    let (row, column) = (numbers(b, rows)?, numbers(b, columns)?);
    let column = turned(b, column)?;
    let (on_diagonal, one) = (eq(b, row, column)?, like(b, x, 1.0));
    b.alu(Op::Where, &[on_diagonal, one, x])
}
