//! Composed ops: every tensor method, written once over [`Builder`], a family a file ("Common Ops as Compositions").
//!
//! The run-time `Tensor`, the macros and the corpus runner all reach them through one method table, [`table`].

pub mod activation;
pub mod adaptive;
pub mod argmax;
pub mod arithmetic;
pub mod attention;
pub mod bessel;
pub mod bits;
pub mod conv;
mod cost;
mod counting;
pub mod creation;
pub mod ctc;
pub mod distance;
pub mod divisors;
pub mod draw;
pub mod einsum;
pub mod elementwise;
pub mod events;
mod function;
pub mod hyperbolic;
pub mod index;
pub mod inverse;
pub mod linalg;
pub mod literal;
pub mod logarithm;
pub mod logical;
mod loops;
pub mod loss;
pub mod margins;
pub mod masked;
pub mod matmul;
pub mod movement;
pub mod norm;
pub mod options;
pub mod pick;
pub mod pool;
pub mod products;
pub mod random;
pub mod recurrence;
pub mod recurrent;
pub mod reduce;
pub mod regression;
pub mod relation;
pub mod resize;
pub mod sample;
pub mod scan;
pub mod scatter;
mod selection;
pub mod shapes;
pub mod shuffle;
pub mod slice;
pub(crate) mod slope;
pub mod sort;
pub mod special;
pub mod statistics;
pub mod table;
pub mod threshold;
pub mod trigonometry;
pub mod window;
pub mod written;

pub use literal::{Literal, LiteralKind};
pub use options::default;
pub use table::{METHODS, Method, MethodArg, ParamKind, call, nearest, nearest_of};

use crate::dim::show;
use crate::signature::NamedDim;
use crate::{Arg, Axes, Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};
use std::ops::Range;

/// The dtype of a tensor of floats when nothing else is said.
pub const DEFAULT_FLOAT: DType = DType::F32;

/// Turns `axis` (negative counts from the end) into a position below `rank`.
pub(crate) fn axis_of(op: &str, axis: i64, shape: &[Dim]) -> Result<usize> {
    let rank = shape.len() as i64;
    let position = if axis < 0 { axis + rank } else { axis };
    if (0..rank).contains(&position) {
        return Ok(position as usize);
    }
    let error = Error::new(ErrorKind::Axis, op, format!("axis {axis} of {} does not exist", show(shape)));
    Err(match rank {
        0 => error.help("a scalar has no axes"),
        _ => error.help(format!("axes go from {} to {}", -rank, rank - 1)),
    })
}

/// As [`axis_of`], for an axis that is inserted into `shape`: it may come last.
pub(crate) fn new_axis_of(op: &str, axis: i64, shape: &[Dim]) -> Result<usize> {
    let places = shape.len() as i64 + 1;
    let position = if axis < 0 { axis + places } else { axis };
    if (0..places).contains(&position) {
        return Ok(position as usize);
    }
    let error = Error::new(ErrorKind::Axis, op, format!("{} cannot have a new axis {axis}", show(shape)));
    Err(error.help(format!("new axes go from {} to {}", -places, places - 1)))
}

/// Refuses a number that is outside of a range, and says where the range ends on that side.
pub(crate) fn within(op: &str, number: i64, range: Range<i64>, message: impl FnOnce() -> String) -> Result<()> {
    let help = match number {
        _ if range.contains(&number) => return Ok(()),
        _ if number < range.start => format!("it is at least {}", range.start),
        _ => format!("it is at most {}", range.end - 1),
    };
    Err(Error::new(ErrorKind::Value, op, message()).help(help))
}

/// Along axis 0 or -1 a scalar is a row of one element: what `make` makes of that, as a scalar. `None` for other tensors and axes.
pub(crate) fn in_row(
    b: &mut dyn Builder,
    x: NodeId,
    axis: i64,
    make: impl FnOnce(&mut dyn Builder, NodeId) -> Result<NodeId>,
) -> Option<Result<NodeId>> {
    let is_row = b.props(x).shape.is_empty() && matches!(axis, 0 | -1);
    is_row.then(|| {
        let row = movement::reshape(b, x, &[Dim::from(1)])?;
        let made = make(b, row)?;
        movement::reshape(b, made, &[])
    })
}

/// The length of an axis, for ops that are made of as many parts or numbers: a dim is refused by its name.
pub(crate) fn fixed_length(op: &str, shape: &[Dim], axis: usize) -> Result<i64> {
    let length = &shape[axis];
    length.as_const().ok_or_else(|| {
        let (least, most) = length.bounds();
        let range = match most < NamedDim::MAX {
            true => format!("which goes from {least} to {most}"),
            false => "which a call decides".to_string(),
        };
        let message =
            format!("axis {axis} of {} has the length {length}, {range}: this op needs a number", show(shape));
        Error::new(ErrorKind::Unsupported, op, message)
            .help(format!("write a number for `{length}` in the signature, or do this outside of the function"))
    })
}

/// Distinct axes, ascending; no list means all of them. A scalar has none, which its first and its last may name.
pub(crate) fn axes_of(op: &str, axes: Option<&[i64]>, shape: &[Dim]) -> Result<Axes> {
    let Some(axes) = axes else { return Ok((0..shape.len() as u32).collect()) };
    let mut found = Axes::new();
    for &axis in axes.iter().filter(|&&axis| !(shape.is_empty() && matches!(axis, 0 | -1))) {
        found.push(axis_of(op, axis, shape)? as u32);
    }
    found.sort_unstable();
    if found.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Error::new(ErrorKind::Axis, op, format!("an axis is named twice in {axes:?}"))
            .help("each axis once; negative ones count from the end"));
    }
    Ok(found)
}

/// The shape of a node, by value (the builder is borrowed again right away).
pub(crate) fn shape_of(b: &dyn Builder, x: NodeId) -> Shape {
    b.props(x).shape.clone()
}

pub(crate) fn dtype_of(b: &dyn Builder, x: NodeId) -> DType {
    b.props(x).dtype
}

/// A scalar constant of the dtype of `x`. An infinity stands for the least or greatest value of what has none.
pub(crate) fn like(b: &mut dyn Builder, x: NodeId, value: f64) -> NodeId {
    let value = const_like(b, x, value);
    b.constant(value)
}

/// As [`like`], of a number that the caller passed or that follows from one: calls with other numbers are one program.
pub(crate) fn given(b: &mut dyn Builder, x: NodeId, value: f64) -> NodeId {
    let value = const_like(b, x, value);
    b.number(value)
}

/// As [`given`], for a number that fills elements of the result. An integer dtype must be able to represent it; infinities saturate.
pub(crate) fn given_element(b: &mut dyn Builder, op: &str, x: NodeId, value: f64) -> Result<NodeId> {
    let dtype = dtype_of(b, x);
    if dtype.is_int() && !value.is_infinite() {
        literal::Literal::Float(value).constant(dtype).map_err(|error| error.in_op(op))?;
    }
    Ok(given(b, x, value))
}

fn const_like(b: &dyn Builder, x: NodeId, value: f64) -> Const {
    let dtype = dtype_of(b, x);
    match dtype == DType::Bool && value.is_infinite() {
        true => Const::int(dtype, (value > 0.0).into()),
        false => Const::float(dtype, value),
    }
}

/// `x` as `dtype`; no node where it is that already.
pub fn cast(b: &mut dyn Builder, x: NodeId, dtype: DType) -> Result<NodeId> {
    if dtype == DType::Void {
        return Err(Error::new(ErrorKind::DType, "cast", format!("{} has no value as void", dtype_of(b, x)))
            .help("values have another dtype, such as `DType::F32`"));
    }
    if dtype_of(b, x) == dtype { Ok(x) } else { b.add(Op::Cast, &[x], Arg::DType(dtype)) }
}

/// Integers and bools as the default float; floats as they are.
pub(crate) fn to_float(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    if dtype_of(b, x).is_float() { Ok(x) } else { cast(b, x, DEFAULT_FLOAT) }
}

/// An elementwise function of a float, computed in at least f32 and rounded once.
pub(crate) fn in_wide(
    b: &mut dyn Builder,
    x: NodeId,
    function: impl FnOnce(&mut dyn Builder, NodeId) -> Result<NodeId>,
) -> Result<NodeId> {
    computed_in(b, x, DType::accumulator, function)
}

/// Which elements of an argument lie inside the domain of a function that is infinite at the ends, and which lie at an end.
pub(crate) struct Bounded {
    /// All other elements are replaced by a number inside the domain before the function is applied, so that their slopes are finite.
    pub inside: NodeId,
    at_end: NodeId,
}

impl Bounded {
    /// An element is inside if `lesser < greater`, and on the boundary if they are equal.
    pub fn below(b: &mut dyn Builder, lesser: NodeId, greater: NodeId) -> Result<Bounded> {
        let inside = b.alu(Op::CmpLt, &[lesser, greater])?;
        Ok(Bounded { inside, at_end: arithmetic::eq(b, lesser, greater)? })
    }

    /// The function's value inside; an infinity with the sign of `argument` at an end; nan outside. The last two are products with
    /// the argument, which is not 0 there, so that the slopes are infinite or nan as well.
    pub fn finish(self, b: &mut dyn Builder, value: NodeId, argument: NodeId) -> Result<NodeId> {
        // Inside, the branch that is not taken has a finite slope.
        let (one, infinity, nan) = (like(b, value, 1.0), like(b, value, f64::INFINITY), like(b, value, f64::NAN));
        let factor = b.alu(Op::Where, &[self.at_end, infinity, nan])?;
        let factor = b.alu(Op::Where, &[self.inside, one, factor])?;
        let beyond = arithmetic::mul(b, argument, factor)?;
        b.alu(Op::Where, &[self.inside, value, beyond])
    }
}

/// A function that adds up squares, computed where squares neither overflow nor underflow: in f64 for the dtypes that have the
/// range of f32.
pub(crate) fn with_squares(
    b: &mut dyn Builder,
    x: NodeId,
    function: impl FnOnce(&mut dyn Builder, NodeId) -> Result<NodeId>,
) -> Result<NodeId> {
    let wide = |dtype| if matches!(dtype, DType::F32 | DType::BF16) { DType::F64 } else { dtype.accumulator() };
    computed_in(b, x, wide, function)
}

/// A function of a float, computed in the dtype that `wide` gives for the float's own and rounded once.
fn computed_in(
    b: &mut dyn Builder,
    x: NodeId,
    wide: impl FnOnce(DType) -> DType,
    function: impl FnOnce(&mut dyn Builder, NodeId) -> Result<NodeId>,
) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let dtype = dtype_of(b, x);
    let wide = cast(b, x, wide(dtype))?;
    let value = function(b, wide)?;
    cast(b, value, dtype)
}

/// A function of several numbers, computed in at least f32 and rounded once to the float that they have in common.
pub(crate) fn in_wide_of<const N: usize>(
    b: &mut dyn Builder,
    op: &str,
    operands: [NodeId; N],
    function: impl FnOnce(&mut dyn Builder, [NodeId; N]) -> Result<NodeId>,
) -> Result<NodeId> {
    let dtype = match common(b, op, &operands)? {
        dtype if dtype.is_float() => dtype,
        _ => DEFAULT_FLOAT,
    };
    let mut wide = operands;
    for operand in &mut wide {
        *operand = cast(b, *operand, dtype.accumulator())?;
    }
    let value = function(b, wide)?;
    cast(b, value, dtype)
}

/// A sum of numbers of `dtype`, which is in their accumulator's dtype, plus a bias: floats are rounded once, behind the bias, and
/// integers stay wide.
pub(crate) fn with_bias(
    b: &mut dyn Builder,
    op: &str,
    sum: NodeId,
    dtype: DType,
    bias: Option<NodeId>,
) -> Result<NodeId> {
    match bias {
        None if dtype.is_float() => cast(b, sum, dtype),
        None => Ok(sum),
        Some(bias) if dtype.is_float() => {
            let dtype = promoted(op, dtype, dtype_of(b, bias))?;
            let (sum, bias) = (cast(b, sum, dtype.accumulator())?, cast(b, bias, dtype.accumulator())?);
            let sum = arithmetic::add(b, sum, bias).map_err(|error| error.in_op(op))?;
            cast(b, sum, dtype)
        }
        Some(bias) => arithmetic::add(b, sum, bias).map_err(|error| error.in_op(op)),
    }
}

fn promoted(op: &str, from: DType, to: DType) -> Result<DType> {
    from.promote(to).ok_or_else(|| {
        Error::new(ErrorKind::DType, op, format!("{from} and {to} have no common dtype"))
            .help("cast one side with `.cast(…)`")
    })
}

/// The dtype that several operands have in common.
pub(crate) fn common(b: &dyn Builder, op: &str, operands: &[NodeId]) -> Result<DType> {
    let mut dtypes = operands.iter().map(|&operand| dtype_of(b, operand));
    let first = dtypes.next().unwrap_or(DEFAULT_FLOAT);
    dtypes.try_fold(first, |from, to| promoted(op, from, to))
}

/// Both operands in their common dtype.
pub(crate) fn promote(b: &mut dyn Builder, op: &str, x: NodeId, y: NodeId) -> Result<(NodeId, NodeId)> {
    let dtype = common(b, op, &[x, y])?;
    Ok((cast(b, x, dtype)?, cast(b, y, dtype)?))
}
