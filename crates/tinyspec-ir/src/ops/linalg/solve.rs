//! Systems of equations, inverses, determinants and powers.

use super::function::with_gradient;
use super::panels::with_columns;
use super::triangular::{self, Kind, substituted};
use super::{Matrix, eye, interleaved, lu, qr, turned};
use crate::dim::show;
use crate::ops::arithmetic::{mul, neg, sub};
use crate::ops::elementwise::{abs, log, sign};
use crate::ops::matmul::matmul;
use crate::ops::movement::{diagonal, expand};
use crate::ops::{cast, dtype_of, like, promote, reduce, shape_of};
use crate::{Builder, Error, ErrorKind, NodeId, Op, Result};

/// The inverse in the dtype that is computed in.
fn inverse_of(b: &mut dyn Builder, matrix: Matrix) -> Result<NodeId> {
    let dtype = dtype_of(b, matrix.x);
    let identity = eye(b, matrix.rows, matrix.rows, dtype)?;
    let shape = matrix.like(b, &[matrix.rows, matrix.rows]);
    let identity = expand(b, identity, &shape)?;
    solved(b, matrix, identity)
}

/// The `x` of `A x = other`, for as many columns as matrices. What solves the turned system is the gradient of `other`,
/// its product with `-xᵀ` that of A.
fn solved(b: &mut dyn Builder, matrix: Matrix, other: NodeId) -> Result<NodeId> {
    let upper = Kind { upper: true, unit: false };
    let of = |inputs: &[NodeId]| Matrix { x: inputs[0], ..matrix };
    let results = with_gradient(
        b,
        ("solve", matrix, None),
        &[matrix.x, other],
        &|b, inputs| {
            let matrix = of(inputs);
            if interleaved::fits(b, matrix, Some(inputs[1])) {
                return Ok(vec![interleaved::solved(b, matrix, inputs[1])?]);
            }
            let (packed, half) = lu::factored(b, matrix, Some(inputs[1]))?;
            let half = half.unwrap_or(inputs[1]);
            Ok(vec![substituted(b, Matrix { x: packed.factors, ..matrix }, half, upper)?])
        },
        &|b, inputs, cotangents| {
            let solution = solved(b, matrix.of_gradient(inputs[0]), inputs[1])?;
            let x = turned(b, inputs[0])?;
            let of_other = solved(b, matrix.of_gradient(x), cotangents[0])?;
            let row = turned(b, solution)?;
            let product = matmul(b, of_other, row)?;
            Ok(vec![neg(b, product)?, of_other])
        },
    )?;
    Ok(results[0])
}

/// The inverse of a square matrix; infinite or nan if there is none.
pub fn inverse(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let matrix = Matrix::square(b, "inverse", x)?;
    let inverse = inverse_of(b, matrix)?;
    cast(b, inverse, matrix.dtype)
}

/// The `x` of `A x = other` for a square matrix A: `other` is a vector, or columns.
pub fn solve(b: &mut dyn Builder, x: NodeId, other: NodeId) -> Result<NodeId> {
    let (x, other) = promote(b, "solve", x, other)?;
    let matrix = Matrix::square(b, "solve", x)?;
    matrix.check_rows(b, "solve", other)?;
    let solution = with_columns(b, matrix, other, solved);
    let solution = solution.map_err(|error| error.in_op("solve"))?;
    cast(b, solution, matrix.dtype)
}

/// The `x` that makes `A x - other` least, for a matrix A of full rank with no fewer rows than columns.
pub fn lstsq(b: &mut dyn Builder, x: NodeId, other: NodeId) -> Result<NodeId> {
    let (x, other) = promote(b, "lstsq", x, other)?;
    let shape = shape_of(b, x);
    let matrix = Matrix::of(b, "lstsq", x)?;
    if matrix.rows < matrix.columns {
        let message = format!("{} has fewer rows than columns", show(&shape));
        return Err(Error::new(ErrorKind::Shape, "lstsq", message).help("of its many solutions `a.transpose(-1, -2).matmul(a.matmul(a.transpose(-1, -2)).solve(&b))` is the shortest"));
    }
    matrix.check_rows(b, "lstsq", other)?;
    let solution = with_columns(b, matrix, other, nearest);
    let solution = solution.map_err(|error| error.in_op("lstsq"))?;
    cast(b, solution, matrix.dtype)
}

/// The `x` that makes `A x - other` least, for as many columns as matrices. With `z = (AᵀA)⁻¹ x̄` the gradients are
/// `(other - A x) zᵀ - A z xᵀ` and `A z`.
fn nearest(b: &mut dyn Builder, matrix: Matrix, other: NodeId) -> Result<NodeId> {
    let upper = Kind { upper: true, unit: false };
    let of = |inputs: &[NodeId]| Matrix { x: inputs[0], ..matrix };
    let square = |x: NodeId| Matrix { x, rows: matrix.columns, ..matrix };
    let results = with_gradient(
        b,
        ("lstsq", matrix, None),
        &[matrix.x, other],
        &|b, inputs| {
            let (r, half) = qr::turned_by(b, of(inputs), inputs[1])?;
            Ok(vec![substituted(b, square(r), half, upper)?])
        },
        &|b, inputs, cotangents| {
            let matrix = matrix.of_gradient(inputs[0]);
            let square = |x: NodeId| Matrix { x, rows: matrix.columns, ..matrix };
            let solution = nearest(b, matrix, inputs[1])?;
            let r = qr::factored(b, matrix)?[1];
            let mirrored = turned(b, r)?;
            let half = triangular::solved(b, square(mirrored), cotangents[0], Kind { upper: false, unit: false })?;
            let z = triangular::solved(b, square(r), half, upper)?;
            let of_other = matmul(b, inputs[0], z)?;
            let image = matmul(b, inputs[0], solution)?;
            let rest = sub(b, inputs[1], image)?;
            let (row, solution) = (turned(b, z)?, turned(b, solution)?);
            let (first, second) = (matmul(b, rest, row)?, matmul(b, of_other, solution)?);
            Ok(vec![sub(b, first, second)?, of_other])
        },
    )?;
    Ok(results[0])
}

/// The determinant.
pub fn det(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let matrix = Matrix::square(b, "det", x)?;
    let packed = lu::packed(b, matrix)?;
    let pivots = diagonal(b, packed.factors, 0)?;
    let product = reduce::prod(b, pivots, Some(&[-1]), false)?;
    let sign = packed.sign(b, matrix.rows)?;
    let det = mul(b, product, sign)?;
    cast(b, det, matrix.dtype)
}

/// The sign of the determinant, 0 if that is 0, and the logarithm of its magnitude.
pub fn slogdet(b: &mut dyn Builder, x: NodeId) -> Result<Vec<NodeId>> {
    let matrix = Matrix::square(b, "slogdet", x)?;
    let packed = lu::packed(b, matrix)?;
    let pivots = diagonal(b, packed.factors, 0)?;
    let signs = sign(b, pivots)?;
    let signs = reduce::prod(b, signs, Some(&[-1]), false)?;
    let exchanges = packed.sign(b, matrix.rows)?;
    let sign = mul(b, signs, exchanges)?;
    let magnitudes = abs(b, pivots)?;
    let logarithms = log(b, magnitudes)?;
    let logarithm = reduce::sum(b, logarithms, Some(&[-1]), false)?;
    Ok(vec![cast(b, sign, matrix.dtype)?, cast(b, logarithm, matrix.dtype)?])
}

/// The logarithm of the determinant; nan if that is negative.
pub fn logdet(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let parts = slogdet(b, x).map_err(|error| error.in_op("logdet"))?;
    let (zero, nan) = (like(b, parts[0], 0.0), like(b, parts[1], f64::NAN));
    let negative = b.alu(Op::CmpLt, &[parts[0], zero])?;
    b.alu(Op::Where, &[negative, nan, parts[1]])
}

/// The product of `n` of these; of the inverses, if `n` is negative. Whole numbers stay whole, as in [`matmul`], unless inverted.
pub fn matrix_power(b: &mut dyn Builder, x: NodeId, n: i64) -> Result<NodeId> {
    let mut matrix = Matrix::square(b, "matrix_power", x)?;
    let dtype = dtype_of(b, x);
    if n >= 0 && !dtype.is_float() {
        let dtype = dtype.accumulator();
        matrix = Matrix { x: cast(b, x, dtype)?, dtype, ..matrix };
    }
    let mut base = if n < 0 { inverse_of(b, matrix)? } else { matrix.x };
    let mut product: Option<NodeId> = None;
    let mut rest = n.unsigned_abs();
    while rest > 0 {
        if rest & 1 == 1 {
            product = Some(match product {
                Some(product) => matmul(b, product, base)?,
                None => base,
            });
        }
        rest >>= 1;
        if rest > 0 {
            base = matmul(b, base, base)?;
        }
    }
    let power = match product {
        Some(power) => power,
        None => {
            let (shape, dtype) = (shape_of(b, matrix.x), dtype_of(b, matrix.x));
            let identity = eye(b, matrix.rows, matrix.rows, dtype)?;
            expand(b, identity, &shape)?
        }
    };
    cast(b, power, matrix.dtype)
}
