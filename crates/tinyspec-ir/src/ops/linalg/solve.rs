//! Systems of equations, inverses, determinants and powers.

use super::triangular::{Kind, inverse as triangular_inverse};
use super::{Matrix, as_columns, eye, lu, turned};
use crate::dim::show;
use crate::ops::arithmetic::mul;
use crate::ops::elementwise::{abs, log, sign};
use crate::ops::matmul::matmul;
use crate::ops::movement::{diagonal, expand};
use crate::ops::{cast, dtype_of, like, promote, reduce, shape_of};
use crate::{Builder, Error, ErrorKind, NodeId, Op, Result};

/// The inverse in the dtype that is computed in.
fn inverse_of(b: &mut dyn Builder, matrix: Matrix) -> Result<NodeId> {
    let packed = lu::packed(b, matrix)?;
    let factors = Matrix { x: packed.factors, ..matrix };
    let lower = triangular_inverse(b, factors, Kind { upper: false, unit: true })?;
    let upper = triangular_inverse(b, factors, Kind { upper: true, unit: false })?;
    // Solutions for the columns of P, which is the identity with its rows exchanged.
    let product = matmul(b, upper, lower)?;
    packed.returned_columns(b, product, matrix.rows)
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
    let packed = lu::packed(b, matrix)?;
    let factors = Matrix { x: packed.factors, ..matrix };
    let lower = triangular_inverse(b, factors, Kind { upper: false, unit: true })?;
    let upper = triangular_inverse(b, factors, Kind { upper: true, unit: false })?;
    let solution = as_columns(b, other, |b, other| {
        let wide = dtype_of(b, other).accumulator();
        let other = cast(b, other, wide)?;
        let arranged = packed.arranged_rows(b, other, matrix.rows)?;
        let half = matmul(b, lower, arranged)?;
        matmul(b, upper, half)
    });
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
    let parts = super::qr::qr(b, matrix.x)?;
    let mirrored = turned(b, parts[0])?;
    let upper = Matrix { x: parts[1], rows: matrix.columns, ..matrix };
    let inverse = triangular_inverse(b, upper, Kind { upper: true, unit: false })?;
    let solution = as_columns(b, other, |b, other| {
        let wide = dtype_of(b, other).accumulator();
        let other = cast(b, other, wide)?;
        let turned = matmul(b, mirrored, other)?;
        matmul(b, inverse, turned)
    });
    let solution = solution.map_err(|error| error.in_op("lstsq"))?;
    cast(b, solution, matrix.dtype)
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

/// The product of `n` of these; of the inverses, if `n` is negative.
pub fn matrix_power(b: &mut dyn Builder, x: NodeId, n: i64) -> Result<NodeId> {
    let matrix = Matrix::square(b, "matrix_power", x)?;
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
