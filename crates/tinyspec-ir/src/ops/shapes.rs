//! Matrices made of parts, powers and turns; ramps of other kinds.

use super::creation::{arange_dim, linspace};
use super::movement::{cat, flip, pad, transpose, unsqueeze};
use super::{axis_of, cast, dtype_of, shape_of, to_float, within};
use crate::dim::show;
use crate::{Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

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
    let length = |row: i64| match upper {
        true => columns - (row + offset).clamp(0, columns),
        false => (row + offset + 1).clamp(0, columns),
    };
    let mut parts: [Vec<NodeId>; 2] = [vec![], vec![]];
    for row in 0..rows {
        let count = length(row);
        if count == 0 {
            continue;
        }
        let number = b.constant(Const::int(DType::I32, row.into()));
        parts[0].push(super::movement::expand(b, number, &[Dim::from(count)])?);
        let start = b.constant(Const::int(DType::I32, if upper { columns - count } else { 0 }.into()));
        let ramp = arange_dim(b, &Dim::from(count), DType::I32)?;
        parts[1].push(b.alu(Op::Add, &[ramp, start])?);
    }
    if parts[0].is_empty() {
        let zero = b.constant(Const::int(DType::I32, 0));
        return super::movement::expand(b, zero, &[Dim::from(2), Dim::from(0)]);
    }
    let (rows, columns) = (cat(b, &parts[0], 0)?, cat(b, &parts[1], 0)?);
    super::movement::stack(b, &[rows, columns], 0)
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
    let in_op = |error: Error| error.in_op("bilinear");
    let (x, other) = (to_float(b, x)?, to_float(b, other)?);
    let product = super::einsum::einsum(b, "...i,kij,...j->...k", &[x, weight, other]).map_err(in_op)?;
    match bias {
        Some(bias) => super::arithmetic::add(b, product, bias).map_err(in_op),
        None => Ok(product),
    }
}
