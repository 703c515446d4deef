//! `eval_op`: what every elementwise op computes. The constant folder and all interpreters call it; every backend is
//! tested against it (SEMANTICS, "Numbers": every op is total).
//!
//! There is one definition, over columns of lanes; a scalar is a column of one.

mod boolean;
mod convert;
mod float;
mod integer;
mod threefry;
mod words;

pub use convert::{from_storage, to_storage};
pub use float::{float_mod, maximum};
pub use threefry::threefry;

use crate::{Const, DType, Error, ErrorKind, Op, Result};
use smallvec::SmallVec;

/// The identity element of `op`: the initial value of a Reduce, and the result of an empty one.
///
/// ```
/// use tinyspec_ir::{Const, DType, Op, eval::identity};
/// assert_eq!(identity(Op::Max, DType::I8), Const::int(DType::I8, -128));
/// ```
pub fn identity(op: Op, dtype: DType) -> Const {
    match (op, dtype.int_range()) {
        (Op::Mul, _) => Const::int(dtype, 1),
        (Op::Max, Some((least, _))) => Const::int(dtype, least),
        (Op::Max, None) => Const::float(dtype, f64::NEG_INFINITY),
        _ => Const::int(dtype, 0),
    }
}

/// The value of `op` on scalars. `dtype` is the node's own: the target of a Cast or Bitcast.
///
/// ```
/// use tinyspec_ir::{Const, DType, Op, eval::eval_op};
/// let (seven, zero) = (Const::int(DType::I32, -7), Const::int(DType::I32, 0));
/// let three = Const::int(DType::I32, 3);
/// assert_eq!(eval_op(Op::Idiv, DType::I32, &[seven, three])?, Const::int(DType::I32, -3));
/// assert_eq!(eval_op(Op::Idiv, DType::I32, &[seven, zero])?, zero);
/// # Ok::<(), tinyspec_ir::Error>(())
/// ```
///
/// # Errors
/// When `op` is not elementwise, or its operands are too few or void.
pub fn eval_op(op: Op, dtype: DType, operands: &[Const]) -> Result<Const> {
    let sources: SmallVec<[&[u64]; 3]> = operands.iter().map(|value| std::slice::from_ref(&value.bits)).collect();
    let operand = operands.first().map_or(DType::Void, |value| value.dtype);
    let dtype = match op {
        Op::CmpLt | Op::CmpNe => DType::Bool,
        Op::Where => operands.get(1).map_or(dtype, |value| value.dtype),
        Op::Wmma => operands.get(2).map_or(dtype, |value| value.dtype),
        Op::Cast | Op::Bitcast => dtype,
        _ => operand,
    };
    let mut bits = 0;
    eval_lanes(op, operand, dtype, &sources, std::slice::from_mut(&mut bits))?;
    Ok(Const { dtype, bits })
}

/// The value of `op` lane by lane. A lane holds the bits of a [`Const`]; `operand` is the dtype of the first source,
/// `dtype` that of the result.
///
/// ```
/// use tinyspec_ir::{DType, Op, eval::eval_lanes};
/// let mut sum = [0; 2];
/// eval_lanes(Op::Add, DType::U8, DType::U8, &[&[250, 1], &[10, 2]], &mut sum)?;
/// assert_eq!(sum, [4, 3]);
/// # Ok::<(), tinyspec_ir::Error>(())
/// ```
///
/// # Errors
/// When `op` is not elementwise or not defined for the dtypes, or the number of lanes of a source differs from that of
/// the result.
pub fn eval_lanes(op: Op, operand: DType, dtype: DType, sources: &[&[u64]], result: &mut [u64]) -> Result<()> {
    let fits = sources.iter().all(|source| source.len() == result.len());
    let done = fits
        && match op {
            Op::Cast => convert::cast(operand, dtype, sources, result),
            Op::Bitcast => convert::bitcast(operand, dtype, sources, result),
            Op::Wmma => words::lanes(operand, dtype, sources, result),
            Op::Custom => sources.first().is_some_and(|value| {
                result.copy_from_slice(value);
                true
            }),
            Op::Where => ternary(sources, result, |condition, a, b| if condition != 0 { a } else { b }),
            _ => match operand {
                DType::Void => false,
                DType::Bool => boolean::lanes(op, sources, result),
                _ if operand.is_float() => float::lanes(op, operand, sources, result),
                _ => integer::lanes(op, operand, sources, result),
            },
        };
    if done {
        return Ok(());
    }
    let lanes: Vec<usize> = sources.iter().map(|source| source.len()).collect();
    let message = format!("has no value for {} sources of {operand} and {lanes:?} lanes as {dtype}", sources.len());
    Err(Error::new(ErrorKind::Unsupported, op.name(), message))
}

/// Each of these returns whether the number of sources fits.
fn unary(sources: &[&[u64]], result: &mut [u64], f: impl Fn(u64) -> u64) -> bool {
    let [a] = sources else { return false };
    for (result, &a) in result.iter_mut().zip(*a) {
        *result = f(a);
    }
    true
}

fn binary(sources: &[&[u64]], result: &mut [u64], f: impl Fn(u64, u64) -> u64) -> bool {
    let [a, b] = sources else { return false };
    for ((result, &a), &b) in result.iter_mut().zip(*a).zip(*b) {
        *result = f(a, b);
    }
    true
}

fn ternary(sources: &[&[u64]], result: &mut [u64], f: impl Fn(u64, u64, u64) -> u64) -> bool {
    let [a, b, c] = sources else { return false };
    for (((result, &a), &b), &c) in result.iter_mut().zip(*a).zip(*b).zip(*c) {
        *result = f(a, b, c);
    }
    true
}
