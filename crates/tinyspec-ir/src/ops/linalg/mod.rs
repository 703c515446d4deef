//! Linear algebra: factors of matrices (the last two axes), and what follows from them.
//!
//! A factorisation is a loop over columns that the graph spells out. Every step works on the first row and column and then
//! rolls the matrix on by one, so all steps are one kernel, compiled once. Triangular systems need no loop: inverses of
//! ever larger diagonal blocks are log₂ n rounds of products.

pub mod cholesky;
pub mod lu;
pub mod qr;
pub mod solve;
pub mod triangular;

use super::elementwise::stored;
use super::movement::{cat, narrow, reshape, roll, squeeze, transpose, unsqueeze};
use super::{cast, dtype_of, shape_of, to_float};
use crate::dim::show;
use crate::{Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Result, Shape};

/// Matrices as they are computed with.
#[derive(Clone, Copy)]
struct Matrix {
    /// In at least f32.
    x: NodeId,
    rows: i64,
    columns: i64,
    /// What results are cast to.
    dtype: DType,
}

impl Matrix {
    fn of(b: &mut dyn Builder, op: &str, x: NodeId) -> Result<Matrix> {
        let shape = shape_of(b, x);
        let [.., rows, columns] = &shape[..] else {
            return Err(Error::new(ErrorKind::Rank, op, format!("needs a matrix, found {}", show(&shape))));
        };
        let (Some(rows), Some(columns)) = (rows.as_const(), columns.as_const()) else {
            let message = format!("the sizes of a matrix must be numbers, found {}", show(&shape));
            return Err(Error::new(ErrorKind::Unsupported, op, message));
        };
        let x = to_float(b, x)?;
        let dtype = dtype_of(b, x);
        Ok(Matrix { x: cast(b, x, dtype.accumulator())?, rows, columns, dtype })
    }

    fn square(b: &mut dyn Builder, op: &str, x: NodeId) -> Result<Matrix> {
        let matrix = Matrix::of(b, op, x)?;
        if matrix.rows != matrix.columns {
            let message = format!("needs a square matrix, found {}", show(&shape_of(b, x)));
            return Err(Error::new(ErrorKind::Shape, op, message));
        }
        Ok(matrix)
    }

    /// Refuses what has not as many rows, or elements of a vector.
    fn check_rows(&self, b: &dyn Builder, op: &str, other: NodeId) -> Result<()> {
        let shape = shape_of(b, other);
        let rows = shape.get(shape.len().saturating_sub(2));
        if rows == Some(&Dim::from(self.rows)) {
            return Ok(());
        }
        let message = format!("{} for a matrix of {} rows", show(&shape), self.rows);
        Err(Error::new(ErrorKind::Shape, op, message).help("a vector, or columns, of as many elements"))
    }

    /// The axes in front, then these.
    fn like(&self, b: &dyn Builder, last: &[i64]) -> Shape {
        let shape = shape_of(b, self.x);
        shape[..shape.len() - 2].iter().cloned().chain(last.iter().map(|&dim| Dim::from(dim))).collect()
    }
}

/// 0, 1, … as a column.
fn numbers(b: &mut dyn Builder, length: i64) -> Result<NodeId> {
    let numbers = super::creation::arange_dim(b, &Dim::from(length), DType::I32)?;
    unsqueeze(b, numbers, -1)
}

/// `[number = 0]` of a column.
fn is_first(b: &mut dyn Builder, length: i64) -> Result<NodeId> {
    let (numbers, zero) = (numbers(b, length)?, b.constant(Const::int(DType::I32, 0)));
    super::arithmetic::eq(b, numbers, zero)
}

/// The same of a row.
fn turned(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    transpose(b, x, -1, -2)
}

fn first_row(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    narrow(b, x, -2, 0, 1)
}

fn first_column(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    narrow(b, x, -1, 0, 1)
}

/// The second row and column first, the first ones last.
fn rolled_on(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    roll(b, x, &[-1, -1], &[-2, -1])
}

/// A column for the first one of results, behind the others; their rows are rolled on, too.
fn joined_on(b: &mut dyn Builder, results: NodeId, column: NodeId) -> Result<NodeId> {
    let count = shape_of(b, results).last().and_then(Dim::as_const).unwrap_or(1);
    let others = narrow(b, results, -1, 1, count - 1)?;
    let joined = beside(b, &[others, column])?;
    let joined = roll(b, joined, &[-1], &[-2])?;
    step(b, joined)
}

/// Computed here, so that the next step reads it.
fn step(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    stored(b, x)
}

/// Parts side by side.
fn beside(b: &mut dyn Builder, parts: &[NodeId]) -> Result<NodeId> {
    cat(b, parts, -1)
}

/// `x` is a column if it is a vector; what comes of it is a vector again.
fn as_columns(
    b: &mut dyn Builder,
    x: NodeId,
    function: impl FnOnce(&mut dyn Builder, NodeId) -> Result<NodeId>,
) -> Result<NodeId> {
    if shape_of(b, x).len() != 1 {
        return function(b, x);
    }
    let column = unsqueeze(b, x, -1)?;
    let result = function(b, column)?;
    squeeze(b, result, Some(&[-1]))
}

/// The identity.
fn eye(b: &mut dyn Builder, rows: i64, columns: i64, dtype: DType) -> Result<NodeId> {
    super::creation::eye(b, rows, columns, dtype)
}

/// A vector along the last axis as the matrices' rows: `[…, 1, n]`.
fn as_row(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let mut shape = shape_of(b, x);
    shape.insert(shape.len().saturating_sub(1), Dim::from(1));
    reshape(b, x, &shape)
}
