//! Elimination with the greatest pivots of the columns: `A = P L U`.

use super::function::with_gradient;
use super::panels::{Blocks, Groups, Layout, Part, last};
use super::triangular::{Kind, on_diagonal, solved, with_unit_diagonal};
use super::{Matrix, interleaved, numbers, turned};
use crate::kernel::WrittenKernel;
use crate::ops::arithmetic::{add, div, eq, neg, sub};
use crate::ops::elementwise::abs;
use crate::ops::loops::{Loops, Memory, Size};
use crate::ops::matmul::matmul;
use crate::ops::movement::{expand, narrow, reshape, tril, triu, unsqueeze};
use crate::ops::{cast, dtype_of, like, reduce};
use crate::{AxisType, Builder, Const, DType, Dim, NodeId, Op, Result};

/// Both triangles in one matrix, whose diagonal is that of U, and the rows in the order of the pivots.
pub(super) struct Packed {
    pub factors: NodeId,
    /// Which row of A each row was (i32), in the last axis.
    pub order: NodeId,
}

/// The factors of `matrix`. Their gradient is `Pᵀ L⁻ᵀ (Ū + N U⁻ᵀ)`, where N is the part of `Lᵀ L̄ - Ū Uᵀ` below the diagonal:
/// nothing is divided by the last pivot.
pub(super) fn packed(b: &mut dyn Builder, matrix: Matrix) -> Result<Packed> {
    let of = |inputs: &[NodeId]| Matrix { x: inputs[0], ..matrix };
    let results = with_gradient(
        b,
        ("lu", matrix, None),
        &[matrix.x],
        &|b, inputs| {
            let (packed, _) = factored(b, of(inputs), None)?;
            Ok(vec![packed.factors, packed.order])
        },
        &|b, inputs, cotangents| {
            let packed = packed(b, matrix.of_gradient(inputs[0]))?;
            let factors = packed.factors;
            let strict = tril(b, factors, -1)?;
            let lower = with_unit_diagonal(b, strict, matrix.rows, matrix.rows)?;
            let upper = triu(b, factors, 0)?;
            let (of_lower, of_upper) = (tril(b, cotangents[0], -1)?, triu(b, cotangents[0], 0)?);
            let mirrored = turned(b, lower)?;
            let first = matmul(b, mirrored, of_lower)?;
            let turned_upper = turned(b, upper)?;
            let second = matmul(b, of_upper, turned_upper)?;
            let inner = sub(b, first, second)?;
            let inner = tril(b, inner, -1)?;
            let inner = turned(b, inner)?;
            // A zero pivot divides by 1, as in the elimination.
            let (zero, one) = (like(b, factors, 0.0), like(b, factors, 1.0));
            let is_zero = eq(b, factors, zero)?;
            let divisors = b.alu(Op::Where, &[is_zero, one, factors])?;
            let on_diagonal = on_diagonal(b, matrix.rows, matrix.rows)?;
            let x = b.alu(Op::Where, &[on_diagonal, divisors, factors])?;
            let shares = solved(b, matrix.of_gradient(x), inner, Kind { upper: true, unit: false })?;
            let shares = turned(b, shares)?;
            let sum = add(b, of_upper, shares)?;
            let x = turned(b, factors)?;
            let arranged = solved(b, matrix.of_gradient(x), sum, Kind { upper: true, unit: true })?;
            Ok(vec![packed.returned_rows(b, arranged, matrix.rows)?])
        },
    )?;
    Ok(Packed { factors: results[0], order: results[1] })
}

/// The factors, and the columns of `others` after elimination: `L⁻¹ P others`.
pub(super) fn factored(
    b: &mut dyn Builder,
    matrix: Matrix,
    others: Option<NodeId>,
) -> Result<(Packed, Option<NodeId>)> {
    if interleaved::fits(b, matrix, others) {
        return interleaved::factored(b, matrix, others);
    }
    let blocks = Blocks::of(matrix.rows);
    let dtype = dtype_of(b, matrix.x);
    let layout = Layout::of(b, matrix, others, blocks);
    let state = layout.both(b, matrix.x, others, true, blocks.rows)?;
    let kernel = kernel(blocks, dtype)?;
    let zero = b.constant(Const::int(DType::I32, 0));
    let order = expand(b, zero, &[layout.count.clone(), Dim::from(blocks.rows)])?;
    let [count, groups] = layout.dims(b)?;
    let results = kernel.call(b, &[state, order, count, groups])?;
    let square = (matrix.rows, Dim::from(matrix.rows));
    let factors = layout.rows_of(b, results[0], 0, square)?;
    let order = narrow(b, results[1], -1, 0, matrix.rows)?;
    let shape = matrix.like(b, &[matrix.rows]);
    let order = reshape(b, order, &shape)?;
    let others = match others {
        Some(others) => {
            let width = last(b, others);
            Some(layout.rows_of(b, results[0], blocks.rows, (matrix.rows, width))?)
        }
        None => None,
    };
    Ok((Packed { factors, order }, others))
}

impl Packed {
    /// The rows of `x`, which are in the order of the pivots, at the places that they have in A.
    pub fn returned_rows(&self, b: &mut dyn Builder, x: NodeId, rows: i64) -> Result<NodeId> {
        let hit = self.arrangement(b, rows)?;
        let (hit, x) = (unsqueeze(b, hit, -1)?, unsqueeze(b, x, -2)?);
        picked(b, hit, x, -3)
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

/// The kernel: matrices column by column, of which the first `blocks.rows` are eliminated and the others go along.
fn kernel(blocks: Blocks, dtype: DType) -> Result<WrittenKernel> {
    let Blocks { width, rows, stride, columns: group, .. } = blocks;
    let columns = [Size::With(rows, group), Size::Number(stride)];
    let outputs = [("matrix", dtype, &columns[..]), ("order", DType::I32, &[Size::Number(rows)])];
    let (mut w, memories) = Loops::new(&outputs, &[])?;
    let (matrix, order) = (memories[0], memories[1]);
    let exchanges = w.local(DType::I32, &[rows])?;
    let batch = w.open(w.count, AxisType::Global)?;
    let at = |j: NodeId, i: NodeId| [batch, j, i];

    let all = w.graph.index(rows);
    let row = w.serial(all)?;
    let number = w.number(row)?;
    w.store(order, &[batch, row], number, None)?;
    w.close(1)?;

    let count = w.graph.index(blocks.count());
    let block = w.serial(count)?;
    let step = w.columns(blocks, block)?;
    let column = step.column;
    // The first of the greatest; a nan stays where it is, and the others see it.
    let magnitude = |w: &mut Loops, i: NodeId| -> Result<NodeId> {
        let value = w.load(matrix, &at(column, i), None)?;
        let magnitude = abs(&mut w.graph, value)?;
        let (done, none) = (w.graph.alu(Op::CmpLt, &[i, column])?, w.float(dtype, -1.0));
        w.graph.alu(Op::Where, &[done, none, magnitude])
    };
    let greatest = w.over(Op::Max, blocks, step, magnitude)?;
    let from_end = w.over(Op::Max, blocks, step, |w, i| {
        let magnitude = magnitude(w, i)?;
        let hit = eq(&mut w.graph, magnitude, greatest)?;
        let number = w.number(i)?;
        let (end, zero) = (w.int(rows), w.int(0));
        let left = sub(&mut w.graph, end, number)?;
        w.graph.alu(Op::Where, &[hit, left, zero])
    })?;
    let (end, zero) = (w.int(rows), w.int(0));
    let none = eq(&mut w.graph, from_end, zero)?;
    let found = sub(&mut w.graph, end, from_end)?;
    let own = w.number(column)?;
    let pivot = w.graph.alu(Op::Where, &[none, own, found])?;
    w.store(exchanges, &[column], pivot, None)?;

    let exchange = |w: &mut Loops, memory: Memory, lead: &[NodeId], column: NodeId| -> Result<()> {
        let pivot = w.load(exchanges, &[column], None)?;
        let all = w.graph.index(rows);
        let (is_row, row) = w.stored_index(pivot, all)?;
        let (own, other) = ([lead, &[column]].concat(), [lead, &[row]].concat());
        let (first, second) = (w.load(memory, &own, None)?, w.load(memory, &other, Some(is_row))?);
        w.store(memory, &own, second, None)?;
        w.store(memory, &other, first, Some(is_row))
    };
    exchange(&mut w, order, &[batch], column)?;
    let all = w.graph.index(blocks.own);
    let other = w.serial(all)?;
    let j = w.column_of(blocks, block, other)?;
    exchange(&mut w, matrix, &[batch, j], column)?;
    w.close(1)?;

    // How often the pivot's row is taken off each row below.
    let pivot = w.load(matrix, &at(column, column), None)?;
    let (zero, one) = (w.float(dtype, 0.0), w.float(dtype, 1.0));
    let is_zero = eq(&mut w.graph, pivot, zero)?;
    let divisor = w.graph.alu(Op::Where, &[is_zero, one, pivot])?;
    let tiles = w.tiles_from(blocks, step.tile)?;
    let i = w.elements(blocks, step.tile, tiles)?;
    let value = w.load(matrix, &at(column, i), None)?;
    let share = div(&mut w.graph, value, divisor)?;
    let below = w.below(column, i)?;
    let share = w.graph.alu(Op::Where, &[below, share, value])?;
    w.store(matrix, &at(column, i), share, None)?;
    w.close(2)?;

    // The other columns of the block.
    let j = w.columns_behind(blocks, step)?;
    let taken = w.load(matrix, &at(j, column), None)?;
    let minus = neg(&mut w.graph, taken)?;
    let i = w.elements(blocks, step.tile, tiles)?;
    w.eliminate((matrix, matrix), batch, column, (j, i), minus)?;
    w.close(3)?;
    w.close(2)?;

    // The rows of the block in the columns behind it.
    let behind = w.sum(&[(-width / group, block), (1, w.groups)], (rows - width) / group)?;
    let first = w.sum(&[(width, block)], width)?;
    let group_number = w.serial(behind)?;
    let members = w.graph.index(group);
    let member = w.serial(members)?;
    let all = w.graph.index(blocks.own);
    let number = w.serial(all)?;
    let first_of_group = w.sum(&[(1, first), (group, group_number)], 0)?;
    let j = w.sum(&[(1, first_of_group), (1, member)], 0)?;
    let column = w.column_of(blocks, block, number)?;
    exchange(&mut w, matrix, &[batch, j], column)?;
    w.close(2)?;
    let step = w.columns(blocks, block)?;
    w.eliminate_in_block(blocks, (matrix, matrix), batch, (block, step), first_of_group)?;
    w.close(3)?;

    if blocks.count() > 1 {
        // Those in front of it.
        let before = w.sum(&[(width, block)], 0)?;
        let j = w.serial(before)?;
        let number = w.serial(all)?;
        let column = w.column_of(blocks, block, number)?;
        exchange(&mut w, matrix, &[batch, j], column)?;
        w.close(2)?;

        // The trailing submatrix.
        let size = blocks.product_tile(dtype);
        let below = w.sum(&[(-width / size, block)], (rows - width) / size)?;
        let part = Part { target: matrix, batch, row: first, tiles: below, column: first, groups: Groups::All(behind) };
        w.product(
            blocks,
            part,
            |w, j, k| {
                let k = w.column_of(blocks, block, k)?;
                w.load(matrix, &at(j, k), None)
            },
            |w, k, i| {
                let k = w.column_of(blocks, block, k)?;
                w.load(matrix, &at(k, i), None)
            },
        )?;
    }
    w.close(2)?;
    w.finish("lu")
}
