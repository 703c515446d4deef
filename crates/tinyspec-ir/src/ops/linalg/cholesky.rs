//! The root of a symmetric positive definite matrix: `A = L Lᵀ`.

use super::function::with_gradient;
use super::panels::{Blocks, Groups, Layout, Part, with_columns};
use super::triangular::{Kind, solved};
use super::{Matrix, turned};
use crate::kernel::WrittenKernel;
use crate::ops::arithmetic::{add, div, neg};
use crate::ops::elementwise::{scale, sqrt};
use crate::ops::loops::{Loops, Size};
use crate::ops::matmul::matmul;
use crate::ops::movement::tril;
use crate::ops::{cast, dtype_of, promote};
use crate::{AxisType, Builder, DType, Dim, NodeId, Op, Result};

/// The lower triangle L with `A = L Lᵀ`, or the upper one with `A = Uᵀ U`; A is the symmetric part of this. Where it is not
/// positive definite, there is nan.
pub fn cholesky(b: &mut dyn Builder, x: NodeId, upper: bool) -> Result<NodeId> {
    let matrix = Matrix::square(b, "cholesky", x)?;
    let mirrored = turned(b, matrix.x)?;
    let sum = add(b, matrix.x, mirrored)?;
    let x = scale(b, sum, 0.5)?;
    let factor = root(b, Matrix { x, ..matrix })?;
    let factor = if upper { turned(b, factor)? } else { factor };
    cast(b, factor, matrix.dtype)
}

/// The lower triangle for a symmetric matrix; its gradient is `L⁻ᵀ Φ(Lᵀ L̄) L⁻¹`, where Φ is the lower triangle with half
/// the diagonal.
fn root(b: &mut dyn Builder, matrix: Matrix) -> Result<NodeId> {
    let of = |inputs: &[NodeId]| Matrix { x: inputs[0], ..matrix };
    let results = with_gradient(
        b,
        ("cholesky", matrix, None),
        &[matrix.x],
        &|b, inputs| Ok(vec![factor(b, of(inputs))?]),
        &|b, inputs, cotangents| {
            let factor = root(b, matrix.of_gradient(inputs[0]))?;
            let mirrored = turned(b, factor)?;
            let of_factor = tril(b, cotangents[0], 0)?;
            let product = matmul(b, mirrored, of_factor)?;
            let (lower, strict) = (tril(b, product, 0)?, tril(b, product, -1)?);
            let twice = add(b, lower, strict)?;
            let inner = scale(b, twice, 0.5)?;
            let (mirrored, kind) = (matrix.of_gradient(mirrored), Kind { upper: true, unit: false });
            let half = solved(b, mirrored, inner, kind)?;
            let half = turned(b, half)?;
            // The turned gradient: of a symmetric matrix only the symmetric part counts.
            Ok(vec![solved(b, mirrored, half, kind)?])
        },
    )?;
    Ok(results[0])
}

fn factor(b: &mut dyn Builder, matrix: Matrix) -> Result<NodeId> {
    let blocks = Blocks::of(matrix.rows);
    let dtype = dtype_of(b, matrix.x);
    let layout = Layout::of(b, matrix, None, blocks);
    let state = layout.both(b, matrix.x, None, true, blocks.rows)?;
    let [count, groups] = layout.dims(b)?;
    let results = kernel(blocks, dtype)?.call(b, &[state, count, groups])?;
    let factor = layout.rows_of(b, results[0], 0, (matrix.rows, Dim::from(matrix.rows)))?;
    tril(b, factor, 0)
}

/// The kernel: matrices column by column, of which the lower triangle counts.
fn kernel(blocks: Blocks, dtype: DType) -> Result<WrittenKernel> {
    let Blocks { width, rows, stride, .. } = blocks;
    let shape = [rows, stride].map(Size::Number);
    let (mut w, memories) = Loops::new(&[("matrix", dtype, &shape)], &[])?;
    let matrix = memories[0];
    let batch = w.open(w.count, AxisType::Global)?;
    let count = w.graph.index(blocks.count());
    let block = w.serial(count)?;
    let step = w.columns(blocks, block)?;
    let column = step.column;
    let diagonal = w.load(matrix, &[batch, column, column], None)?;
    let root = sqrt(&mut w.graph, diagonal)?;
    let tiles = w.tiles_from(blocks, step.tile)?;
    let i = w.elements(blocks, step.tile, tiles)?;
    let value = w.load(matrix, &[batch, column, i], None)?;
    let share = div(&mut w.graph, value, root)?;
    let below = w.below(column, i)?;
    let share = w.graph.alu(Op::Where, &[below, share, value])?;
    w.store(matrix, &[batch, column, i], share, None)?;
    w.close(2)?;
    w.store(matrix, &[batch, column, column], root, None)?;
    let j = w.columns_behind(blocks, step)?;
    let taken = w.load(matrix, &[batch, column, j], None)?;
    let minus = neg(&mut w.graph, taken)?;
    let i = w.elements(blocks, step.tile, tiles)?;
    w.eliminate((matrix, matrix), batch, column, (j, i), minus)?;
    w.close(3)?;
    w.close(2)?;
    if blocks.count() > 1 {
        let size = blocks.product_tile(dtype);
        let row = w.sum(&[(width, block)], width)?;
        let tiles = w.sum(&[(-width / size, block)], (rows - width) / size)?;
        let part = Part { target: matrix, batch, row, tiles, column: row, groups: Groups::ToDiagonal };
        let of_column = |w: &mut Loops, k: NodeId, i: NodeId| {
            let k = w.column_of(blocks, block, k)?;
            w.load(matrix, &[batch, k, i], None)
        };
        w.product(blocks, part, |w, j, k| of_column(w, k, j), of_column)?;
    }
    w.close(2)?;
    w.finish("cholesky")
}

/// The `x` of `A x = this`, where `factor` is the root of A, as [`cholesky`] gives it.
pub fn cholesky_solve(b: &mut dyn Builder, x: NodeId, factor: NodeId, upper: bool) -> Result<NodeId> {
    const OP: &str = "cholesky_solve";
    let (x, factor) = promote(b, OP, x, factor)?;
    let matrix = Matrix::square(b, OP, factor)?;
    matrix.check_rows(b, OP, x)?;
    let solution = with_columns(b, matrix, x, |b, matrix, x| {
        let lower = Kind { upper: false, unit: false };
        let mirrored = Matrix { x: turned(b, matrix.x)?, ..matrix };
        let (first, last) = if upper { (mirrored, matrix) } else { (matrix, mirrored) };
        let half = solved(b, first, x, lower)?;
        solved(b, last, half, Kind { upper: true, ..lower })
    });
    let solution = solution.map_err(|error| error.in_op(OP))?;
    cast(b, solution, matrix.dtype)
}
