//! Tensors with other values where a mask is true: one for all, one for each place, or one after the other.

use super::movement::{expand, reshape};
use super::slice::as_element;
use super::{cast, dtype_of, shape_of};
use crate::dim::show;
use crate::{Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

fn require_mask(b: &dyn Builder, op: &str, mask: NodeId) -> Result<()> {
    match dtype_of(b, mask) {
        DType::Bool => Ok(()),
        found => Err(Error::new(ErrorKind::DType, op, format!("a mask must be bool, found {found}"))
            .help("comparisons give one, as `x.gt(0.0)` and `x.ne(0.0)`")),
    }
}

/// `value` where `mask` is true, `x` elsewhere.
pub fn masked_fill(b: &mut dyn Builder, x: NodeId, mask: NodeId, value: NodeId) -> Result<NodeId> {
    require_mask(b, "masked_fill", mask)?;
    let dtype = dtype_of(b, x);
    let value = as_element(b, "masked_fill", value, dtype)?;
    b.alu(Op::Where, &[mask, value, x]).map_err(|error| error.in_op("masked_fill"))
}

/// `x` with the elements of `source`, one after the other, where `mask` is true.
pub fn masked_scatter(b: &mut dyn Builder, x: NodeId, mask: NodeId, source: NodeId) -> Result<NodeId> {
    const OP: &str = "masked_scatter";
    require_mask(b, OP, mask)?;
    let shape = shape_of(b, x);
    let mask = expand(b, mask, &shape).map_err(|error| error.in_op(OP))?;
    let dtype = dtype_of(b, x);
    let source = cast(b, source, dtype)?;
    let source = super::movement::flatten(b, source, 0, -1)?;
    let taken = one_after_the_other(b, source, 0, mask)?;
    b.alu(Op::Where, &[mask, taken, x])
}

/// The shape without the ones in front, which broadcast to nothing.
fn stripped(shape: &[Dim], rank: usize) -> &[Dim] {
    let more = shape.len().saturating_sub(rank);
    &shape[shape.iter().take(more).take_while(|dim| dim.is(1)).count()..]
}

/// How many values [`set_mask`] takes one after the other, if `value` has an axis for what is true.
pub(super) fn in_order(b: &dyn Builder, x: NodeId, axis: usize, mask: NodeId, value: NodeId) -> Option<Dim> {
    let (shape, mask_shape, value_shape) = (shape_of(b, x), shape_of(b, mask), shape_of(b, value));
    let rest = shape.len().checked_sub(axis + mask_shape.len())?;
    let value = stripped(&value_shape, axis + 1 + rest);
    // A value for each place, true or not.
    let is_whole = value == &shape[..]
        || mask_shape.len() == 1 && value.len() > rest && value[value.len() - rest - 1] == mask_shape[0];
    let count =
        value.len().checked_sub(rest + 1).filter(|&lead| lead <= axis && !is_whole).map(|lead| value[lead].clone());
    count.filter(|count| !count.is(1))
}

/// `x` with `value` where `mask`, which lies over the axes from `axis` on, is true. What is true is one axis of the part
/// that is written: `value` broadcasts to it, or has its elements there one after the other; or it has one for each place of
/// `x`, true or not.
pub fn set_mask(b: &mut dyn Builder, op: &str, x: NodeId, axis: usize, mask: NodeId, value: NodeId) -> Result<NodeId> {
    let (shape, mask_shape) = (shape_of(b, x), shape_of(b, mask));
    let covered = axis..axis + mask_shape.len();
    if shape.get(covered.clone()).is_none_or(|dims| *dims != mask_shape[..]) {
        let message = format!("a mask of {} from axis {axis} of {} on", show(&mask_shape), show(&shape));
        return Err(Error::new(ErrorKind::Shape, op, message));
    }
    let rest = shape.len() - covered.end;
    let count = in_order(b, x, axis, mask, value);
    let part: Shape = shape[..axis]
        .iter()
        .chain(&count)
        .chain(count.is_none().then_some(&Dim::from(1)))
        .chain(&shape[covered.end..])
        .cloned()
        .collect();
    let dtype = dtype_of(b, x);
    let value = as_element(b, op, value, dtype)?;
    let value_shape = stripped(&shape_of(b, value), part.len()).iter().cloned().collect::<Shape>();
    let fits = |whole: &Shape| crate::dim::broadcast(whole, &value_shape).is_some_and(|both| both == *whole);
    let places: Shape = shape[..axis]
        .iter()
        .cloned()
        .chain(mask_shape.iter().map(|_| Dim::from(1)))
        .chain(shape[covered.end..].iter().cloned())
        .collect();
    let value = reshape(b, value, &value_shape)?;
    let value = match &count {
        Some(_) if fits(&part) => {
            let value = expand(b, value, &part)?;
            one_after_the_other(b, value, axis, mask)?
        }
        None if fits(&part) => {
            let value = expand(b, value, &part)?;
            reshape(b, value, &places)?
        }
        _ if fits(&shape) => value,
        _ => {
            let message = format!(
                "values of {} where a mask of {} picks from {}",
                show(&value_shape),
                show(&mask_shape),
                show(&shape)
            );
            let rest = if rest == 0 { String::new() } else { format!(", each of {}", show(&shape[covered.end..])) };
            return Err(Error::new(ErrorKind::Shape, op, message).help(format!(
                "one value, as many as the mask has places{rest}, or one for each place of the tensor"
            )));
        }
    };
    let along: Shape = mask_shape.iter().cloned().chain(std::iter::repeat_n(Dim::from(1), rest)).collect();
    let mask = reshape(b, mask, &along)?;
    masked_fill(b, x, mask, value).map_err(|error| error.in_op(op))
}

/// Where `mask` is true, the next one along `axis` of `values`; its shape stands in the place of that axis.
fn one_after_the_other(b: &mut dyn Builder, values: NodeId, axis: usize, mask: NodeId) -> Result<NodeId> {
    let mask_shape = shape_of(b, mask);
    let number = cast(b, mask, DType::I32)?;
    let number = super::movement::flatten(b, number, 0, -1)?;
    let number = super::scan::cumsum(b, number, 0)?;
    let minus = b.constant(Const::int(DType::I32, -1));
    let number = b.alu(Op::Add, &[number, minus])?;
    let rows = super::movement::transpose(b, values, 0, axis as i64)?;
    let taken = b.alu(Op::Index, &[rows, number])?;
    let taken = super::movement::transpose(b, taken, 0, axis as i64)?;
    let shape = shape_of(b, taken);
    let split: Shape = shape[..axis].iter().chain(&mask_shape).chain(&shape[axis + 1..]).cloned().collect();
    reshape(b, taken, &split)
}
