//! Matrices made of parts, powers and turns; ramps of other kinds.

use super::arithmetic;
use super::creation::{arange_dim, linspace};
use super::movement::{cat, flip, pad, transpose, unsqueeze};
use super::{axis_of, cast, dtype_of, shape_of, to_float, within};
use crate::dim::show;
use crate::{Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};
use std::ops::Range;

/// Matrices along the diagonal of one, zeros elsewhere; vectors are rows.
pub fn block_diag(b: &mut dyn Builder, tensors: &[NodeId]) -> Result<NodeId> {
    const OP: &str = "block_diag";
    let mut blocks = Vec::new();
    let (mut rows, mut columns) = (Dim::from(0), Dim::from(0));
    for &x in tensors {
        let block = match shape_of(b, x).len() {
            0 => super::movement::reshape(b, x, &[Dim::from(1), Dim::from(1)])?,
            1 => unsqueeze(b, x, 0)?,
            2 => x,
            _ => {
                let message = format!("needs matrices, found {}", show(&shape_of(b, x)));
                return Err(Error::new(ErrorKind::Rank, OP, message).help("`unsqueeze(0)` makes a row of a vector"));
            }
        };
        let shape = shape_of(b, block);
        blocks.push((block, [rows.clone(), columns.clone()]));
        (rows, columns) = (rows + shape[0].clone(), columns + shape[1].clone());
    }
    let mut joined: Vec<NodeId> = Vec::new();
    for (block, [_, left]) in blocks {
        let wide = [shape_of(b, block)[0].clone(), columns.clone()];
        joined.push(pad(b, block, &[Dim::from(0), left], &wide, 0.0)?);
    }
    cat(b, &joined, 0).map_err(|error| error.in_op(OP))
}

/// Turned by `turns` quarters in the plane of two axes, from the first toward the second.
pub fn rot90(b: &mut dyn Builder, x: NodeId, turns: i64, first: i64, second: i64) -> Result<NodeId> {
    const OP: &str = "rot90";
    let shape = shape_of(b, x);
    let (one, two) = (axis_of(OP, first, &shape)?, axis_of(OP, second, &shape)?);
    if one == two {
        return Err(Error::new(ErrorKind::Axis, OP, format!("axis {one} twice in {}", show(&shape)))
            .help("two different axes, from the first to the second"));
    }
    match turns.rem_euclid(4) {
        0 => Ok(x),
        1 => {
            let flipped = flip(b, x, &[second])?;
            transpose(b, flipped, first, second)
        }
        2 => flip(b, x, &[first, second]),
        _ => {
            let flipped = flip(b, x, &[first])?;
            transpose(b, flipped, first, second)
        }
    }
}

/// The powers 0 to `count - 1` of a vector's elements as columns, the greatest first unless `increasing`.
pub fn vander(b: &mut dyn Builder, x: NodeId, count: i64, increasing: bool) -> Result<NodeId> {
    const OP: &str = "vander";
    let shape = shape_of(b, x);
    if shape.len() != 1 || !(0..1 << 20).contains(&count) {
        let message = format!("{count} powers of {}", show(&shape));
        return Err(Error::new(ErrorKind::Value, OP, message).help("a vector, and at least 0 powers"));
    }
    // A running product: whole numbers stay exact.
    let column = unsqueeze(b, x, -1)?;
    let wide: Shape = [shape[0].clone(), Dim::from((count - 1).max(0))].into_iter().collect();
    let factors = super::movement::expand(b, column, &wide)?;
    let offset = [Dim::from(0), Dim::from(i64::from(count > 0))];
    let factors = pad(b, factors, &offset, &[shape[0].clone(), Dim::from(count)], 1.0)?;
    let powers = super::scan::cumprod(b, factors, 1)?;
    let dtype = dtype_of(b, x);
    let powers = cast(b, powers, dtype)?;
    if increasing { Ok(powers) } else { flip(b, powers, &[1]) }
}

/// `base` to the powers of `steps` numbers from `start` to `stop`.
pub fn logspace(b: &mut dyn Builder, start: f64, stop: f64, steps: i64, base: f64, dtype: DType) -> Result<NodeId> {
    let within = if dtype.is_float() { dtype.accumulator() } else { DType::F64 };
    let exponents = linspace(b, start, stop, steps, within).map_err(|error| error.in_op("logspace"))?;
    let powers = super::elementwise::const_pow(b, exponents, base)?;
    cast(b, powers, dtype)
}

/// The rows and columns of what is on or below the `offset`-th diagonal of a matrix (or above it): two rows of numbers
/// (i32), in the order of memory.
fn triangle(b: &mut dyn Builder, op: &str, rows: i64, columns: i64, offset: i64, upper: bool) -> Result<NodeId> {
    within(op, rows, 0..1 << 15, || format!("{rows} rows"))?;
    within(op, columns, 0..1 << 15, || format!("{columns} columns"))?;
    within(op, offset, -(1 << 15)..1 << 15, || format!("an offset of {offset}"))?;
    // Rows that are whole stand above an upper triangle and below a lower one.
    let parts = if upper {
        let whole = (1 - offset).clamp(0, rows);
        let end = (columns - offset).clamp(whole, rows);
        [whole_rows(b, 0..whole, columns)?, upper_triangle(b, whole..end, columns, offset)?]
    } else {
        let start = (-offset).clamp(0, rows);
        let whole = (columns - offset - 1).clamp(start, rows);
        [lower_triangle(b, start..whole, start + offset + 1)?, whole_rows(b, whole..rows, columns)?]
    };
    let [first, second] = parts;
    let (rows, columns) = (cat(b, &[first.0, second.0], 0)?, cat(b, &[first.1, second.1], 0)?);
    super::movement::stack(b, &[rows, columns], 0)
}

/// The rows and columns of the elements of `rows`.
fn whole_rows(b: &mut dyn Builder, rows: Range<i64>, columns: i64) -> Result<(NodeId, NodeId)> {
    let ramp = arange_dim(b, &Dim::from((rows.end - rows.start) * columns), DType::I32)?;
    let columns = integer(b, columns.max(1));
    let (row, start) = (b.alu(Op::Idiv, &[ramp, columns])?, integer(b, rows.start));
    Ok((b.alu(Op::Add, &[row, start])?, b.alu(Op::Mod, &[ramp, columns])?))
}

/// The rows and columns of the first elements of `rows`: `length` in the first one, and one more in each row below.
fn lower_triangle(b: &mut dyn Builder, rows: Range<i64>, length: i64) -> Result<(NodeId, NodeId)> {
    let count = rows.end - rows.start;
    let ramp = arange_dim(b, &Dim::from(count * length + count * (count - 1) / 2), DType::I32)?;
    let (row, column) = of_triangle(b, ramp, length)?;
    let start = integer(b, rows.start);
    Ok((b.alu(Op::Add, &[row, start])?, column))
}

/// The rows and columns of the last elements of `rows`, from the `offset`-th diagonal on: a lower triangle turned around.
fn upper_triangle(b: &mut dyn Builder, rows: Range<i64>, columns: i64, offset: i64) -> Result<(NodeId, NodeId)> {
    let (count, length) = (rows.end - rows.start, columns - (rows.end - 1 + offset));
    let elements = count * length + count * (count - 1) / 2;
    let (ramp, last) = (arange_dim(b, &Dim::from(elements), DType::I32)?, integer(b, elements - 1));
    let turned = arithmetic::sub(b, last, ramp)?;
    let (row, column) = of_triangle(b, turned, length)?;
    let (last_row, last_column) = (integer(b, rows.end - 1), integer(b, columns - 1));
    Ok((arithmetic::sub(b, last_row, row)?, arithmetic::sub(b, last_column, column)?))
}

/// The row and column of each position in `numbers`, which counts through rows of `length`, `length + 1`, … elements.
fn of_triangle(b: &mut dyn Builder, numbers: NodeId, length: i64) -> Result<(NodeId, NodeId)> {
    // Completed to a triangle by shorter rows on top, `n (n + 1) / 2` elements precede row `n`. The square root in f64 has the exact integer
    // part for arguments below 2^50.
    let above = integer(b, length * (length - 1) / 2);
    let number = b.alu(Op::Add, &[numbers, above])?;
    let wide = cast(b, number, DType::F64)?;
    let eightfold = super::elementwise::scale(b, wide, 8.0)?;
    let square = super::elementwise::shift(b, eightfold, 1.0)?;
    let root = b.alu(Op::Sqrt, &[square])?;
    let root = super::elementwise::shift(b, root, -1.0)?;
    let row = super::elementwise::scale(b, root, 0.5)?;
    let row = cast(b, row, DType::I32)?;
    let (one, two) = (integer(b, 1), integer(b, 2));
    let next = b.alu(Op::Add, &[row, one])?;
    let product = b.alu(Op::Mul, &[row, next])?;
    let before = b.alu(Op::Idiv, &[product, two])?;
    let first = integer(b, 1 - length);
    Ok((b.alu(Op::Add, &[row, first])?, arithmetic::sub(b, number, before)?))
}

fn integer(b: &mut dyn Builder, value: i64) -> NodeId {
    b.constant(Const::int(DType::I32, value.into()))
}

/// Two rows of numbers (i32): the rows and columns of the lower triangle of a matrix, up to its `offset`-th diagonal.
pub fn tril_indices(b: &mut dyn Builder, rows: i64, columns: i64, offset: i64) -> Result<NodeId> {
    triangle(b, "tril_indices", rows, columns, offset, false)
}

/// Two rows of numbers (i32): the rows and columns of the upper triangle of a matrix, from its `offset`-th diagonal on.
pub fn triu_indices(b: &mut dyn Builder, rows: i64, columns: i64, offset: i64) -> Result<NodeId> {
    triangle(b, "triu_indices", rows, columns, offset, true)
}

/// `α - (1 - α) cos` over the steps of a window that is as good as periodic, or ends where it began.
fn raised(b: &mut dyn Builder, op: &str, length: i64, periodic: bool, weights: [f64; 3]) -> Result<NodeId> {
    within(op, length, 0..1 << 30, || format!("a window of {length} elements"))?;
    let dtype = super::DEFAULT_FLOAT;
    let ramp = arange_dim(b, &Dim::from(length), DType::I32)?;
    let ramp = cast(b, ramp, dtype)?;
    let turn = if periodic { length } else { length - 1 }.max(1) as f64;
    let angle = super::elementwise::scale(b, ramp, std::f64::consts::TAU / turn)?;
    let mut window = super::elementwise::scale(b, angle, 0.0)?;
    window = super::elementwise::shift(b, window, weights[0])?;
    for (order, weight) in weights.into_iter().enumerate().skip(1).filter(|(_, weight)| *weight != 0.0) {
        let angle = super::elementwise::scale(b, angle, order as f64)?;
        let cosine = super::trigonometry::cos(b, angle)?;
        let part = super::elementwise::scale(b, cosine, weight)?;
        window = b.alu(Op::Add, &[window, part])?;
    }
    if length == 1 && !periodic {
        let none = super::elementwise::scale(b, ramp, 0.0)?;
        return super::elementwise::shift(b, none, 1.0);
    }
    Ok(window)
}

/// Half a cosine up and down again (f32).
pub fn hann_window(b: &mut dyn Builder, length: i64, periodic: bool) -> Result<NodeId> {
    raised(b, "hann_window", length, periodic, [0.5, -0.5, 0.0])
}

/// [`hann_window`] that does not begin at 0 (f32).
pub fn hamming_window(b: &mut dyn Builder, length: i64, periodic: bool) -> Result<NodeId> {
    raised(b, "hamming_window", length, periodic, [0.54, -0.46, 0.0])
}

/// A narrower window, of two cosines (f32).
pub fn blackman_window(b: &mut dyn Builder, length: i64, periodic: bool) -> Result<NodeId> {
    raised(b, "blackman_window", length, periodic, [0.42, -0.5, 0.08])
}

/// Cartesian products: every combination of elements of vectors, a row each.
pub fn cartesian_prod(b: &mut dyn Builder, tensors: &[NodeId]) -> Result<NodeId> {
    let grids = super::products::meshgrid(b, tensors, "ij").map_err(|error| error.in_op("cartesian_prod"))?;
    let mut columns = Vec::new();
    for grid in grids {
        columns.push(super::movement::flatten(b, grid, 0, -1)?);
    }
    super::movement::stack(b, &columns, -1).map_err(|error| error.in_op("cartesian_prod"))
}

/// Two vectors against each weight of a stack of matrices: `x W_k other + bias_k` for each k.
pub fn bilinear(b: &mut dyn Builder, x: NodeId, other: NodeId, weight: NodeId, bias: Option<NodeId>) -> Result<NodeId> {
    let (x, other) = (to_float(b, x)?, to_float(b, other)?);
    super::einsum::affine(b, "...i,kij,...j->...k", &[x, weight, other], bias).map_err(|error| error.in_op("bilinear"))
}
