//! Orthogonal columns by reflections (Householder, 1958), a block of them at a time (Schreiber and Van Loan, 1989):
//! `A = Q R`.

use super::function::with_gradient;
use super::panels::{Blocks, Groups, Layout, Part, Step, last};
use super::triangular::{Kind, solved};
use super::{Matrix, turned};
use crate::kernel::WrittenKernel;
use crate::ops::arithmetic::{add, div, eq, mul, ne, neg, sub};
use crate::ops::elementwise::{abs, sqrt};
use crate::ops::loops::{Loops, Memory, Size};
use crate::ops::matmul::matmul;
use crate::ops::movement::{cat, expand, narrow, tril, triu};
use crate::ops::{cast, dtype_of, like};
use crate::{AxisType, Builder, DType, Dim, NodeId, Op, Result};

/// Q and R with `A = Q R`: orthonormal columns and an upper triangle, both as narrow as A allows.
pub fn qr(b: &mut dyn Builder, x: NodeId) -> Result<Vec<NodeId>> {
    let matrix = Matrix::of(b, "qr", x)?;
    factored(b, matrix)?.into_iter().map(|part| cast(b, part, matrix.dtype)).collect()
}

/// Q and R in the dtype that is computed in.
pub(super) fn factored(b: &mut dyn Builder, matrix: Matrix) -> Result<Vec<NodeId>> {
    with_gradient(
        b,
        ("qr", matrix, None),
        &[matrix.x],
        &|b, inputs| factors(b, Matrix { x: inputs[0], ..matrix }),
        &|b, inputs, cotangents| gradient(b, matrix.of_gradient(inputs[0]), cotangents),
    )
}

fn factors(b: &mut dyn Builder, matrix: Matrix) -> Result<Vec<NodeId>> {
    let count = matrix.rows.min(matrix.columns);
    let (reflected, layout) = reflected(b, matrix, None, true)?;
    let upper = layout.rows_of(b, reflected[0], 0, (count, Dim::from(matrix.columns)))?;
    let upper = triu(b, upper, 0)?;
    let q = layout.rows_of(b, reflected[2], 0, (matrix.rows, Dim::from(count)))?;
    Ok(vec![q, upper])
}

/// R, and the first elements of `Qᵀ other`.
pub(super) fn turned_by(b: &mut dyn Builder, matrix: Matrix, other: NodeId) -> Result<(NodeId, NodeId)> {
    let (reflected, layout) = reflected(b, matrix, Some(other), false)?;
    let upper = layout.rows_of(b, reflected[0], 0, (matrix.columns, Dim::from(matrix.columns)))?;
    let upper = triu(b, upper, 0)?;
    let width = last(b, other);
    let first = Sizes::of(matrix).columns;
    let turned = layout.rows_of(b, reflected[0], first, (matrix.columns, width))?;
    Ok((upper, turned))
}

/// `Ā = (Q̄ + Q copyltu(R R̄ᵀ - Q̄ᵀ Q)) R⁻ᵀ`; columns beyond the square are `Q R`, too.
fn gradient(b: &mut dyn Builder, matrix: Matrix, cotangents: &[NodeId]) -> Result<Vec<NodeId>> {
    let parts = factored(b, matrix)?;
    let (q, r) = (parts[0], parts[1]);
    let (mut of_q, of_r) = (cotangents[0], triu(b, cotangents[1], 0)?);
    let count = matrix.rows.min(matrix.columns);
    let (square, of_square) = (narrow(b, r, -1, 0, count)?, narrow(b, of_r, -1, 0, count)?);
    let mut behind = None;
    if matrix.columns > count {
        let others = matrix.columns - count;
        let of_others = narrow(b, of_r, -1, count, others)?;
        let columns = narrow(b, matrix.x, -1, count, others)?;
        let mirrored = turned(b, of_others)?;
        let through = matmul(b, columns, mirrored)?;
        of_q = add(b, of_q, through)?;
        behind = Some(matmul(b, q, of_others)?);
    }
    let mirrored = turned(b, of_square)?;
    let first = matmul(b, square, mirrored)?;
    let mirrored = turned(b, of_q)?;
    let second = matmul(b, mirrored, q)?;
    let inner = sub(b, first, second)?;
    let (lower, strict) = (tril(b, inner, 0)?, tril(b, inner, -1)?);
    let strict = turned(b, strict)?;
    let symmetric = add(b, lower, strict)?;
    let shares = matmul(b, q, symmetric)?;
    let sum = add(b, of_q, shares)?;
    // sum R⁻ᵀ is the other way round a system of R.
    let sum = turned(b, sum)?;
    let square = Matrix { x: square, rows: count, columns: count, ..matrix };
    let solution = solved(b, square, sum, Kind { upper: true, unit: false })?;
    let solution = turned(b, solution)?;
    let gradient = match behind {
        Some(behind) => cat(b, &[solution, behind], -1)?,
        None => solution,
    };
    Ok(vec![gradient])
}

/// Sizes of the reflections: the matrix in blocks, its columns padded to whole blocks, and the number of reflections.
struct Sizes {
    blocks: Blocks,
    columns: i64,
    reflections: i64,
}

impl Sizes {
    fn of(matrix: Matrix) -> Sizes {
        let count = matrix.rows.min(matrix.columns).max(1);
        let whole = |size: i64, unit: i64| size.unsigned_abs().next_multiple_of(unit.unsigned_abs()) as i64;
        let columns = Blocks::of(count);
        // The columns that fill a block are reflected, too.
        let columns = Blocks { own: columns.width, ..columns };
        // Rows of as many tiles as there are; a block of columns has at least as many.
        let rows = whole(matrix.rows.max(columns.rows), columns.width);
        let blocks = columns.of_rows(rows);
        Sizes { blocks, columns: whole(matrix.columns.max(1), blocks.width), reflections: columns.rows }
    }
}

/// The matrix after all reflections, the vectors of the reflections, the columns of Q if asked for, and their layout.
fn reflected(
    b: &mut dyn Builder,
    matrix: Matrix,
    others: Option<NodeId>,
    with_q: bool,
) -> Result<(Vec<NodeId>, Layout)> {
    let sizes = Sizes::of(matrix);
    let dtype = dtype_of(b, matrix.x);
    let layout = Layout::of(b, matrix, others, sizes.blocks);
    let state = layout.both(b, matrix.x, others, false, sizes.columns)?;
    let zero = like(b, matrix.x, 0.0);
    let empty = expand(b, zero, &[layout.count.clone(), Dim::from(sizes.reflections), Dim::from(sizes.blocks.stride)])?;
    let [count, groups] = layout.dims(b)?;
    let buffers = if with_q { vec![state, empty, empty, count, groups] } else { vec![state, empty, count, groups] };
    let results = kernel(sizes, dtype, with_q)?.call(b, &buffers)?;
    Ok((results, layout))
}

/// The kernel: matrices column by column.
struct Reflections {
    w: Loops,
    blocks: Blocks,
    dtype: DType,
    batch: NodeId,
    /// The vectors v of the reflections `1 - τ v vᵀ`, zero above their diagonals.
    vectors: Memory,
    /// For each block the matrix T of the product `1 - V T Vᵀ`, column by column.
    cores: Memory,
    /// `Vᵀ` times the columns, and that times the core.
    products: Memory,
    shares: Memory,
}

fn kernel(sizes: Sizes, dtype: DType, with_q: bool) -> Result<WrittenKernel> {
    let Sizes { blocks, columns, reflections } = sizes;
    let Blocks { width, stride, columns: group, .. } = blocks;
    let count = reflections / width;
    let state = [Size::With(columns, group), Size::Number(stride)];
    let square = [reflections, stride].map(Size::Number);
    let mut outputs = vec![("matrix", dtype, &state[..]), ("vectors", dtype, &square)];
    outputs.extend(with_q.then_some(("q", dtype, &square[..])));
    let (mut w, memories) = Loops::new(&outputs, &[])?;
    let (matrix, vectors) = (memories[0], memories[1]);
    let cores = w.local(dtype, &[count, width, width])?;
    let products = w.local(dtype, &[group, width])?;
    let shares = w.local(dtype, &[group, width])?;
    let batch = w.open(w.count, AxisType::Global)?;
    let mut kernel = Reflections { w, blocks, dtype, batch, vectors, cores, products, shares };
    let blocks_count = kernel.w.graph.index(count);
    let block = kernel.w.serial(blocks_count)?;
    let step = kernel.w.columns(blocks, block)?;
    let weight = kernel.reflection(matrix, block, step)?;
    kernel.within_block(matrix, step, weight)?;
    kernel.core(block, step, weight)?;
    kernel.w.close(2)?;
    let groups = kernel.w.sum(&[(-width / group, block), (1, kernel.w.groups)], (columns - width) / group)?;
    let first = kernel.w.sum(&[(width, block)], width)?;
    kernel.apply(matrix, block, (first, groups), true)?;
    kernel.w.close(1)?;
    if with_q {
        kernel.q(memories[2], count, reflections)?;
    }
    kernel.w.close(1)?;
    kernel.w.finish("qr")
}

impl Reflections {
    /// The reflection that leaves a column with nothing below its diagonal, away from the head, so that the difference
    /// keeps its digits; a column that has nothing there stays as it is. Gives its weight τ.
    fn reflection(&mut self, matrix: Memory, block: NodeId, step: Step) -> Result<NodeId> {
        let (blocks, batch, dtype, column) = (self.blocks, self.batch, self.dtype, step.column);
        let w = &mut self.w;
        let (zero, one) = (w.float(dtype, 0.0), w.float(dtype, 1.0));
        let element = |w: &mut Loops, i: NodeId| -> Result<NodeId> {
            let value = w.load(matrix, &[batch, column, i], None)?;
            let is_above = w.graph.alu(Op::CmpLt, &[i, column])?;
            w.graph.alu(Op::Where, &[is_above, zero, value])
        };
        // Scaled, so that no square overflows or is lost.
        let greatest = w.over(Op::Max, blocks, step, |w, i| {
            let value = element(w, i)?;
            abs(&mut w.graph, value)
        })?;
        let is_zero = eq(&mut w.graph, greatest, zero)?;
        let scale = w.graph.alu(Op::Where, &[is_zero, one, greatest])?;
        let total = w.over(Op::Add, blocks, step, |w, i| {
            let value = element(w, i)?;
            let value = div(&mut w.graph, value, scale)?;
            w.graph.alu(Op::Mul, &[value, value])
        })?;
        let total = w.graph.alu(Op::Where, &[is_zero, one, total])?;
        let length = sqrt(&mut w.graph, total)?;
        let own = w.load(matrix, &[batch, column, column], None)?;
        let head = div(&mut w.graph, own, scale)?;
        let is_negative = w.graph.alu(Op::CmpLt, &[head, zero])?;
        let minus = neg(&mut w.graph, length)?;
        let image = w.graph.alu(Op::Where, &[is_negative, length, minus])?;
        let gap = sub(&mut w.graph, head, image)?;
        let tail = |w: &mut Loops, i: NodeId| -> Result<NodeId> {
            let value = w.load(matrix, &[batch, column, i], None)?;
            let value = div(&mut w.graph, value, scale)?;
            let value = div(&mut w.graph, value, gap)?;
            let below = w.below(column, i)?;
            w.graph.alu(Op::Where, &[below, value, zero])
        };
        let rest = w.over(Op::Max, blocks, step, |w, i| {
            let value = tail(w, i)?;
            abs(&mut w.graph, value)
        })?;
        let reflects = ne(&mut w.graph, rest, zero)?;
        let weight = sub(&mut w.graph, image, head)?;
        let weight = div(&mut w.graph, weight, image)?;
        let weight = w.graph.alu(Op::Where, &[reflects, weight, zero])?;

        // The block's rows above the column are zero.
        let start = w.sum(&[(blocks.width / blocks.tile, block)], 0)?;
        let above = w.sum(&[(1, step.tile), (-1, start)], 0)?;
        let i = w.elements(blocks, start, above)?;
        w.store(self.vectors, &[batch, column, i], zero, None)?;
        w.close(2)?;
        let tiles = w.tiles_from(blocks, step.tile)?;
        let i = w.elements(blocks, step.tile, tiles)?;
        let value = tail(w, i)?;
        let is_head = eq(&mut w.graph, i, column)?;
        let value = w.graph.alu(Op::Where, &[is_head, one, value])?;
        w.store(self.vectors, &[batch, column, i], value, None)?;
        w.close(2)?;
        let image = mul(&mut w.graph, image, scale)?;
        let image = w.graph.alu(Op::Where, &[reflects, image, own])?;
        w.store(matrix, &[batch, column, column], image, None)?;
        Ok(weight)
    }

    /// The other columns of the block, reflected.
    fn within_block(&mut self, matrix: Memory, step: Step, weight: NodeId) -> Result<()> {
        let (blocks, batch, column, vectors) = (self.blocks, self.batch, step.column, self.vectors);
        let w = &mut self.w;
        let j = w.columns_behind(blocks, step)?;
        let product = w.over(Op::Add, blocks, step, |w, i| {
            let vector = w.load(vectors, &[batch, column, i], None)?;
            let value = w.load(matrix, &[batch, j, i], None)?;
            w.graph.alu(Op::Mul, &[vector, value])
        })?;
        let share = mul(&mut w.graph, product, weight)?;
        let minus = neg(&mut w.graph, share)?;
        let tiles = w.tiles_from(blocks, step.tile)?;
        let i = w.elements(blocks, step.tile, tiles)?;
        let vector = w.load(vectors, &[batch, column, i], None)?;
        let value = w.load(matrix, &[batch, j, i], None)?;
        let rest = w.graph.alu(Op::Mulacc, &[vector, minus, value])?;
        w.store(matrix, &[batch, j, i], rest, None)?;
        w.close(3)
    }

    /// The column of T for a reflection: `-τ T Vᵀ v` above the diagonal, τ on it.
    fn core(&mut self, block: NodeId, step: Step, weight: NodeId) -> Result<()> {
        let (blocks, batch, vectors, cores, products) =
            (self.blocks, self.batch, self.vectors, self.cores, self.products);
        let w = &mut self.w;
        let (zero, first) = (w.float(self.dtype, 0.0), w.graph.index(0));
        let all = w.graph.index(blocks.width);
        let row = w.serial(all)?;
        w.store(cores, &[block, step.number, row], zero, None)?;
        w.close(1)?;
        let row = w.serial(step.number)?;
        let other = w.column_of(blocks, block, row)?;
        let product = w.over(Op::Add, blocks, step, |w, i| {
            let a = w.load(vectors, &[batch, other, i], None)?;
            let b = w.load(vectors, &[batch, step.column, i], None)?;
            w.graph.alu(Op::Mul, &[a, b])
        })?;
        w.store(products, &[first, row], product, None)?;
        w.close(1)?;
        let minus = neg(&mut w.graph, weight)?;
        let from = w.serial(step.number)?;
        let share = w.load(products, &[first, from], None)?;
        let share = mul(&mut w.graph, share, minus)?;
        let to = w.sum(&[(1, from)], 1)?;
        let row = w.serial(to)?;
        let factor = w.load(cores, &[block, from, row], None)?;
        let sum = w.load(cores, &[block, step.number, row], None)?;
        let sum = w.graph.alu(Op::Mulacc, &[factor, share, sum])?;
        w.store(cores, &[block, step.number, row], sum, None)?;
        w.close(2)?;
        w.store(cores, &[block, step.number, step.number], weight, None)
    }

    /// The reflections of a block, on groups of columns: in their order, which is Tᵀ, or from the last to the first.
    fn apply(&mut self, target: Memory, block: NodeId, columns: (NodeId, NodeId), in_order: bool) -> Result<()> {
        let (blocks, batch, dtype) = (self.blocks, self.batch, self.dtype);
        let (vectors, cores, products, shares) = (self.vectors, self.cores, self.products, self.shares);
        let Blocks { width, tile, rows, columns: members, .. } = blocks;
        let w = &mut self.w;
        let group = w.serial(columns.1)?;
        let first = w.sum(&[(1, columns.0), (members, group)], 0)?;
        // Vᵀ times the columns.
        let lanes = tile.min(64 / dtype.size() as i64);
        let fours = w.graph.index(width / members);
        let four = w.serial(fours)?;
        let (column, vector) = (w.lanes(members)?, w.lanes(members)?);
        let tiles = w.sum(&[(-width / lanes, block)], rows / lanes)?;
        let (outer, size) = (w.terms(tiles, AxisType::Reduce)?, w.graph.index(lanes));
        let lane = w.terms(size, AxisType::Unroll)?;
        let i = w.sum(&[(width, block), (lanes, outer), (1, lane)], 0)?;
        let k = w.sum(&[(members, four), (1, vector)], 0)?;
        let (v, j) = (w.column_of(blocks, block, k)?, w.sum(&[(1, first), (1, column)], 0)?);
        let a = w.load(vectors, &[batch, v, i], None)?;
        let value = w.load(target, &[batch, j, i], None)?;
        let product = w.graph.alu(Op::Mul, &[a, value])?;
        let product = w.reduce(Op::Add, product, &[outer, lane])?;
        w.store(products, &[column, k], product, None)?;
        w.close(3)?;
        // That times the core.
        let all = w.graph.index(width);
        let to = w.serial(all)?;
        let column = w.lanes(members)?;
        let from = w.terms(all, AxisType::Reduce)?;
        let factor = match in_order {
            true => w.load(cores, &[block, to, from], None)?,
            false => w.load(cores, &[block, from, to], None)?,
        };
        let value = w.load(products, &[column, from], None)?;
        let share = w.graph.alu(Op::Mul, &[factor, value])?;
        let share = w.reduce(Op::Add, share, &[from])?;
        w.store(shares, &[column, to], share, None)?;
        w.close(2)?;
        // And that taken off.
        let size = blocks.product_tile(dtype);
        let tiles = w.sum(&[(-width / size, block)], rows / size)?;
        let row = w.sum(&[(width, block)], 0)?;
        let one = w.graph.index(1);
        let part = Part { target, batch, row, tiles, column: first, groups: Groups::All(one) };
        w.product(
            blocks,
            part,
            |w, j, k| {
                let own = w.sum(&[(1, j), (-1, first)], 0)?;
                w.load(shares, &[own, k], None)
            },
            |w, k, i| {
                let v = w.column_of(blocks, block, k)?;
                w.load(vectors, &[batch, v, i], None)
            },
        )?;
        w.close(1)
    }

    /// The first columns of the product of all reflections.
    fn q(&mut self, q: Memory, count: i64, reflections: i64) -> Result<()> {
        let (blocks, batch, dtype) = (self.blocks, self.batch, self.dtype);
        let w = &mut self.w;
        let (all, first) = (w.graph.index(reflections), w.graph.index(0));
        let j = w.serial(all)?;
        let tiles = w.tiles_from(blocks, first)?;
        let i = w.elements(blocks, first, tiles)?;
        let (zero, one) = (w.float(dtype, 0.0), w.float(dtype, 1.0));
        let on_diagonal = eq(&mut w.graph, i, j)?;
        let value = w.graph.alu(Op::Where, &[on_diagonal, one, zero])?;
        w.store(q, &[batch, j, i], value, None)?;
        w.close(3)?;
        let trips = w.graph.index(count);
        let done = w.serial(trips)?;
        let block = w.sum(&[(-1, done)], count - 1)?;
        // The columns before the block are zero in its rows.
        let from = w.sum(&[(blocks.width, block)], 0)?;
        let groups = w.sum(&[(blocks.width / blocks.columns, done)], blocks.width / blocks.columns)?;
        self.apply(q, block, (from, groups), false)?;
        self.w.close(1)
    }
}
