//! Linear algebra: factors of matrices (the last two axes), and what follows from them.
//!
//! Each factorisation is one blocked, right-looking kernel, written as a nest of Ranges (`ops/loops.rs`): it factors a panel column
//! by column, then updates the trailing matrix by tiled products (`panels.rs`). Matrices are stored column-major, so that inner
//! loops are contiguous, and padded to whole blocks; right-hand sides are stored as further columns. Many small matrices are
//! eliminated at once, one in each lane (`interleaved.rs`). Gradients are formulas
//! of products and triangular solves (`function.rs`).

pub mod cholesky;
mod function;
mod interleaved;
pub mod lu;
mod panels;
pub mod qr;
pub mod solve;
pub mod triangular;

use super::movement::{reshape, squeeze, transpose, unsqueeze};
use super::{cast, dtype_of, shape_of, to_float};
use crate::dim::show;
use crate::{Builder, DType, Dim, Error, ErrorKind, NodeId, Result, Shape};

/// Matrices as they are computed with.
#[derive(Clone, Copy)]
struct Matrix {
    /// In at least f32.
    x: NodeId,
    rows: i64,
    columns: i64,
    /// The dtype that results are cast to.
    dtype: DType,
    /// How many times the results can be differentiated.
    derivatives: u32,
}

/// Second derivatives are supported; each further order would double the gradients that a function carries.
const DERIVATIVES: u32 = 2;

impl Matrix {
    fn of(b: &mut dyn Builder, op: &str, x: NodeId) -> Result<Matrix> {
        let shape = shape_of(b, x);
        let [.., rows, columns] = &shape[..] else {
            return Err(Error::new(ErrorKind::Rank, op, format!("needs a matrix, found {}", show(&shape)))
                .help("the last two axes are rows and columns; `unsqueeze` makes a vector one of them"));
        };
        let (Some(rows), Some(columns)) = (rows.as_const(), columns.as_const()) else {
            let message = format!("the sizes of a matrix must be numbers, found {}", show(&shape));
            return Err(Error::new(ErrorKind::Unsupported, op, message));
        };
        let x = to_float(b, x)?;
        let dtype = dtype_of(b, x);
        Ok(Matrix { x: cast(b, x, dtype.accumulator())?, rows, columns, dtype, derivatives: DERIVATIVES })
    }

    /// Another matrix of this size, in the gradient of results of this one.
    fn of_gradient(self, x: NodeId) -> Matrix {
        Matrix { x, derivatives: self.derivatives - 1, ..self }
    }

    fn square(b: &mut dyn Builder, op: &str, x: NodeId) -> Result<Matrix> {
        let matrix = Matrix::of(b, op, x)?;
        if matrix.rows != matrix.columns {
            let message = format!("needs a square matrix, found {}", show(&shape_of(b, x)));
            return Err(Error::new(ErrorKind::Shape, op, message)
                .help("the last two axes are equal; `lstsq` solves systems with more rows than columns"));
        }
        Ok(matrix)
    }

    /// Refuses an operand that does not have as many rows, or elements if it is a vector.
    fn check_rows(&self, b: &dyn Builder, op: &str, other: NodeId) -> Result<()> {
        let shape = shape_of(b, other);
        let rows = shape.get(shape.len().saturating_sub(2));
        if rows == Some(&Dim::from(self.rows)) {
            return Ok(());
        }
        let message = format!("{} for a matrix of {} rows", show(&shape), self.rows);
        let are_rows = shape.last() == Some(&Dim::from(self.rows));
        Err(Error::new(ErrorKind::Shape, op, message).help(match are_rows {
            true => "several vectors are columns: `v.unsqueeze(-1)`, and `.squeeze(-1)` of the result",
            false => "a vector, or columns, of as many elements",
        }))
    }

    /// How many there are.
    fn count(&self, b: &dyn Builder) -> Dim {
        product(&self.like(b, &[]))
    }

    /// The axes in front, then these.
    fn like(&self, b: &dyn Builder, last: &[i64]) -> Shape {
        let shape = shape_of(b, self.x);
        shape[..shape.len() - 2].iter().cloned().chain(last.iter().map(|&dim| Dim::from(dim))).collect()
    }
}

/// As many as some axes have places.
fn product(dims: &[Dim]) -> Dim {
    dims.iter().fold(Dim::from(1), |count, dim| count * dim.clone())
}

/// 0, 1, … as a column.
fn numbers(b: &mut dyn Builder, length: i64) -> Result<NodeId> {
    let numbers = super::creation::arange_dim(b, &Dim::from(length), DType::I32)?;
    unsqueeze(b, numbers, -1)
}

/// Rows and columns exchanged.
fn turned(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    transpose(b, x, -1, -2)
}

/// Treats a vector `x` as a column; the result is a vector again.
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
    super::creation::eye(b, &Dim::from(rows), &Dim::from(columns), dtype)
}

/// A vector along the last axis as the matrices' rows: `[…, 1, n]`.
fn as_row(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let mut shape = shape_of(b, x);
    shape.insert(shape.len().saturating_sub(1), Dim::from(1));
    reshape(b, x, &shape)
}
