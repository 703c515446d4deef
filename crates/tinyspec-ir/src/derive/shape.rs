//! Shapes: one rule per op.

use super::{copied, dims_of, refuse, refuse_with};
use crate::dim::{Atom, broadcast as broadcast_pair, show};
use crate::{Arg, Axes, Device, Dim, ErrorKind, Op, Props, Result, Shape};
use std::sync::Arc;

/// The dim of a signature, and its divisor in `target`, that would make a reshape valid if the division were exact.
fn exact_quotient(elements: &Dim, target: &[Dim]) -> Option<(Dim, Dim)> {
    target.iter().enumerate().find_map(|(axis, dim)| {
        let Atom::Idiv(whole, by) = dim.as_atom()? else { return None };
        let others = target.iter().enumerate().filter(|(other, _)| *other != axis);
        let others = others.fold(Dim::from(1), |product, (_, dim)| product * dim.clone());
        let is_declared = matches!(whole.as_atom(), Some(Atom::Named { .. }));
        let is_exact = elements.clone() * by.clone() == others * whole.clone();
        (is_declared && is_exact).then(|| (whole.clone(), by.clone()))
    })
}

pub(super) fn broadcast(op: Op, sources: &[&Props]) -> Result<Shape> {
    let mut shape = copied(&sources[0].shape);
    for source in &sources[1..] {
        if shape == source.shape {
            continue;
        }
        shape = match broadcast_pair(&shape, &source.shape) {
            Some(shape) => shape,
            None => {
                let shapes: Vec<String> = sources.iter().map(|source| show(&source.shape)).collect();
                return Err(crate::Error::new(
                    ErrorKind::Shape,
                    op.name(),
                    format!("shapes do not broadcast: {}", shapes.join(" and ")),
                )
                .help(broadcast_help(&shape, &source.shape)));
            }
        };
    }
    Ok(shape)
}

/// A help message with the broadcasting rule, and the axis that would make the shapes fit.
fn broadcast_help(a: &Shape, b: &Shape) -> String {
    let rule = "right-aligned, each axis must be equal or 1";
    let (longer, shorter) = if a.len() > b.len() { (a, b) } else { (b, a) };
    if longer.len() != shorter.len() + 1 {
        return rule.to_string();
    }
    let fits = |&axis: &usize| {
        let mut with_axis = shorter.clone();
        with_axis.insert(axis, Dim::from(1));
        broadcast_pair(longer, &with_axis).is_some()
    };
    match (0..longer.len()).rev().find(fits) {
        Some(axis) => {
            format!("{rule}: `.unsqueeze({axis})` makes the smaller one fit, as `keepdim` = `true` does in a reduction")
        }
        None => rule.to_string(),
    }
}

pub(super) fn derive(op: Op, arg: &Arg, sources: &[&Props]) -> Result<Shape> {
    let shape = || &sources[0].shape;
    match (op, arg) {
        (Op::Param | Op::Buffer, _) => {
            let dims = dims_of(op, "the shape", sources[0])?;
            if let Some(dim) = dims.iter().find(|dim| dim.bounds().1 < 0) {
                return refuse_with(ErrorKind::Shape, op, format!("dim {dim} is negative"), super::NEGATIVE);
            }
            Ok(dims.clone())
        }
        (Op::Binary, Arg::Bytes(bytes)) => Ok(Shape::from_iter([Dim::from(bytes.len())])),
        (Op::Permute, Arg::Axes(order)) => permute(order, shape()),
        (Op::Flip, Arg::Flags(flags)) => {
            let rank = shape().len();
            if flags.len() > rank {
                let message = format!("{} flags for the {rank} axes of {}", flags.len(), show(shape()));
                return refuse(ErrorKind::Rank, op, message);
            }
            Ok(shape().clone())
        }
        (Op::Reshape, _) => {
            let target = dims_of(op, "the shape", sources[1])?;
            let product = |dims: &[Dim]| dims.iter().cloned().fold(Dim::from(1), |a, b| a * b);
            if target.iter().any(|dim| dim.bounds().1 < 0) || product(shape()) != product(target) {
                super::check_size(op, target)?;
                let message = format!(
                    "{} has {} elements, {} has {}",
                    show(shape()),
                    product(shape()),
                    show(target),
                    product(target)
                );
                let help = match exact_quotient(&product(shape()), target) {
                    Some((whole, by)) => {
                        let divisor = by.bracketed();
                        format!("`#[function(where({whole} % {divisor} == 0))]` says that {by} divides {whole}")
                    }
                    None => {
                        "the sizes must have the same product; one of them may be -1, which is inferred".to_string()
                    }
                };
                return refuse_with(ErrorKind::Shape, op, message, &help);
            }
            Ok(target.clone())
        }
        (Op::Expand, _) => {
            let target = dims_of(op, "the shape", sources[1])?;
            let lead = target.len().checked_sub(shape().len());
            let fits =
                lead.is_some_and(|lead| shape().iter().zip(&target[lead..]).all(|(from, to)| from.is(1) || from == to));
            if !fits {
                let message = format!("cannot expand {} to {}", show(shape()), show(target));
                let help = "only axes of size 1 expand, counted from the right; `repeat` copies longer ones";
                return refuse_with(ErrorKind::Shape, op, message, help);
            }
            Ok(target.clone())
        }
        (Op::Pad | Op::Shrink, _) => window(op, sources),
        (Op::Index, _) => index(sources),
        (Op::Stack, _) => {
            let Some(first) = sources.first() else { return Ok(Shape::from_iter([Dim::from(0)])) };
            if let Some(other) = sources.iter().find(|source| source.shape != first.shape) {
                let message = format!("all shapes must match: {} and {}", show(&first.shape), show(&other.shape));
                let help = "`cat` joins along an axis in which they differ; `pad` makes the shorter one longer";
                return refuse_with(ErrorKind::Shape, op, message, help);
            }
            Ok(std::iter::once(Dim::from(sources.len())).chain(first.shape.iter().cloned()).collect())
        }
        (Op::Bitcast, Arg::DType(dtype)) => {
            let (from, to) = (sources[0].dtype.size() as i64, dtype.size() as i64);
            let mut shape = shape().clone();
            if from == to {
                return Ok(shape);
            }
            match shape.last_mut() {
                Some(last) if to > 0 => {
                    let bytes = last.clone() * Dim::from(from);
                    if !bytes.modulo(&Dim::from(to)).is(0) {
                        let message = format!("{bytes} bytes in the last axis do not divide into {dtype}");
                        let help = "a bitcast keeps the bytes; `cast` converts each element";
                        return refuse_with(ErrorKind::Shape, op, message, help);
                    }
                    *last = bytes.idiv(&Dim::from(to));
                    Ok(shape)
                }
                _ => {
                    let message = format!("a scalar {} does not fit {dtype}", sources[0].dtype);
                    refuse_with(ErrorKind::Shape, op, message, "a bitcast keeps the bytes; `cast` converts the number")
                }
            }
        }
        (Op::Replicated, Arg::Number(axis)) => {
            let mut shape = shape().clone();
            // Within a graph a Param on a tuple counts as sharded along axis 0, whatever the tensor's own axis.
            let is_shared = sources[0].axis.is_some() || matches!(sources[0].device, Some(Device::Many(_)));
            if !is_shared || *axis as usize >= shape.len() {
                return refuse(ErrorKind::Axis, op, format!("the value is not sharded on axis {axis}"));
            }
            shape.remove(*axis as usize);
            Ok(shape)
        }
        (Op::Reduce, Arg::Reduce { axes, .. }) => {
            if sources.len() > 1 && !axes.is_empty() {
                return refuse(ErrorKind::Arity, op, "takes axes or Ranges, never both");
            }
            let mut shape = shape().clone();
            for &axis in axes {
                match shape.get_mut(axis as usize) {
                    Some(dim) => *dim = Dim::from(1),
                    None => return refuse(ErrorKind::Axis, op, format!("axis {axis} of {}", show(&sources[0].shape))),
                }
            }
            Ok(shape)
        }
        _ => Ok(Shape::new()),
    }
}

fn permute(order: &Axes, shape: &Shape) -> Result<Shape> {
    let mut seen = vec![false; shape.len()];
    let valid = order.len() == shape.len()
        && order.iter().all(|&axis| seen.get_mut(axis as usize).is_some_and(|seen| !std::mem::replace(seen, true)));
    if !valid {
        let message = format!("{order:?} is not an order of the axes of {}", show(shape));
        return refuse_with(ErrorKind::Axis, Op::Permute, message, "name each axis once; `transpose(a, b)` swaps two");
    }
    Ok(order.iter().map(|&axis| shape[axis as usize].clone()).collect())
}

/// Pad and Shrink: `(T, offset, shape)`.
fn window(op: Op, sources: &[&Props]) -> Result<Shape> {
    let inner = &sources[0].shape;
    let (offset, target) = (dims_of_any(op, sources[1])?, dims_of(op, "the shape", sources[2])?);
    for (what, dims) in [("", Some(target)), ("the offset ", offset)] {
        if let Some(dims) = dims.filter(|dims| dims.len() != inner.len()) {
            let message = format!("{} and {what}{} differ in rank", show(inner), show(dims));
            return refuse_with(ErrorKind::Rank, op, message, "an offset and a size for each axis");
        }
    }
    let Some(offset) = offset else { return Ok(target.clone()) };
    for ((from, to), offset) in inner.iter().zip(target).zip(offset) {
        let (small, large) = if op == Op::Pad { (from, to) } else { (to, from) };
        let room = large.clone() - small.clone() - offset.clone();
        if offset.bounds().1 < 0 || room.bounds().1 < 0 || small.bounds().1 < 0 {
            let message = format!(
                "offset {offset} and length {small} do not fit into {large}: {} to {}",
                show(inner),
                show(target)
            );
            let help = match op {
                _ if offset.bounds().1 < 0 => "an offset counts from the start of the axis and is not negative",
                Op::Pad => "the shape is that of the whole result: offset + length must be at most its size",
                _ => "offset + length must be at most the size of the axis",
            };
            return refuse_with(ErrorKind::Shape, op, message, help);
        }
    }
    Ok(target.clone())
}

/// An offset may depend on Ranges: then its value is unknown here.
fn dims_of_any(op: Op, source: &Props) -> Result<Option<&Shape>> {
    // In generated code an offset is a machine integer.
    if !source.dtype.is_int() {
        return refuse(ErrorKind::DType, op, format!("offsets must be integers, found {}", source.dtype));
    }
    Ok(source.value.as_ref())
}

/// `(T, i0, i1, …)`: each index replaces one dim from the left by its own shape.
fn index(sources: &[&Props]) -> Result<Shape> {
    let inner = &sources[0].shape;
    let count = sources.len() - 1;
    if count > inner.len() {
        let message = format!("{count} indices into {}", show(inner));
        return refuse_with(ErrorKind::Rank, Op::Index, message, "an index for each axis at most");
    }
    if let Some(source) = sources[1..].iter().find(|source| !source.dtype.is_int()) {
        return refuse(ErrorKind::DType, Op::Index, format!("an index must be an integer, found {}", source.dtype));
    }
    let indexed = sources[1..].iter().flat_map(|source| source.shape.iter().cloned());
    Ok(indexed.chain(inner[count..].iter().cloned()).collect())
}

pub(super) fn element<'a>(arg: &Arg, sources: &[&'a Props]) -> Result<&'a Props> {
    let elements = sources[0].elements.as_deref().unwrap_or_default();
    let Arg::Number(number) = arg else { return refuse(ErrorKind::Arity, Op::GetTuple, "needs an element number") };
    match elements.get(*number as usize) {
        Some(element) => Ok(element),
        None => refuse(ErrorKind::Value, Op::GetTuple, format!("element {number} of a tuple of {}", elements.len())),
    }
}

/// Properties of a Function's results: those of its body with named dims replaced by the arguments' dims.
pub(super) fn function_elements(sources: &[&Props]) -> Result<Arc<[Props]>> {
    let Some(elements) = &sources[0].elements else {
        return refuse(ErrorKind::Arity, Op::Function, "the body must be a Tuple");
    };
    let arguments = &sources[1..];
    // A named dim is a Param of dtype index: its argument is an index scalar.
    let named = |slot: u32| arguments.get(slot as usize)?.value.as_ref()?.first().cloned();
    let device = arguments.iter().find_map(|argument| argument.device.clone());
    Ok(elements
        .iter()
        .map(|element| Props {
            shape: element.shape.iter().map(|dim| dim.substitute(&named)).collect(),
            value: element.value.as_ref().map(|value| value.iter().map(|dim| dim.substitute(&named)).collect()),
            device: element.device.clone().or_else(|| device.clone()),
            interval: crate::Interval::of(element.dtype),
            ..element.clone()
        })
        .collect())
}
