//! Batched elimination of small matrices in an interleaved ("compact") layout (Kim et al., SC17): each vector lane holds a matrix. Pivots
//! differ from lane to lane, so rows are exchanged by selects.

use super::Matrix;
use super::lu::Packed;
use super::panels::last;
use crate::kernel::WrittenKernel;
use crate::ops::arithmetic::{div, eq, mul, sub};
use crate::ops::dtype_of;
use crate::ops::elementwise::abs;
use crate::ops::loops::{Loops, Memory, Size};
use crate::ops::movement::{cat, expand, narrow, reshape};
use crate::{AxisType, Builder, Const, DType, Dim, NodeId, Op, Result, Shape};

/// Matrices of a block: a vector of the widest machines, several of others.
const LANES: i64 = 16;
/// The largest matrices for which this is measured to be faster.
const LARGEST: i64 = 16;
/// Columns that go along, at most.
const COLUMNS: i64 = 16;
/// The fewest matrices that fill enough lanes.
const FEWEST: i64 = 8;

/// Whether matrices, and columns that go along, are small and many.
pub(super) fn fits(b: &dyn Builder, matrix: Matrix, others: Option<NodeId>) -> bool {
    let count = matrix.count(b);
    let width = others.map_or(Some(0), |others| last(b, others).as_const());
    (1..=LARGEST).contains(&matrix.rows)
        && count.as_const().is_none_or(|count| count >= FEWEST)
        && width.is_some_and(|width| width <= COLUMNS)
}

/// The factors, and `L⁻¹ P others`.
pub(super) fn factored(
    b: &mut dyn Builder,
    matrix: Matrix,
    others: Option<NodeId>,
) -> Result<(Packed, Option<NodeId>)> {
    run(b, matrix, others, false)
}

/// The `x` of `A x = other`.
pub(super) fn solved(b: &mut dyn Builder, matrix: Matrix, other: NodeId) -> Result<NodeId> {
    let (_, solution) = run(b, matrix, Some(other), true)?;
    Ok(solution.unwrap_or(other))
}

fn run(
    b: &mut dyn Builder,
    matrix: Matrix,
    others: Option<NodeId>,
    substitutes: bool,
) -> Result<(Packed, Option<NodeId>)> {
    let (rows, dtype) = (matrix.rows, dtype_of(b, matrix.x));
    let width = others.and_then(|others| last(b, others).as_const()).unwrap_or(0);
    let count = matrix.count(b);
    let mut state = matrix.x;
    if let Some(others) = others {
        state = cat(b, &[state, others], -1)?;
    }
    let shape =
        |last: &[i64]| -> Shape { [count.clone()].into_iter().chain(last.iter().map(|&dim| dim.into())).collect() };
    let state = reshape(b, state, &shape(&[rows, rows + width]))?;
    let zero = b.constant(Const::int(DType::I32, 0));
    let order = expand(b, zero, &shape(&[rows]))?;
    let (number, none) = (b.dim(&count)?, b.dim(&Dim::from(0))?);
    let results = kernel([rows, width], dtype, substitutes)?.call(b, &[state, order, number, none])?;
    let mut columns = |first: i64, length: i64| -> Result<NodeId> {
        let (part, shape) = (narrow(b, results[0], -1, first, length)?, matrix.like(b, &[rows, length]));
        reshape(b, part, &shape)
    };
    let factors = columns(0, rows)?;
    let others = if others.is_some() { Some(columns(rows, width)?) } else { None };
    let shape = matrix.like(b, &[rows]);
    let order = reshape(b, results[1], &shape)?;
    Ok((Packed { factors, order }, others))
}

/// The matrices of a block in LOCAL memory, `[column, row, lane]`.
struct Block {
    w: Loops,
    work: Memory,
    rows: i64,
    columns: i64,
}

impl Block {
    fn at(&mut self, column: NodeId, row: NodeId, lane: NodeId) -> Result<NodeId> {
        self.w.load(self.work, &[column, row, lane], None)
    }

    /// The rows below the k-th; close the loop.
    fn below(&mut self, k: NodeId) -> Result<NodeId> {
        let count = self.w.sum(&[(-1, k)], self.rows - 1)?;
        let row = self.w.serial(count)?;
        self.w.sum(&[(1, k), (1, row)], 1)
    }

    /// Subtracts the product of two values from an element.
    fn subtract(&mut self, column: NodeId, row: NodeId, lane: NodeId, [x, y]: [NodeId; 2]) -> Result<()> {
        let product = mul(&mut self.w.graph, x, y)?;
        let value = self.at(column, row, lane)?;
        let value = sub(&mut self.w.graph, value, product)?;
        self.w.store(self.work, &[column, row, lane], value, None)
    }

    /// The pivots of column k: the first of the greatest, unless there is a nan.
    fn pivots(&mut self, k: NodeId, pivots: Memory) -> Result<()> {
        let dtype = self.w.dtype(self.work);
        let lane = self.w.lanes(LANES)?;
        let magnitude = |block: &mut Block, row: NodeId| -> Result<NodeId> {
            let value = block.at(k, row, lane)?;
            let magnitude = abs(&mut block.w.graph, value)?;
            let (done, none) = (block.w.less(row, k)?, block.w.float(dtype, -1.0));
            block.w.graph.alu(Op::Where, &[done, none, magnitude])
        };
        let all = self.w.graph.index(self.rows);
        let row = self.w.terms(all, AxisType::Reduce)?;
        let value = magnitude(self, row)?;
        let greatest = self.w.reduce(Op::Max, value, &[row])?;
        let row = self.w.terms(all, AxisType::Reduce)?;
        let value = magnitude(self, row)?;
        let hit = eq(&mut self.w.graph, value, greatest)?;
        let (number, end, zero) = (self.w.number(row)?, self.w.int(self.rows), self.w.int(0));
        let left = sub(&mut self.w.graph, end, number)?;
        let left = self.w.graph.alu(Op::Where, &[hit, left, zero])?;
        let from_end = self.w.reduce(Op::Max, left, &[row])?;
        let found = sub(&mut self.w.graph, end, from_end)?;
        let (own, none) = (self.w.number(k)?, eq(&mut self.w.graph, from_end, zero)?);
        let pivot = self.w.graph.alu(Op::Where, &[none, own, found])?;
        self.w.store(pivots, &[lane], pivot, None)?;
        self.w.close(1)
    }

    /// Row k changes places with the pivot's.
    fn exchange(&mut self, k: NodeId, pivots: Memory, order: Memory) -> Result<()> {
        let row = self.below(k)?;
        let choose = |w: &mut Loops, memory: Memory, [first, second]: [&[NodeId]; 2], lane: NodeId| -> Result<()> {
            let (pivot, number) = (w.load(pivots, &[lane], None)?, w.number(row)?);
            let hit = eq(&mut w.graph, pivot, number)?;
            let (x, y) = (w.load(memory, first, None)?, w.load(memory, second, None)?);
            let (above, below) = (w.graph.alu(Op::Where, &[hit, y, x])?, w.graph.alu(Op::Where, &[hit, x, y])?);
            w.store(memory, first, above, None)?;
            w.store(memory, second, below, None)
        };
        let lane = self.w.lanes(LANES)?;
        choose(&mut self.w, order, [&[k, lane], &[row, lane]], lane)?;
        self.w.close(1)?;
        let columns = self.w.graph.index(self.columns);
        let column = self.w.serial(columns)?;
        let lane = self.w.lanes(LANES)?;
        choose(&mut self.w, self.work, [&[column, k, lane], &[column, row, lane]], lane)?;
        self.w.close(3)
    }

    /// Column k below the diagonal becomes shares of the pivot's row, which are taken off the rows.
    fn eliminate(&mut self, k: NodeId) -> Result<()> {
        let dtype = self.w.dtype(self.work);
        let row = self.below(k)?;
        let lane = self.w.lanes(LANES)?;
        let (value, pivot) = (self.at(k, row, lane)?, self.at(k, k, lane)?);
        let (zero, one) = (self.w.float(dtype, 0.0), self.w.float(dtype, 1.0));
        let is_zero = eq(&mut self.w.graph, pivot, zero)?;
        let divisor = self.w.graph.alu(Op::Where, &[is_zero, one, pivot])?;
        let share = div(&mut self.w.graph, value, divisor)?;
        self.w.store(self.work, &[k, row, lane], share, None)?;
        self.w.close(1)?;
        let behind = self.w.sum(&[(-1, k)], self.columns - 1)?;
        let column = self.w.serial(behind)?;
        let column = self.w.sum(&[(1, k), (1, column)], 1)?;
        let lane = self.w.lanes(LANES)?;
        let taken = [self.at(column, k, lane)?, self.at(k, row, lane)?];
        self.subtract(column, row, lane, taken)?;
        self.w.close(3)
    }

    /// The columns behind the matrix become the solution, from the last row to the first one.
    fn substitute(&mut self) -> Result<()> {
        let (all, width) = (self.w.graph.index(self.rows), self.w.graph.index(self.columns - self.rows));
        let step = self.w.serial(all)?;
        let k = self.w.sum(&[(-1, step)], self.rows - 1)?;
        let column = self.w.serial(width)?;
        let column = self.w.sum(&[(1, column)], self.rows)?;
        let lane = self.w.lanes(LANES)?;
        let (value, pivot) = (self.at(column, k, lane)?, self.at(k, k, lane)?);
        let value = div(&mut self.w.graph, value, pivot)?;
        self.w.store(self.work, &[column, k, lane], value, None)?;
        self.w.close(1)?;
        let row = self.w.serial(k)?;
        let lane = self.w.lanes(LANES)?;
        let taken = [self.at(k, row, lane)?, self.at(column, k, lane)?];
        self.subtract(column, row, lane, taken)?;
        self.w.close(4)
    }
}

fn kernel([rows, width]: [i64; 2], dtype: DType, substitutes: bool) -> Result<WrittenKernel> {
    let columns = rows + width;
    let matrices = [rows, columns].map(Size::Number);
    let outputs = [("matrix", dtype, &matrices[..]), ("order", DType::I32, &[Size::Number(rows)])];
    let (mut w, memories) = Loops::new(&outputs, &[])?;
    let (matrix, order) = (memories[0], memories[1]);
    let work = w.local(dtype, &[columns, rows, LANES])?;
    let (numbers, pivots) = (w.local(DType::I32, &[rows, LANES])?, w.local(DType::I32, &[LANES])?);
    let (lanes, all_rows, all_columns) = (w.graph.index(LANES), w.graph.index(rows), w.graph.index(columns));
    let full = w.sum(&[(1, w.count)], LANES - 1)?;
    let blocks = w.graph.alu(Op::Idiv, &[full, lanes])?;
    let block = w.open(blocks, AxisType::Global)?;
    // The matrix of a lane, and whether there is one.
    let own = |w: &mut Loops, lane: NodeId| -> Result<(NodeId, NodeId)> {
        let number = w.sum(&[(LANES, block), (1, lane)], 0)?;
        Ok((number, w.less(number, w.count)?))
    };

    let row = w.serial(all_rows)?;
    let lane = w.lanes(LANES)?;
    let number = w.number(row)?;
    w.store(numbers, &[row, lane], number, None)?;
    w.close(1)?;
    let column = w.serial(all_columns)?;
    let lane = w.lanes(LANES)?;
    let (number, is_there) = own(&mut w, lane)?;
    let value = w.load(matrix, &[number, row, column], Some(is_there))?;
    w.store(work, &[column, row, lane], value, None)?;
    w.close(3)?;

    let mut inner = Block { w, work, rows, columns };
    let k = inner.w.serial(all_rows)?;
    inner.pivots(k, pivots)?;
    inner.exchange(k, pivots, numbers)?;
    inner.eliminate(k)?;
    inner.w.close(1)?;
    if substitutes {
        inner.substitute()?;
    }

    let mut w = inner.w;
    let row = w.serial(all_rows)?;
    let lane = w.lanes(LANES)?;
    let (number, is_there) = own(&mut w, lane)?;
    let value = w.load(numbers, &[row, lane], None)?;
    w.store(order, &[number, row], value, Some(is_there))?;
    w.close(1)?;
    let column = w.serial(all_columns)?;
    let lane = w.lanes(LANES)?;
    let (number, is_there) = own(&mut w, lane)?;
    let value = w.load(work, &[column, row, lane], None)?;
    w.store(matrix, &[number, row, column], value, Some(is_there))?;
    w.close(4)?;
    w.finish("interleaved_lu")
}
