//! Triangular matrices: their inverses by blocks, and systems of equations.

use super::function::with_gradient;
use super::panels::{Blocks, Groups, Layout, Part, last, with_columns};
use super::{Matrix, numbers, turned};
use crate::kernel::WrittenKernel;
use crate::ops::arithmetic::{div, eq, neg};
use crate::ops::loops::{Loops, Size};
use crate::ops::matmul::matmul;
use crate::ops::movement::{flip, tril, triu};
use crate::ops::{cast, dtype_of, like, promote};
use crate::{AxisType, Builder, DType, Dim, NodeId, Op, Result};

/// The structure of a triangular matrix.
#[derive(Clone, Copy, Hash)]
pub(super) struct Kind {
    /// The upper triangle counts.
    pub upper: bool,
    /// The diagonal is ones, whatever it holds.
    pub unit: bool,
}

/// As [`substituted`], with its gradient: that of `other` solves the transposed system, that of the matrix is its product with `-xᵀ`.
pub(super) fn solved(b: &mut dyn Builder, matrix: Matrix, other: NodeId, kind: Kind) -> Result<NodeId> {
    let of = |inputs: &[NodeId]| Matrix { x: inputs[0], ..matrix };
    let results = with_gradient(
        b,
        ("triangular", matrix, Some(kind)),
        &[matrix.x, other],
        &|b, inputs| Ok(vec![substituted(b, of(inputs), inputs[1], kind)?]),
        &|b, inputs, cotangents| {
            let solution = solved(b, matrix.of_gradient(inputs[0]), inputs[1], kind)?;
            let x = turned(b, inputs[0])?;
            let mirrored = Kind { upper: !kind.upper, ..kind };
            let of_other = solved(b, matrix.of_gradient(x), cotangents[0], mirrored)?;
            let row = turned(b, solution)?;
            let product = matmul(b, of_other, row)?;
            let product = neg(b, product)?;
            let beside = i64::from(kind.unit);
            let of_matrix = if kind.upper { triu(b, product, beside)? } else { tril(b, product, -beside)? };
            Ok(vec![of_matrix, of_other])
        },
    )?;
    Ok(results[0])
}

/// The `x` of `A x = other`, where A is a triangle of `matrix` and `other` columns.
pub(super) fn substituted(b: &mut dyn Builder, matrix: Matrix, other: NodeId, kind: Kind) -> Result<NodeId> {
    if kind.upper {
        // From the last row to the first one.
        let x = flip(b, matrix.x, &[-1, -2])?;
        let other = flip(b, other, &[-2])?;
        let solution = substituted(b, Matrix { x, ..matrix }, other, Kind { upper: false, ..kind })?;
        return flip(b, solution, &[-2]);
    }
    let blocks = Blocks::of(matrix.rows);
    let layout = Layout::of(b, matrix, Some(other), blocks);
    let columns = layout.columns(b, matrix.x, &Dim::from(blocks.rows), true)?;
    let solution = layout.others(b, other)?;
    let [count, groups] = layout.dims(b)?;
    let dtype = dtype_of(b, matrix.x);
    let results = kernel(blocks, dtype, kind.unit)?.call(b, &[solution, columns, count, groups])?;
    let width = last(b, other);
    layout.rows_of(b, results[0], 0, (matrix.rows, width))
}

/// The kernel: groups of columns, each from the first row to the last one.
fn kernel(blocks: Blocks, dtype: DType, unit: bool) -> Result<WrittenKernel> {
    let Blocks { width, rows, stride, columns: group, .. } = blocks;
    let solution = [Size::With(0, group), Size::Number(stride)];
    let matrix = [rows, stride].map(Size::Number);
    let (mut w, memories) = Loops::new(&[("solution", dtype, &solution)], &[("matrix", dtype, &matrix)])?;
    let (solution, matrix) = (memories[0], memories[1]);
    let batch = w.open(w.count, AxisType::Global)?;
    let own = w.open(w.groups, AxisType::Global)?;
    let first = w.sum(&[(group, own)], 0)?;

    let count = w.graph.index(blocks.count());
    let block = w.serial(count)?;
    let step = w.columns(blocks, block)?;
    let diagonal = match unit {
        true => None,
        false => Some(w.load(matrix, &[batch, step.column, step.column], None)?),
    };
    if let Some(diagonal) = diagonal {
        let member = w.lanes(group)?;
        let j = w.sum(&[(1, first), (1, member)], 0)?;
        let value = w.load(solution, &[batch, j, step.column], None)?;
        let value = div(&mut w.graph, value, diagonal)?;
        w.store(solution, &[batch, j, step.column], value, None)?;
        w.close(1)?;
    }
    w.eliminate_in_block(blocks, (matrix, solution), batch, (block, step), first)?;
    w.close(2)?;

    if blocks.count() > 1 {
        let size = blocks.product_tile(dtype);
        let tiles = w.sum(&[(-width / size, block)], (rows - width) / size)?;
        let row = w.sum(&[(width, block)], width)?;
        let one = w.graph.index(1);
        let part = Part { target: solution, batch, row, tiles, column: first, groups: Groups::All(one) };
        w.product(
            blocks,
            part,
            |w, j, k| {
                let k = w.column_of(blocks, block, k)?;
                w.load(solution, &[batch, j, k], None)
            },
            |w, k, i| {
                let k = w.column_of(blocks, block, k)?;
                w.load(matrix, &[batch, k, i], None)
            },
        )?;
    }
    w.close(3)?;
    w.finish("substitution")
}

/// The `x` of `A x = other`, where A is this matrix' lower or `upper` triangle; `unit` takes its diagonal for ones.
pub fn solve_triangular(b: &mut dyn Builder, x: NodeId, other: NodeId, upper: bool, unit: bool) -> Result<NodeId> {
    const OP: &str = "solve_triangular";
    let (x, other) = promote(b, OP, x, other)?;
    let matrix = Matrix::square(b, OP, x)?;
    matrix.check_rows(b, OP, other)?;
    let kind = Kind { upper, unit };
    let solution = with_columns(b, matrix, other, |b, matrix, other| solved(b, matrix, other, kind))
        .map_err(|error| error.in_op(OP))?;
    cast(b, solution, matrix.dtype)
}

/// `[row = column]`.
pub(super) fn on_diagonal(b: &mut dyn Builder, rows: i64, columns: i64) -> Result<NodeId> {
    let (row, column) = (numbers(b, rows)?, numbers(b, columns)?);
    let column = turned(b, column)?;
    eq(b, row, column)
}

/// `x` with ones on its diagonal.
pub(super) fn with_unit_diagonal(b: &mut dyn Builder, x: NodeId, rows: i64, columns: i64) -> Result<NodeId> {
    let (on_diagonal, one) = (on_diagonal(b, rows, columns)?, like(b, x, 1.0));
    b.alu(Op::Where, &[on_diagonal, one, x])
}
