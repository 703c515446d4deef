//! Products of whole tensors, and matrices made of vectors.

use super::arithmetic::mul;
use super::movement::{diagonal, permute, reshape, unsqueeze};
use super::{axes_of, axis_of, like, reduce, shape_of};
use crate::dim::show;
use crate::{Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// `x[i] * other[j]` of two vectors.
pub fn outer(b: &mut dyn Builder, x: NodeId, other: NodeId) -> Result<NodeId> {
    let (left, right) = (shape_of(b, x), shape_of(b, other));
    if left.len() != 1 || right.len() != 1 {
        let message = format!("needs two vectors, found {} and {}", show(&left), show(&right));
        return Err(
            Error::new(ErrorKind::Rank, "outer", message).help("of matrices it is `x.unsqueeze(-1) * y.unsqueeze(-2)`")
        );
    }
    let x = unsqueeze(b, x, -1)?;
    mul(b, x, other).map_err(|error| error.in_op("outer"))
}

/// Sums of products over `axes` of this and as many `other_axes`, pair by pair; the axes that are left follow each other.
pub fn tensordot(b: &mut dyn Builder, x: NodeId, other: NodeId, axes: &[i64], other_axes: &[i64]) -> Result<NodeId> {
    const OP: &str = "tensordot";
    let (left, right) = (shape_of(b, x), shape_of(b, other));
    let (paired, other_paired) = (positions(OP, axes, &left)?, positions(OP, other_axes, &right)?);
    let agree = paired.len() == other_paired.len()
        && paired.iter().zip(&other_paired).all(|(&one, &two)| left[one] == right[two]);
    if !agree {
        let message = format!("axes {axes:?} of {} and {other_axes:?} of {} do not pair", show(&left), show(&right));
        return Err(Error::new(ErrorKind::Shape, OP, message).help("as many axes of both, of equal lengths"));
    }
    let (left_free, right_free) = (rest(&left, &paired), rest(&right, &other_paired));
    let product =
        |shape: &Shape, axes: &[usize]| axes.iter().fold(Dim::from(1), |product, &axis| product * shape[axis].clone());
    let (rows, inner, columns) = (product(&left, &left_free), product(&left, &paired), product(&right, &right_free));
    let order: Vec<i64> = left_free.iter().chain(&paired).map(|&axis| axis as i64).collect();
    let x = permute(b, x, &order)?;
    let x = reshape(b, x, &[rows, inner.clone()])?;
    let order: Vec<i64> = other_paired.iter().chain(&right_free).map(|&axis| axis as i64).collect();
    let other = permute(b, other, &order)?;
    let other = reshape(b, other, &[inner, columns])?;
    let matrix = super::matmul::matmul(b, x, other).map_err(|error| error.in_op(OP))?;
    let free = left_free.iter().map(|&axis| &left[axis]).chain(right_free.iter().map(|&axis| &right[axis]));
    let free: Shape = free.cloned().collect();
    reshape(b, matrix, &free)
}

fn positions(op: &str, axes: &[i64], shape: &[Dim]) -> Result<Vec<usize>> {
    axes_of(op, Some(axes), shape)?;
    axes.iter().map(|&axis| axis_of(op, axis, shape)).collect()
}

fn rest(shape: &[Dim], taken: &[usize]) -> Vec<usize> {
    (0..shape.len()).filter(|axis| !taken.contains(axis)).collect()
}

/// Each element of `x` times all of `other`: blocks in the places of the elements.
pub fn kron(b: &mut dyn Builder, x: NodeId, other: NodeId) -> Result<NodeId> {
    let (left, right) = (shape_of(b, x), shape_of(b, other));
    let rank = left.len().max(right.len());
    let longer = |shape: &Shape| -> Shape {
        std::iter::repeat_n(Dim::from(1), rank - shape.len()).chain(shape.iter().cloned()).collect()
    };
    let (left, right) = (longer(&left), longer(&right));
    let (mut rows, mut blocks, mut merged) = (Shape::new(), Shape::new(), Shape::new());
    for (one, two) in left.iter().zip(&right) {
        rows.extend([one.clone(), Dim::from(1)]);
        blocks.extend([Dim::from(1), two.clone()]);
        merged.push(one.clone() * two.clone());
    }
    let (x, other) = (reshape(b, x, &rows)?, reshape(b, other, &blocks)?);
    let products = mul(b, x, other).map_err(|error| error.in_op("kron"))?;
    reshape(b, products, &merged)
}

/// The sum of the diagonal of the last two axes.
pub fn trace(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let diagonal = diagonal(b, x, 0).map_err(|error| error.in_op("trace"))?;
    reduce::sum(b, diagonal, Some(&[-1]), false)
}

/// The last axis on the diagonal, `offset` columns to the right, of square matrices of zeros.
pub fn diag_embed(b: &mut dyn Builder, x: NodeId, offset: i64) -> Result<NodeId> {
    const OP: &str = "diag_embed";
    let shape = shape_of(b, x);
    let Some((length, _)) = shape.split_last() else {
        return Err(Error::new(ErrorKind::Rank, OP, "a scalar is not a diagonal")
            .help("`reshape([1])` makes it a diagonal of one element"));
    };
    let Some(distance) = offset.checked_abs().filter(|&distance| distance < 1 << 31) else {
        return Err(Error::new(ErrorKind::Value, OP, format!("{offset} columns to the right"))
            .help("0 is the main diagonal, 1 the one to its right, -1 the one below"));
    };
    let size = length.clone() + Dim::from(distance);
    // A row or a column of elements, seen through the mask of the diagonal.
    let mut wide = shape.clone();
    wide[shape.len() - 1] = size.clone();
    let zeros: Shape = shape.iter().map(|_| Dim::from(0)).collect();
    let x = super::movement::pad(b, x, &zeros, &wide, 0.0)?;
    let x = unsqueeze(b, x, if offset >= 0 { -1 } else { -2 })?;
    let column = super::creation::arange_dim(b, &size, DType::I64)?;
    let row = reshape(b, column, &[size, Dim::from(1)])?;
    let shift = b.constant(Const::int(DType::I64, offset.into()));
    let place = b.alu(Op::Add, &[row, shift])?;
    let hit = super::arithmetic::eq(b, place, column)?;
    let zero = like(b, x, 0.0);
    b.alu(Op::Where, &[hit, x, zero])
}

/// The diagonal of a matrix; of a vector the matrix that has it as its diagonal.
pub fn diag(b: &mut dyn Builder, x: NodeId, offset: i64) -> Result<NodeId> {
    let shape = shape_of(b, x);
    match shape.len() {
        1 => diag_embed(b, x, offset).map_err(|error| error.in_op("diag")),
        2 => diagonal(b, x, offset).map_err(|error| error.in_op("diag")),
        _ => Err(Error::new(ErrorKind::Rank, "diag", format!("needs a vector or a matrix, found {}", show(&shape)))
            .help("`diagonal` and `diag_embed` take more axes")),
    }
}

/// Vectors as the coordinates of a grid, a tensor for each: rows first (`"ij"`) or columns first (`"xy"`).
pub fn meshgrid(b: &mut dyn Builder, vectors: &[NodeId], indexing: &str) -> Result<Vec<NodeId>> {
    const OP: &str = "meshgrid";
    let swapped = match indexing {
        "ij" => false,
        "xy" => vectors.len() > 1,
        _ => {
            let error = Error::new(ErrorKind::Value, OP, format!("the indexing `{indexing}` is unknown"));
            return Err(error.help("`ij` or `xy`"));
        }
    };
    let mut lengths = Shape::new();
    for &vector in vectors {
        match &shape_of(b, vector)[..] {
            [] => lengths.push(Dim::from(1)),
            [length] => lengths.push(length.clone()),
            shape => {
                let message = format!("needs vectors, found {}", show(shape));
                return Err(Error::new(ErrorKind::Rank, OP, message).help("`flatten(0, -1)` makes one of any tensor"));
            }
        }
    }
    let mut grids = Vec::new();
    for (axis, &vector) in vectors.iter().enumerate() {
        let mut along: Shape = lengths.iter().map(|_| Dim::from(1)).collect();
        along[axis] = lengths[axis].clone();
        let vector = reshape(b, vector, &along)?;
        let grid = super::movement::expand(b, vector, &lengths)?;
        grids.push(if swapped { super::movement::transpose(b, grid, 0, 1)? } else { grid });
    }
    Ok(grids)
}
