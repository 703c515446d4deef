//! Order statistics, counts, and reductions that leave nan out.

use super::arithmetic::{add, div, eq, logical_not, mul, sub};
use super::elementwise::isnan;
use super::movement::narrow;
use super::{
    axis_of, cast, dtype_of, given, in_wide, in_wide_of, index, like, reduce, selection, shape_of, sort, to_float,
};
use crate::dim::show;
use crate::{Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// How many elements are not 0 (i32).
pub fn count_nonzero(b: &mut dyn Builder, x: NodeId, axes: Option<&[i64]>, keepdim: bool) -> Result<NodeId> {
    let is_zero = logical_not(b, x)?;
    let nonzero = logical_not(b, is_zero)?;
    reduce::sum(b, nonzero, axes, keepdim).map_err(|error| error.in_op("count_nonzero"))
}

/// `x` with 0 for nan, and where the numbers are.
fn numbers(b: &mut dyn Builder, x: NodeId) -> Result<(NodeId, NodeId)> {
    let x = to_float(b, x)?;
    let (missing, zero) = (isnan(b, x)?, like(b, x, 0.0));
    let kept = b.alu(Op::Where, &[missing, zero, x])?;
    Ok((kept, logical_not(b, missing)?))
}

/// Sum without nan; of whole numbers, which have none, the sum itself.
pub fn nansum(b: &mut dyn Builder, x: NodeId, axes: Option<&[i64]>, keepdim: bool) -> Result<NodeId> {
    let kept = if dtype_of(b, x).is_float() { numbers(b, x)?.0 } else { x };
    reduce::sum(b, kept, axes, keepdim).map_err(|error| error.in_op("nansum"))
}

/// Mean without nan; nan of nothing else.
pub fn nanmean(b: &mut dyn Builder, x: NodeId, axes: Option<&[i64]>, keepdim: bool) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let (kept, counted) = numbers(b, x)?;
        let total = reduce::sum(b, kept, axes, keepdim).map_err(|error| error.in_op("nanmean"))?;
        let count = reduce::sum(b, counted, axes, keepdim)?;
        div(b, total, count)
    })
}

/// The elements at these ranks, counted from 0, along an axis.
fn nth<const N: usize>(
    b: &mut dyn Builder,
    op: &str,
    x: NodeId,
    axis: i64,
    numbers: impl Fn(&Dim) -> [Dim; N],
) -> Result<[NodeId; N]> {
    let shape = shape_of(b, x);
    let axis_here = axis_of(op, axis, &shape)?;
    let length = &shape[axis_here];
    let mut elements = [x; N];
    if !selection::is_cheaper(b, x, axis_here, N as i64) {
        let (sorted, length) = ordered(b, op, x, axis)?;
        for (element, number) in elements.iter_mut().zip(numbers(&length)) {
            *element = narrow(b, sorted, axis, number, 1)?;
        }
        return Ok(elements);
    }
    let mut rows = shape.clone();
    rows[axis_here] = Dim::from(1);
    for (element, number) in elements.iter_mut().zip(numbers(length)) {
        let number = super::creation::size(b, &number, DType::I32)?;
        let number = super::movement::expand(b, number, &rows)?;
        *element = selection::nth_element(b, x, axis, number).map_err(|error| error.in_op(op))?;
    }
    Ok(elements)
}

/// The elements of an axis in order, and the axis' length, which is not 0.
fn ordered(b: &mut dyn Builder, op: &str, x: NodeId, axis: i64) -> Result<(NodeId, Dim)> {
    let shape = shape_of(b, x);
    let length = &shape[axis_of(op, axis, &shape)?];
    if length.is(0) {
        return Err(Error::new(ErrorKind::Shape, op, format!("axis {axis} of {} is empty", show(&shape)))
            .help("among no elements there is none: leave empty ones out first"));
    }
    let sorted = sort::sort(b, x, axis, false).map_err(|error| error.in_op(op))?;
    Ok((sorted[0], length.clone()))
}

fn drop_axis(b: &mut dyn Builder, x: NodeId, axis: i64, keepdim: bool) -> Result<NodeId> {
    if keepdim { Ok(x) } else { super::movement::squeeze(b, x, Some(&[axis])) }
}

/// nan where an element of the axis is.
fn unless_nan(b: &mut dyn Builder, x: NodeId, axis: i64, value: NodeId) -> Result<NodeId> {
    if !dtype_of(b, x).is_float() {
        return Ok(value);
    }
    let missing = isnan(b, x)?;
    let missing = reduce::any(b, missing, Some(&[axis]), true)?;
    let nan = like(b, value, f64::NAN);
    b.alu(Op::Where, &[missing, nan, value])
}

/// The middle element of an axis in order, the lower one of two; nan if there is one.
pub fn median(b: &mut dyn Builder, x: NodeId, axis: i64, keepdim: bool) -> Result<NodeId> {
    let [middle] = nth(b, "median", x, axis, |length| [(length - 1) / 2])?;
    let middle = unless_nan(b, x, axis, middle)?;
    drop_axis(b, middle, axis, keepdim)
}

/// The `k`-th least element of an axis, from 1 on; nan is the greatest.
pub fn kthvalue(b: &mut dyn Builder, x: NodeId, k: i64, axis: i64, keepdim: bool) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let length = &shape[axis_of("kthvalue", axis, &shape)?];
    if k < 1 || (length - k).bounds().1 < 0 {
        return Err(Error::new(ErrorKind::Value, "kthvalue", format!("number {k} of {length} elements"))
            .help("they are counted from 1"));
    }
    let [element] = nth(b, "kthvalue", x, axis, |_| [Dim::from(k - 1)])?;
    drop_axis(b, element, axis, keepdim)
}

/// The value that the share `q` of an axis lies below, interpolated between elements; nan if there is one.
pub fn quantile(b: &mut dyn Builder, x: NodeId, q: f64, axis: i64, keepdim: bool) -> Result<NodeId> {
    if !(0.0..=1.0).contains(&q) {
        return Err(Error::new(ErrorKind::Value, "quantile", format!("{q} is not between 0 and 1"))
            .help("the median is 0.5, and 90 percent are 0.9"));
    }
    let x = to_float(b, x)?;
    let shape = shape_of(b, x);
    let length = shape[axis_of("quantile", axis, &shape)?].clone();
    let value = match length.as_const().filter(|&length| length > 0) {
        Some(length) => {
            let place = q * (length - 1) as f64;
            let low = place.floor() as i64;
            let share = place - low as f64;
            // Beside an infinity a share of nothing is nothing.
            if share == 0.0 {
                let [lower] = nth(b, "quantile", x, axis, |_| [Dim::from(low)])?;
                lower
            } else {
                let numbers = [low, (low + 1).min(length - 1)].map(Dim::from);
                let [lower, upper] = nth(b, "quantile", x, axis, |_| numbers.clone())?;
                in_wide_of(b, "quantile", [lower, upper], |b, [lower, upper]| {
                    // From the nearer end, as in NumPy and PyTorch: next to an infinity, the other end gives nan.
                    let (from, to, share) =
                        if share < 0.5 { (lower, upper, share) } else { (upper, lower, 1.0 - share) };
                    let share = given(b, lower, share);
                    towards(b, from, to, share)
                })?
            }
        }
        None => {
            let (sorted, length) = ordered(b, "quantile", x, axis)?;
            quantile_of_any(b, sorted, q, axis, &length)?
        }
    };
    let value = unless_nan(b, x, axis, value)?;
    drop_axis(b, value, axis, keepdim)
}

/// The same of an axis whose length a call decides: its place is computed, in f64 as well.
fn quantile_of_any(b: &mut dyn Builder, sorted: NodeId, q: f64, axis: i64, length: &Dim) -> Result<NodeId> {
    let last = super::creation::size(b, &(length - 1), DType::I64)?;
    let share = b.number(Const::float(DType::F64, q));
    let place = cast(b, last, DType::F64)?;
    let place = mul(b, place, share)?;
    let low = cast(b, place, DType::I64)?;
    let one = b.constant(Const::int(DType::I64, 1));
    let next = b.alu(Op::Add, &[low, one])?;
    let beyond = b.alu(Op::CmpLt, &[last, next])?;
    let high = b.alu(Op::Where, &[beyond, last, next])?;
    let floor = cast(b, low, DType::F64)?;
    let share = sub(b, place, floor)?;
    let zero = like(b, share, 0.0);
    let is_whole = eq(b, share, zero)?;
    let moved = super::movement::transpose(b, sorted, 0, axis)?;
    let mut at = |place: NodeId| -> Result<NodeId> {
        let place = super::movement::reshape(b, place, &[Dim::from(1)])?;
        let value = b.alu(Op::Index, &[moved, place])?;
        super::movement::transpose(b, value, 0, axis)
    };
    let (lower, upper) = (at(low)?, at(high)?);
    let value = in_wide_of(b, "quantile", [lower, upper], |b, [lower, upper]| {
        let (half, one) = (like(b, share, 0.5), like(b, share, 1.0));
        let rest = sub(b, one, share)?;
        let is_below = b.alu(Op::CmpLt, &[share, half])?;
        let dtype = dtype_of(b, lower);
        let [share, rest] = [cast(b, share, dtype)?, cast(b, rest, dtype)?];
        let (from_lower, from_upper) = (towards(b, lower, upper, share)?, towards(b, upper, lower, rest)?);
        b.alu(Op::Where, &[is_below, from_lower, from_upper])
    })?;
    b.alu(Op::Where, &[is_whole, lower, value])
}

/// A share of the way from `from` to `to`.
fn towards(b: &mut dyn Builder, from: NodeId, to: NodeId, share: NodeId) -> Result<NodeId> {
    let difference = sub(b, to, from)?;
    let step = mul(b, difference, share)?;
    add(b, from, step)
}

/// Differences of neighbours along an axis, `n` times.
pub fn diff(b: &mut dyn Builder, x: NodeId, n: i64, axis: i64) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let length = &shape[axis_of("diff", axis, &shape)?];
    if n < 0 {
        return Err(Error::new(ErrorKind::Value, "diff", format!("{n} times")).help("0 times or more"));
    }
    if (length - n).bounds().1 <= 0 {
        return narrow(b, x, axis, 0, 0);
    }
    let mut x = x;
    for rest in (0..n).map(|round| length - 1 - round) {
        let (after, before) = (narrow(b, x, axis, 1, &rest)?, narrow(b, x, axis, 0, &rest)?);
        x = if dtype_of(b, x) == DType::Bool {
            super::arithmetic::xor(b, after, before)?
        } else {
            sub(b, after, before)?
        };
    }
    Ok(x)
}

/// How often each of 0, 1, … `length - 1` is among the numbers (i32); others are not counted.
pub fn bincount(b: &mut dyn Builder, x: NodeId, length: i64) -> Result<NodeId> {
    if length < 0 {
        return Err(Error::new(ErrorKind::Value, "bincount", format!("{length} numbers"))
            .help("how many numbers are counted, from 0 on: at least 0"));
    }
    let flat = super::movement::flatten(b, x, 0, -1)?;
    let hits = index::one_hot_mask(b, "bincount", flat, &Dim::from(length))?;
    // A one for each number, sent to its place.
    let [one, zero] = [1, 0].map(|number| b.constant(Const::int(DType::I32, number)));
    let ones = b.alu(Op::Where, &[hits, one, zero])?;
    reduce::sum(b, ones, Some(&[0]), false)
}

/// How many elements fall into each of `bins` equal parts of `min` to `max`, which belongs to the last one (i32).
pub fn histc(b: &mut dyn Builder, x: NodeId, bins: i64, min: f64, max: f64) -> Result<NodeId> {
    let width = max - min;
    if bins < 1 || !width.is_finite() || width <= 0.0 {
        return Err(Error::new(ErrorKind::Value, "histc", format!("{bins} bins from {min} to {max}"))
            .help("at least 1 bin, between finite bounds of which the first is less"));
    }
    let x = to_float(b, x)?;
    let wide = dtype_of(b, x).accumulator();
    let x = cast(b, x, wide)?;
    let (low, high) = (given(b, x, min), given(b, x, max));
    let (above, below) = (super::arithmetic::ge(b, x, low)?, super::arithmetic::le(b, x, high)?);
    let inside = b.alu(Op::And, &[above, below])?;
    let offset = sub(b, x, low)?;
    let share = super::elementwise::scale_given(b, offset, bins as f64 / (max - min))?;
    let dtype = if bins <= i32::MAX.into() { DType::I32 } else { DType::I64 };
    let place = cast(b, share, dtype)?;
    let last = b.constant(Const::int(dtype, (bins - 1).into()));
    let beyond = b.alu(Op::CmpLt, &[last, place])?;
    let place = b.alu(Op::Where, &[beyond, last, place])?;
    let nowhere = b.constant(Const::int(dtype, -1));
    let place = b.alu(Op::Where, &[inside, place, nowhere])?;
    bincount(b, place, bins).map_err(|error| error.in_op("histc"))
}

/// Where each of `values` would stand in this ascending vector, or in the row with its leading indices (i32): before what equals it, or
/// after if `right`; of nan at the end.
pub fn searchsorted(b: &mut dyn Builder, sorted: NodeId, values: NodeId, right: bool) -> Result<NodeId> {
    let (rows, wanted) = (shape_of(b, sorted), shape_of(b, values));
    let Some((length, lead)) = rows.split_last().filter(|(_, lead)| lead.is_empty() || wanted.starts_with(lead)) else {
        let message = format!("rows of {} for values of {}", show(&rows), show(&wanted));
        return Err(Error::new(ErrorKind::Shape, "searchsorted", message).help(
            "a vector for values of any shape, or rows of which each has values of its own: [rows, n] for [rows, m]",
        ));
    };
    let (sorted, values) = super::promote(b, "searchsorted", sorted, values)?;
    let own: Dim = wanted[lead.len()..].iter().cloned().fold(Dim::from(1), |all, dim| all * dim);
    let columns: Shape = lead.iter().cloned().chain([own]).collect();
    let values = super::movement::reshape(b, values, &columns)?;
    let mut found = selection::places(b, sorted, values, right)?;
    if dtype_of(b, values).is_float() {
        let (missing, end) = (isnan(b, values)?, super::creation::size(b, length, DType::I32)?);
        found = b.alu(Op::Where, &[missing, end, found])?;
    }
    super::movement::reshape(b, found, &wanted)
}

/// The integral along an axis by trapezes `dx` apart.
pub fn trapezoid(b: &mut dyn Builder, x: NodeId, dx: f64, axis: i64) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let sums = of_neighbours(b, "trapezoid", x, axis)?;
        let total = reduce::sum(b, sums, Some(&[axis]), false)?;
        let half = given(b, total, dx / 2.0);
        mul(b, total, half)
    })
}

/// Sums of adjacent elements, as floats: twice the area of a trapezoid of width 1.
pub(super) fn of_neighbours(b: &mut dyn Builder, op: &str, x: NodeId, axis: i64) -> Result<NodeId> {
    let x = to_float(b, x)?;
    let shape = shape_of(b, x);
    let length = &shape[axis_of(op, axis, &shape)?];
    let count = (length - 1i64).maximum(&Dim::from(0));
    let (after, before) = (narrow(b, x, axis, length - &count, &count)?, narrow(b, x, axis, 0, &count)?);
    add(b, after, before)
}

/// The element that is most frequent along an axis, the least of several; nan is not counted unless there is nothing else.
pub fn mode(b: &mut dyn Builder, x: NodeId, axis: i64, keepdim: bool) -> Result<NodeId> {
    let (sorted, _) = ordered(b, "mode", x, axis)?;
    let moved = super::movement::transpose(b, sorted, axis, -1)?;
    let (from, to) = (selection::places(b, moved, moved, false)?, selection::places(b, moved, moved, true)?);
    let counts = sub(b, to, from)?;
    let best = reduce::argmax(b, counts, -1)?;
    let best = super::movement::unsqueeze(b, best, -1)?;
    let value = index::gather(b, moved, best, -1)?;
    let value = super::movement::transpose(b, value, axis, -1)?;
    drop_axis(b, value, axis, keepdim)
}
