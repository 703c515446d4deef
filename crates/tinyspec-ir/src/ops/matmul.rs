//! Products of matrices, as a broadcast Mul and a Reduce-Add (the spec's gemm).

use super::movement::{reshape, transpose};
use super::{cast, promote, shape_of, with_bias};
use crate::dim::show;
use crate::{Arg, Axes, Builder, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// Matrix product with numpy's rules: vectors are rows or columns, leading axes broadcast.
pub fn matmul(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    affine(b, "matmul", x, y, None)
}

/// `x @ y`, plus a bias if there is one: rounded once.
pub(super) fn affine(b: &mut dyn Builder, op: &str, x: NodeId, y: NodeId, bias: Option<NodeId>) -> Result<NodeId> {
    let (sum, dtype) = product(b, x, y).map_err(|error| error.in_op(op))?;
    with_bias(b, op, sum, dtype, bias)
}

/// A product of matrices in the accumulator's dtype, and the dtype of the operands.
fn product(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<(NodeId, DType)> {
    let (x, y) = promote(b, "matmul", x, y)?;
    let (x_shape, y_shape) = (shape_of(b, x), shape_of(b, y));
    let scalar = |shape: &Shape| {
        Error::new(ErrorKind::Rank, "matmul", format!("needs at least one axis, found {}", show(shape)))
            .help("`*` multiplies by a number")
    };
    let x_inner = x_shape.last().ok_or_else(|| scalar(&x_shape))?.clone();
    let y_inner_axis = y_shape.len().saturating_sub(2);
    let y_inner = y_shape.get(y_inner_axis).ok_or_else(|| scalar(&y_shape))?.clone();
    if x_inner != y_inner {
        let help = match x_shape.len().min(y_shape.len()) {
            1 => "a vector has as many elements as the axis it is multiplied along; check the order of the operands",
            _ => "transpose one side with `.transpose(-1, -2)`, or check the order of the operands",
        };
        return Err(Error::new(
            ErrorKind::Shape,
            "matmul",
            format!("inner dimensions differ: {x_inner} and {y_inner} (of {} and {})", show(&x_shape), show(&y_shape)),
        )
        .help(help));
    }
    // (…, M, 1, K) * (…, 1, N, K): the reduced axis last.
    let mut left = x_shape.clone();
    let y_is_vector = y_shape.len() == 1;
    let x_is_vector = x_shape.len() == 1;
    if !y_is_vector && !x_is_vector {
        left.insert(x_shape.len() - 1, Dim::from(1));
    }
    let x = reshape(b, x, &left)?;
    let y = if y_is_vector {
        y
    } else {
        let turned = transpose(b, y, -1, -2)?;
        let mut right = shape_of(b, turned);
        if !x_is_vector {
            right.insert(right.len() - 2, Dim::from(1));
        }
        reshape(b, turned, &right)?
    };
    let dtype = b.props(x).dtype;
    // Narrow dtypes are also multiplied in the accumulator's dtype.
    let (x, y) = (cast(b, x, dtype.accumulator())?, cast(b, y, dtype.accumulator())?);
    let products = b.alu(Op::Mul, &[x, y]).map_err(|error| match error.kind() {
        ErrorKind::Shape => {
            let message = format!("leading axes do not broadcast: {} and {}", show(&x_shape), show(&y_shape));
            Error::new(ErrorKind::Shape, "matmul", message)
        }
        _ => error.in_op("matmul"),
    })?;
    let last = shape_of(b, products).len() - 1;
    let sum = b.add(Op::Reduce, &[products], Arg::Reduce { op: Op::Add, axes: Axes::from_iter([last as u32]) })?;
    let mut shape = shape_of(b, sum);
    shape.pop();
    Ok((reshape(b, sum, &shape)?, dtype))
}

/// Inner product along the last axes: [`matmul`] under its other name.
pub fn dot(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    matmul(b, x, y).map_err(|error| error.in_op("dot"))
}

/// `x @ w + bias`.
pub fn linear(b: &mut dyn Builder, x: NodeId, w: NodeId, bias: NodeId) -> Result<NodeId> {
    affine(b, "linear", x, w, Some(bias))
}
