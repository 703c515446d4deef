//! Common parts of the factorisations: block sizes, and loops over parts of a column-major matrix in memory.

use super::{Matrix, as_columns, numbers, product, turned};
use crate::dim::broadcast;
use crate::ops::arithmetic::{eq, neg, sub};
use crate::ops::loops::{Loops, Memory};
use crate::ops::matmul::matmul;
use crate::ops::movement::{cat, expand, pad, permute, reshape, shrink};
use crate::ops::{cast, dtype_of, like, shape_of};
use crate::{AxisType, Builder, Const, DType, Dim, NodeId, Op, Result, Shape};

/// How a matrix is cut. Everything is a multiple of a tile, so that no loop has a part that is left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    /// Elements of a column that are worked on together.
    pub tile: i64,
    /// Columns that are eliminated before the others see anything of it.
    pub width: i64,
    /// How many of them are eliminated: where one tile holds a matrix, those that do not just fill it up.
    pub own: i64,
    /// Elements of a column, with those that fill the last block.
    pub rows: i64,
    /// From one column to the next.
    pub stride: i64,
    /// Columns of a product that are worked on together.
    pub columns: i64,
}

const TILE: i64 = 16;

impl Blocks {
    /// The same with other rows, of as many blocks.
    pub fn of_rows(self, rows: i64) -> Blocks {
        // Columns a power of two apart would map to a few sets of the cache.
        let stride = if rows % 128 == 0 { rows + TILE } else { rows };
        Blocks { rows, stride, ..self }
    }

    /// For square matrices of this size.
    pub fn of(size: i64) -> Blocks {
        let size = size.max(1);
        let width = if size <= 192 { 32 } else { 64 };
        let unit = match size {
            size if size <= TILE => size.unsigned_abs().next_power_of_two().max(2) as i64,
            size if size <= width => TILE,
            _ => width,
        };
        let rows = size.unsigned_abs().next_multiple_of(unit.unsigned_abs()) as i64;
        let (width, tile) = (width.min(rows), unit.min(TILE));
        let own = if rows == tile { size } else { width };
        Blocks { tile, width, own, rows, stride: rows, columns: tile.min(4) }.of_rows(rows)
    }

    /// Number of blocks.
    pub fn count(&self) -> i64 {
        self.rows / self.width
    }

    /// Elements of a column that a product works on together: two vectors of most machines.
    pub fn product_tile(&self, dtype: DType) -> i64 {
        (128 / dtype.size() as i64).min(self.width)
    }
}

/// Where the elimination is: inside of a block, in the column `column`, whose diagonal lies in the tile `tile`.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub column: NodeId,
    pub tile: NodeId,
    /// Within the block.
    pub number: NodeId,
}

/// The part of matrices that a product is taken off.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub target: Memory,
    pub batch: NodeId,
    /// The first row.
    pub row: NodeId,
    /// Tiles of rows, of [`Blocks::product_tile`].
    pub tiles: NodeId,
    /// The first column.
    pub column: NodeId,
    pub groups: Groups,
}

/// Groups of columns, of [`Blocks::columns`].
#[derive(Clone, Copy)]
pub(super) enum Groups {
    All(NodeId),
    /// As many as a tile of rows has below the diagonal; the first row and column are one.
    ToDiagonal,
}

impl Loops {
    /// Two loops over the columns of block `block`; close them both.
    pub(super) fn columns(&mut self, blocks: Blocks, block: NodeId) -> Result<Step> {
        let tiles = self.graph.index(blocks.width / blocks.tile);
        let columns = self.graph.index(blocks.tile.min(blocks.own));
        let outer = self.serial(tiles)?;
        let inner = self.serial(columns)?;
        let number = self.sum(&[(blocks.tile, outer), (1, inner)], 0)?;
        let column = self.column_of(blocks, block, number)?;
        let tile = self.sum(&[(blocks.width / blocks.tile, block), (1, outer)], 0)?;
        Ok(Step { column, tile, number })
    }

    /// Column `number` of a block.
    pub(super) fn column_of(&mut self, blocks: Blocks, block: NodeId, number: NodeId) -> Result<NodeId> {
        self.sum(&[(blocks.width, block), (1, number)], 0)
    }

    /// A loop over the block's columns behind that of `step`; close it.
    pub(super) fn columns_behind(&mut self, blocks: Blocks, step: Step) -> Result<NodeId> {
        let count = self.sum(&[(-1, step.number)], blocks.own - 1)?;
        let number = self.serial(count)?;
        self.sum(&[(1, step.column), (1, number)], 1)
    }

    /// Elements of a column from the tile `first` on: a loop over `trips` tiles and one over lanes; close them both.
    pub(super) fn elements(&mut self, blocks: Blocks, first: NodeId, trips: NodeId) -> Result<NodeId> {
        let outer = self.serial(trips)?;
        let lane = self.lanes(blocks.tile)?;
        self.sum(&[(blocks.tile, first), (blocks.tile, outer), (1, lane)], 0)
    }

    /// Tiles from the `first` to the end of a column.
    pub(super) fn tiles_from(&mut self, blocks: Blocks, first: NodeId) -> Result<NodeId> {
        self.sum(&[(-1, first)], blocks.rows / blocks.tile)
    }

    /// The sum or maximum of `value(i)` over the elements i of a column, from the tile of `step` on.
    pub(super) fn over(
        &mut self,
        op: Op,
        blocks: Blocks,
        step: Step,
        value: impl FnOnce(&mut Loops, NodeId) -> Result<NodeId>,
    ) -> Result<NodeId> {
        let trips = self.tiles_from(blocks, step.tile)?;
        let outer = self.terms(trips, AxisType::Reduce)?;
        let tile = self.graph.index(blocks.tile);
        let lane = self.terms(tile, AxisType::Unroll)?;
        let element = self.sum(&[(blocks.tile, step.tile), (blocks.tile, outer), (1, lane)], 0)?;
        let value = value(self, element)?;
        self.reduce(op, value, &[outer, lane])
    }

    /// `element > column`.
    pub(super) fn below(&mut self, column: NodeId, element: NodeId) -> Result<NodeId> {
        self.less(column, element)
    }

    /// An index as data.
    pub(super) fn number(&mut self, index: NodeId) -> Result<NodeId> {
        self.graph.add(Op::Cast, &[index], crate::Arg::DType(DType::I32))
    }

    /// The elements i of the column j of `target` below the diagonal of `column`, with `minus` times those of that column
    /// of `matrix` added.
    pub(super) fn eliminate(
        &mut self,
        (matrix, target): (Memory, Memory),
        batch: NodeId,
        column: NodeId,
        (j, i): (NodeId, NodeId),
        minus: NodeId,
    ) -> Result<()> {
        let share = self.load(matrix, &[batch, column, i], None)?;
        let value = self.load(target, &[batch, j, i], None)?;
        let rest = self.graph.alu(Op::Mulacc, &[share, minus, value])?;
        let below = self.below(column, i)?;
        let rest = self.graph.alu(Op::Where, &[below, rest, value])?;
        self.store(target, &[batch, j, i], rest, None)
    }

    /// Takes the column of `step` off the block's rows below its diagonal, in the group of columns of `target` that begins with
    /// `first`.
    pub(super) fn eliminate_in_block(
        &mut self,
        blocks: Blocks,
        (matrix, target): (Memory, Memory),
        batch: NodeId,
        (block, step): (NodeId, Step),
        first: NodeId,
    ) -> Result<()> {
        let Blocks { tile, width, columns, .. } = blocks;
        let trips = self.sum(&[(width / tile, block), (-1, step.tile)], width / tile)?;
        let outer = self.serial(trips)?;
        let member = self.lanes(columns)?;
        let j = self.sum(&[(1, first), (1, member)], 0)?;
        let taken = self.load(target, &[batch, j, step.column], None)?;
        let minus = neg(&mut self.graph, taken)?;
        let lane = self.lanes(tile)?;
        let i = self.sum(&[(tile, step.tile), (tile, outer), (1, lane)], 0)?;
        self.eliminate((matrix, target), batch, step.column, (j, i), minus)?;
        self.close(3)
    }

    /// `target[j, i] -= Σ_k left(j, k) · right(k, i)` over the columns k of a block, for a part of the target.
    pub(super) fn product(
        &mut self,
        blocks: Blocks,
        part: Part,
        left: impl Fn(&mut Loops, NodeId, NodeId) -> Result<NodeId>,
        right: impl Fn(&mut Loops, NodeId, NodeId) -> Result<NodeId>,
    ) -> Result<()> {
        let dtype = self.dtype(part.target);
        let size = blocks.product_tile(dtype);
        let tile = self.serial(part.tiles)?;
        let groups = match part.groups {
            Groups::All(groups) => groups,
            Groups::ToDiagonal => self.sum(&[(size / blocks.columns, tile)], size / blocks.columns)?,
        };
        let group = self.serial(groups)?;
        let one = self.lanes(blocks.columns)?;
        let lane = self.lanes(size)?;
        let j = self.sum(&[(1, part.column), (blocks.columns, group), (1, one)], 0)?;
        let i = self.sum(&[(1, part.row), (size, tile), (1, lane)], 0)?;
        let width = self.graph.index(blocks.width);
        let k = self.terms(width, AxisType::Reduce)?;
        let (a, b) = (left(self, j, k)?, right(self, k, i)?);
        let product = self.graph.alu(Op::Mul, &[a, b])?;
        let sum = self.reduce(Op::Add, product, &[k])?;
        let place = [part.batch, j, i];
        let old = self.load(part.target, &place, None)?;
        let new = sub(&mut self.graph, old, sum)?;
        self.store(part.target, &place, new, None)?;
        self.close(4)
    }

    pub(super) fn float(&mut self, dtype: DType, value: f64) -> NodeId {
        self.graph.constant(Const::float(dtype, value))
    }
}

/// How matrices lie in a kernel's buffer: column by column.
#[derive(Clone)]
pub(super) struct Layout {
    /// How many there are.
    pub count: Dim,
    /// Groups of columns that go along.
    pub groups: Dim,
    blocks: Blocks,
    lead: Shape,
}

impl Layout {
    /// For matrices like this one and the columns of `others`.
    pub fn of(b: &dyn Builder, matrix: Matrix, others: Option<NodeId>, blocks: Blocks) -> Layout {
        let lead = matrix.like(b, &[]);
        let count = matrix.count(b);
        let group = Dim::from(blocks.columns);
        let groups =
            others.map_or(Dim::from(0), |others| (last(b, others) + group.clone() - Dim::from(1)).idiv(&group));
        Layout { count, groups, blocks, lead }
    }

    /// The dims of a kernel.
    pub fn dims(&self, b: &mut dyn Builder) -> Result<[NodeId; 2]> {
        Ok([b.dim(&self.count)?, b.dim(&self.groups)?])
    }

    /// The columns of `x`, `width` of them with those that fill a block or a group: zeros, or where the matrix says so an
    /// identity.
    pub fn columns(&self, b: &mut dyn Builder, x: NodeId, width: &Dim, is_square: bool) -> Result<NodeId> {
        let shape = shape_of(b, x);
        let (rows, columns) = (shape[shape.len() - 2].clone(), shape[shape.len() - 1].clone());
        let x = reshape(b, x, &[self.count.clone(), rows.clone(), columns])?;
        let x = turned(b, x)?;
        let shape = [self.count.clone(), width.clone(), Dim::from(self.blocks.stride)];
        let x = pad(b, x, &[0, 0, 0].map(Dim::from), &shape, 0.0)?;
        let Some(size) = rows.as_const().filter(|&rows| is_square && rows < self.blocks.rows) else { return Ok(x) };
        let (row, column) = (numbers(b, self.blocks.rows)?, numbers(b, self.blocks.stride)?);
        let column = turned(b, column)?;
        let (on_diagonal, size) = (eq(b, row, column)?, b.constant(Const::int(DType::I32, size.into())));
        let inside = b.alu(Op::CmpLt, &[row, size])?;
        let (one, zero) = (like(b, x, 1.0), like(b, x, 0.0));
        let identity = b.alu(Op::Where, &[on_diagonal, one, zero])?;
        b.alu(Op::Where, &[inside, x, identity])
    }

    /// The columns that go along.
    pub fn others(&self, b: &mut dyn Builder, others: NodeId) -> Result<NodeId> {
        let width = self.groups.clone() * Dim::from(self.blocks.columns);
        self.columns(b, others, &width, false)
    }

    /// The matrix, and behind it the columns that go along.
    pub fn both(
        &self,
        b: &mut dyn Builder,
        matrix: NodeId,
        others: Option<NodeId>,
        is_square: bool,
        width: i64,
    ) -> Result<NodeId> {
        let state = self.columns(b, matrix, &Dim::from(width), is_square)?;
        match others {
            Some(others) => {
                let others = self.others(b, others)?;
                cat(b, &[state, others], -2)
            }
            None => Ok(state),
        }
    }

    /// A matrix of `shape` in rows again, from the buffer's columns from `first` on.
    pub fn rows_of(
        &self,
        b: &mut dyn Builder,
        state: NodeId,
        first: i64,
        (rows, columns): (i64, Dim),
    ) -> Result<NodeId> {
        let mut shape = shape_of(b, state);
        let offset = [0, first, 0].map(Dim::from);
        (shape[1], shape[2]) = (columns.clone(), Dim::from(rows));
        let part = shrink(b, state, &offset, &shape)?;
        let part = turned(b, part)?;
        let shape: Shape = self.lead.iter().cloned().chain([Dim::from(rows), columns]).collect();
        reshape(b, part, &shape)
    }
}

/// The columns of a matrix.
pub(super) fn last(b: &dyn Builder, x: NodeId) -> Dim {
    shape_of(b, x).last().cloned().unwrap_or_else(|| Dim::from(1))
}

/// Applies `function` to a matrix and columns, either of which may be broadcast over the other's leading axes.
pub(super) fn with_columns(
    b: &mut dyn Builder,
    matrix: Matrix,
    other: NodeId,
    function: impl FnOnce(&mut dyn Builder, Matrix, NodeId) -> Result<NodeId>,
) -> Result<NodeId> {
    let dtype = dtype_of(b, matrix.x);
    let other = cast(b, other, dtype)?;
    as_columns(b, other, |b, other| {
        let (own, shape) = (matrix.like(b, &[]), shape_of(b, other));
        let (lead, [rows, columns]) = shape.split_at(shape.len() - 2) else { return function(b, matrix, other) };
        if own[..] == *lead {
            return function(b, matrix, other);
        }
        let Some(all) = broadcast(&own, lead) else {
            // The product of both says what is wrong.
            return matmul(b, matrix.x, other);
        };
        let with = |lead: &[Dim], last: &[Dim]| -> Shape { lead.iter().chain(last).cloned().collect() };
        if own.iter().all(|dim| dim.is(1)) {
            // Many right-hand sides of one matrix.
            let count = product(lead);
            let x = reshape(b, matrix.x, &[matrix.rows, matrix.columns].map(Dim::from))?;
            let other = reshape(b, other, &[count.clone(), rows.clone(), columns.clone()])?;
            let other = permute(b, other, &[1, 0, 2])?;
            let other = reshape(b, other, &[rows.clone(), count.clone() * columns.clone()])?;
            let result = function(b, Matrix { x, ..matrix }, other)?;
            let found = shape_of(b, result)[0].clone();
            let result = reshape(b, result, &[found.clone(), count, columns.clone()])?;
            let result = permute(b, result, &[1, 0, 2])?;
            return reshape(b, result, &with(&all, &[found, columns.clone()]));
        }
        let x = expand(b, matrix.x, &with(&all, &[matrix.rows, matrix.columns].map(Dim::from)))?;
        let other = expand(b, other, &with(&all, &[rows.clone(), columns.clone()]))?;
        function(b, Matrix { x, ..matrix }, other)
    })
}
