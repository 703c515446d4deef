//! Parts of tensors by position: slices with steps, one position of an axis, and the same parts written.

use super::movement::{expand, flip, pad, reshape, shrink};
use super::{axis_of, cast, dtype_of, fixed_length, shape_of};
use crate::dim::show;
use crate::{Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// The part of an axis that is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Slice {
    /// One position, which a call may decide, counted from the end if it is a negative number; the axis is gone then.
    At(Dim),
    /// From `start` on, before `stop`, `step` apart and backwards where that is negative. As in NumPy negative ends count
    /// from the end, and what lies outside is cut off.
    Span {
        /// The first position; none: the end that the step leads away from.
        start: Option<i64>,
        /// The position that is not reached; none: through to the end.
        stop: Option<i64>,
        /// Distance and direction.
        step: i64,
    },
    /// From `start` on, before `stop`, these being sizes that a call may decide. All of it must be inside: nothing is cut off.
    Sizes {
        /// The first position.
        start: Dim,
        /// The position that is not reached; none: through to the end.
        stop: Option<Dim>,
    },
}

impl Slice {
    /// The whole axis.
    pub const ALL: Slice = Slice::Span { start: None, stop: None, step: 1 };

    /// A stop beyond all axes is none.
    fn between(start: i64, stop: i64, step: i64) -> Slice {
        Slice::Span { start: Some(start), stop: Some(stop).filter(|&stop| stop != i64::MAX), step }
    }

    fn is_all(&self) -> bool {
        matches!(self, Slice::Span { start: None | Some(0), stop: None, step: 1 })
    }
}

/// Positions of one axis: `count` of them, `stride` apart from `low` on, read backwards if `reversed`.
struct Steps {
    low: Dim,
    count: Dim,
    stride: i64,
    reversed: bool,
}

impl Steps {
    fn of(op: &str, slice: &Slice, axis: usize, length: &Dim) -> Result<Steps> {
        let zero = Dim::from(0);
        let placed = |end: i64| if end < 0 { length + end } else { Dim::from(end) };
        let (start, stop, step) = match *slice {
            Slice::At(ref position) => {
                let low = position.as_const().map_or(position.clone(), placed);
                // A violation that depends on the size in a call is refused there.
                if low.bounds().1 < 0 || (length - &low).bounds().1 < 1 {
                    let message = format!("position {position} of axis {axis}, which has {length}");
                    return Err(Error::new(ErrorKind::Value, op, message).help(
                        "positions count from 0, or from -1 at the end; those of a tensor may be outside and read 0",
                    ));
                }
                return Ok(Steps { low, count: Dim::from(1), stride: 1, reversed: false });
            }
            Slice::Sizes { ref start, ref stop } => {
                let end = |end: &Dim| end.as_const().map_or(end.clone(), placed);
                let low = end(start);
                let count = stop.as_ref().map_or(length.clone(), end) - low.clone();
                if count.bounds().1 < 0 {
                    let message = format!("a part of {count} elements of axis {axis}, which has {length}");
                    return Err(Error::new(ErrorKind::Value, op, message));
                }
                return Ok(Steps { low, count, stride: 1, reversed: false });
            }
            Slice::Span { start, stop, step } => (start, stop, step),
        };
        if step == 0 {
            return Err(
                Error::new(ErrorKind::Value, op, "a step of 0 never ends").help("1 takes all, -1 all backwards")
            );
        }
        let stride = step.saturating_abs();
        let limited = |end: Dim, least: &Dim, most: &Dim| end.minimum(most).maximum(least);
        let (first, span) = if step > 0 {
            let first = start.map_or(zero.clone(), |start| limited(placed(start), &zero, length));
            let stop = stop.map_or(length.clone(), |stop| limited(placed(stop), &zero, length));
            (first.clone(), stop - first)
        } else {
            let (before, last) = (Dim::from(-1), length - 1i64);
            let first = start.map_or(last.clone(), |start| limited(placed(start), &before, &last));
            let stop = stop.map_or(before.clone(), |stop| limited(placed(stop), &before, &last));
            (first.clone(), first - stop)
        };
        let count = (span.maximum(&zero) - 1i64).idiv(&Dim::from(stride)) + 1i64;
        let low = match () {
            () if count.is(0) => zero,
            () if step > 0 => first,
            () => (first - (&count - 1i64) * stride).maximum(&zero),
        };
        let reversed = step < 0 && count.bounds().1 > 1;
        Ok(Steps { low, count, stride, reversed })
    }

    /// From the first position to the last, both included.
    fn span(&self) -> Dim {
        ((&self.count - 1i64) * self.stride + 1i64).maximum(&Dim::from(0))
    }

    /// Positions have others between them.
    fn are_apart(&self) -> bool {
        self.stride > 1 && self.count.bounds().1 > 1
    }
}

/// The positions that `slices` keep of the leading axes; none for an axis that is kept as it is.
fn steps_of(op: &str, shape: &[Dim], slices: &[Slice]) -> Result<Vec<Option<Steps>>> {
    if slices.len() > shape.len() {
        let message = format!("{} slices for the {} axes of {}", slices.len(), shape.len(), show(shape));
        return Err(Error::new(ErrorKind::Rank, op, message));
    }
    let of = |(axis, (slice, length)): (usize, (&Slice, &Dim))| match slice.is_all() {
        true => Ok(None),
        false => Steps::of(op, slice, axis, length).map(Some),
    };
    slices.iter().zip(shape).enumerate().map(of).collect()
}

/// The part of `x` that `slices` keep of its leading axes.
pub fn get(b: &mut dyn Builder, op: &str, x: NodeId, slices: &[Slice]) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let steps = steps_of(op, &shape, slices)?;
    let (mut offset, mut target): (Shape, Shape) = (shape.iter().map(|_| Dim::from(0)).collect(), shape.clone());
    for (axis, steps) in steps.iter().enumerate() {
        if let Some(steps) = steps {
            (offset[axis], target[axis]) = (steps.low.clone(), steps.span());
        }
    }
    let mut x = shrink(b, x, &offset, &target)?;
    for (axis, steps) in steps.iter().enumerate() {
        if let Some(steps) = steps {
            if steps.are_apart() {
                x = strided(b, x, axis, steps)?;
            }
            if steps.reversed {
                x = flip(b, x, &[axis as i64])?;
            }
        }
    }
    let dropped = |axis: usize| matches!(slices.get(axis), Some(Slice::At(_)));
    let kept: Shape =
        shape_of(b, x).iter().enumerate().filter(|(axis, _)| !dropped(*axis)).map(|(_, dim)| dim.clone()).collect();
    reshape(b, x, &kept)
}

/// Every `stride`-th element: the first column of rows of that length.
fn strided(b: &mut dyn Builder, x: NodeId, axis: usize, Steps { count, stride, .. }: &Steps) -> Result<NodeId> {
    let mut whole = shape_of(b, x);
    let zeros: Shape = whole.iter().map(|_| Dim::from(0)).collect();
    whole[axis] = count * *stride;
    let x = pad(b, x, &zeros, &whole, 0.0)?;
    let mut rows = whole;
    rows[axis] = count.clone();
    rows.insert(axis + 1, Dim::from(*stride));
    let x = reshape(b, x, &rows)?;
    let zeros: Shape = rows.iter().map(|_| Dim::from(0)).collect();
    rows[axis + 1] = Dim::from(1);
    let x = shrink(b, x, &zeros, &rows)?;
    rows.remove(axis + 1);
    reshape(b, x, &rows)
}

/// `value` in the dtype of `x`, if it broadcasts to the part of `x` that is written.
fn fitting(b: &mut dyn Builder, op: &str, x: NodeId, value: NodeId, part: &Shape) -> Result<NodeId> {
    let dtype = dtype_of(b, x);
    let value = as_element(b, op, value, dtype)?;
    let shape = shape_of(b, value);
    if crate::dim::broadcast(part, &shape).is_none_or(|both| both != *part) {
        let message = format!("{} does not broadcast to {}, the part that is written", show(&shape), show(part));
        return Err(Error::new(ErrorKind::Shape, op, message)
            .help("a value has the sizes of the part, or 1 where it is the same along an axis"));
    }
    Ok(value)
}

/// `x` with the part that `slices` keep of its leading axes replaced by `value`, which broadcasts to that part.
pub fn set(b: &mut dyn Builder, op: &str, x: NodeId, slices: &[Slice], value: NodeId) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let steps = steps_of(op, &shape, slices)?;
    let dropped = |axis: usize| matches!(slices.get(axis), Some(Slice::At(_)));
    let count =
        |axis: usize| steps.get(axis).and_then(Option::as_ref).map_or(shape[axis].clone(), |steps| steps.count.clone());
    let part: Shape = (0..shape.len()).filter(|&axis| !dropped(axis)).map(count).collect();
    let value = fitting(b, op, x, value, &part)?;
    let value = expand(b, value, &part)?;
    let all = b.constant(Const::int(DType::Bool, 1));
    let all = expand(b, all, &part)?;
    set_where(b, op, x, slices, all, value)
}

/// As [`set`], of the places in the part where `hit` is true; it and `value` have the part's shape. What stays is read where it
/// lies, so that the result can take the memory of `x`.
pub(super) fn set_where(
    b: &mut dyn Builder,
    op: &str,
    x: NodeId,
    slices: &[Slice],
    hit: NodeId,
    value: NodeId,
) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let steps = steps_of(op, &shape, slices)?;
    let count =
        |axis: usize| steps.get(axis).and_then(Option::as_ref).map_or(shape[axis].clone(), |steps| steps.count.clone());
    let full: Shape = (0..shape.len()).map(count).collect();
    if full.iter().any(|dim| dim.is(0)) {
        return Ok(x);
    }
    let value = reshape(b, value, &full)?;
    let value = placed(b, value, &steps, &shape)?;
    let hit = reshape(b, hit, &full)?;
    let hit = placed(b, hit, &steps, &shape)?;
    b.alu(Op::Where, &[hit, value, x])
}

/// `value` as `dtype`, if that holds its kind.
pub(super) fn as_element(b: &mut dyn Builder, op: &str, value: NodeId, dtype: DType) -> Result<NodeId> {
    let found = dtype_of(b, value);
    if found.is_float() && !dtype.is_float() || dtype == DType::Bool && found != dtype {
        let message = format!("{found} values for a tensor of {dtype}");
        let help = format!("`.cast(DType::{})` cuts them", dtype.name().to_uppercase());
        return Err(Error::new(ErrorKind::DType, op, message).help(help));
    }
    cast(b, value, dtype)
}

/// `value` at its positions in zeros of `shape`.
fn placed(b: &mut dyn Builder, value: NodeId, steps: &[Option<Steps>], shape: &[Dim]) -> Result<NodeId> {
    let mut value = value;
    let mut offset: Shape = shape.iter().map(|_| Dim::from(0)).collect();
    for (axis, steps) in steps.iter().enumerate() {
        let Some(steps) = steps else { continue };
        if steps.reversed {
            value = flip(b, value, &[axis as i64])?;
        }
        if steps.are_apart() {
            value = spread(b, value, axis, steps)?;
        }
        offset[axis] = steps.low.clone();
    }
    pad(b, value, &offset, shape, 0.0)
}

/// Zeros between the elements of an axis.
fn spread(b: &mut dyn Builder, value: NodeId, axis: usize, steps: &Steps) -> Result<NodeId> {
    let mut rows = shape_of(b, value);
    rows.insert(axis + 1, Dim::from(1));
    let value = reshape(b, value, &rows)?;
    let zeros: Shape = rows.iter().map(|_| Dim::from(0)).collect();
    rows[axis + 1] = Dim::from(steps.stride);
    let value = pad(b, value, &zeros, &rows, 0.0)?;
    rows.remove(axis + 1);
    rows[axis] = &steps.count * steps.stride;
    let value = reshape(b, value, &rows)?;
    let zeros: Shape = rows.iter().map(|_| Dim::from(0)).collect();
    rows[axis] = steps.span();
    shrink(b, value, &zeros, &rows)
}

/// The slices that keep all of the axes before `axis`, then `slice`.
fn along(b: &dyn Builder, op: &str, x: NodeId, axis: i64, slice: Slice) -> Result<Vec<Slice>> {
    let axis = axis_of(op, axis, &shape_of(b, x))?;
    Ok(std::iter::repeat_n(Slice::ALL, axis).chain([slice]).collect())
}

/// Positions `start`, `start + step`, … before `stop` of an axis, as NumPy's `x[start:stop:step]`.
pub fn slice(b: &mut dyn Builder, x: NodeId, axis: i64, start: i64, stop: i64, step: i64) -> Result<NodeId> {
    let slices = along(b, "slice", x, axis, Slice::between(start, stop, step))?;
    get(b, "slice", x, &slices)
}

/// `x` with `value` where [`slice()`] reads.
pub fn slice_scatter(
    b: &mut dyn Builder,
    x: NodeId,
    value: NodeId,
    axis: i64,
    start: i64,
    stop: i64,
    step: i64,
) -> Result<NodeId> {
    let slices = along(b, "slice_scatter", x, axis, Slice::between(start, stop, step))?;
    set(b, "slice_scatter", x, &slices, value)
}

/// One position of an axis, which is dropped.
pub fn select(b: &mut dyn Builder, x: NodeId, axis: i64, position: i64) -> Result<NodeId> {
    let slices = along(b, "select", x, axis, Slice::At(position.into()))?;
    get(b, "select", x, &slices)
}

/// `x` with `value` at one position of an axis.
pub fn select_scatter(b: &mut dyn Builder, x: NodeId, value: NodeId, axis: i64, position: i64) -> Result<NodeId> {
    let slices = along(b, "select_scatter", x, axis, Slice::At(position.into()))?;
    set(b, "select_scatter", x, &slices, value)
}

/// Each position of an axis as a tensor of its own.
pub fn unbind(b: &mut dyn Builder, x: NodeId, axis: i64) -> Result<Vec<NodeId>> {
    let shape = shape_of(b, x);
    let length = fixed_length("unbind", &shape, axis_of("unbind", axis, &shape)?)?;
    (0..length).map(|position| select(b, x, axis, position)).collect()
}

/// The elements of `x` at the positions in the vector `index` along an axis; negative ones count from the end.
pub fn index_select(b: &mut dyn Builder, x: NodeId, axis: i64, index: NodeId) -> Result<NodeId> {
    let shape = shape_of(b, index);
    if shape.len() != 1 {
        let message = format!("the numbers must be a vector, found {}", show(&shape));
        return Err(Error::new(ErrorKind::Rank, "index_select", message)
            .help("`x.at(&numbers)` takes numbers of any shape, `gather` one for each element"));
    }
    let axis = axis_of("index_select", axis, &shape_of(b, x))? as i64;
    let first = super::movement::transpose(b, x, 0, axis)?;
    let rows = super::index::index0(b, first, index).map_err(|error| error.in_op("index_select"))?;
    super::movement::transpose(b, rows, 0, axis)
}

/// `[x[first[k], second[k]], …]` along the first two axes, as NumPy pairs two index tensors.
pub fn index_pairs(b: &mut dyn Builder, x: NodeId, first: NodeId, second: NodeId) -> Result<NodeId> {
    index_axes(b, "index_pairs", x, &[0, 1], &[first, second])
}

/// One axis made of `axes`, in front of the others, and the place in it that the index tensors name together: -1 where
/// one of them is outside.
fn joined(b: &mut dyn Builder, op: &str, x: NodeId, axes: &[usize], indices: &[NodeId]) -> Result<(NodeId, NodeId)> {
    let shape = shape_of(b, x);
    if let Some(axis) = axes.iter().find(|&&axis| axis >= shape.len()) {
        let message = format!("an index for axis {axis} of {}", show(&shape));
        return Err(Error::new(ErrorKind::Rank, op, message).help("each tensor of positions takes an axis"));
    }
    let mut place: Option<NodeId> = None;
    for (&axis, &index) in axes.iter().zip(indices) {
        super::index::require_int(b, op, index)?;
        let index = match dtype_of(b, index).is_unsigned() {
            true => super::index::wide(b, index)?,
            false => super::index::wrapped(b, index, &shape[axis])?,
        };
        let index = cast(b, index, DType::I64)?;
        let length = super::creation::size(b, &shape[axis], DType::I64)?;
        let (zero, nowhere) = (b.constant(Const::int(DType::I64, 0)), b.constant(Const::int(DType::I64, -1)));
        let (below, within) = (b.alu(Op::CmpLt, &[index, zero])?, b.alu(Op::CmpLt, &[index, length])?);
        let beyond = super::arithmetic::logical_not(b, within)?;
        let mut outside = b.alu(Op::Or, &[below, beyond])?;
        let mut sum = index;
        if let Some(place) = place {
            // An index outside must not meet the next row, nor an earlier one be lost.
            let lost = b.alu(Op::CmpLt, &[place, zero])?;
            let rows = b.alu(Op::Mul, &[place, length])?;
            sum = b.alu(Op::Add, &[rows, index]).map_err(|error| error.in_op(op))?;
            outside = b.alu(Op::Or, &[outside, lost])?;
        }
        place = Some(b.alu(Op::Where, &[outside, nowhere, sum])?);
    }
    let Some(place) = place else { return Err(Error::new(ErrorKind::Arity, op, "needs an index")) };
    let others = (0..shape.len()).filter(|axis| !axes.contains(axis));
    let order: Vec<i64> = axes.iter().copied().chain(others.clone()).map(|axis| axis as i64).collect();
    let x = super::movement::permute(b, x, &order)?;
    let length = axes.iter().fold(Dim::from(1), |product, &axis| product * shape[axis].clone());
    let rows: Shape = [length].into_iter().chain(others.map(|axis| shape[axis].clone())).collect();
    Ok((reshape(b, x, &rows)?, place))
}

/// Index tensors, one for each of `axes`, broadcast to one shape and paired. Their shape stands where the axes were if
/// those are neighbours, else in front. Negative numbers count from the end; what is outside reads 0.
pub fn index_axes(b: &mut dyn Builder, op: &str, x: NodeId, axes: &[usize], indices: &[NodeId]) -> Result<NodeId> {
    let (rows, place) = joined(b, op, x, axes, indices)?;
    let start = if axes.windows(2).all(|pair| pair[1] == pair[0] + 1) { axes[0] } else { 0 };
    rows_at(b, rows, place, start)
}

/// Gathers the rows at `places` along the first axis. The axes of `places` become the axes from `start` on.
pub(super) fn rows_at(b: &mut dyn Builder, rows: NodeId, places: NodeId, start: usize) -> Result<NodeId> {
    let picked = b.alu(Op::Index, &[rows, places])?;
    let front = shape_of(b, places).len();
    let rank = shape_of(b, picked).len();
    let order: Vec<i64> =
        (front..front + start).chain(0..front).chain(front + start..rank).map(|axis| axis as i64).collect();
    super::movement::permute(b, picked, &order)
}

/// Where [`index_axes`] reads from `x`, as a mask of its shape, and `value` there; of several values for one place the last one.
pub(super) fn set_axes(
    b: &mut dyn Builder,
    op: &str,
    x: NodeId,
    axes: &[usize],
    indices: &[NodeId],
    value: NodeId,
) -> Result<(NodeId, NodeId)> {
    let shape = shape_of(b, x);
    let (rows, place) = joined(b, op, x, axes, indices)?;
    let (row_shape, place_shape) = (shape_of(b, rows), shape_of(b, place));
    let start = if axes.windows(2).all(|pair| pair[1] == pair[0] + 1) { axes[0] } else { 0 };
    let rest = &row_shape[1..];
    let part: Shape = rest[..start].iter().chain(&place_shape).chain(&rest[start..]).cloned().collect();
    let value = fitting(b, op, x, value, &part)?;
    // A row for each place, as `rows` has one for each position.
    let value = expand(b, value, &part)?;
    let front = place_shape.len();
    let order: Vec<i64> =
        (start..start + front).chain(0..start).chain(start + front..part.len()).map(|axis| axis as i64).collect();
    let value = super::movement::permute(b, value, &order)?;
    let count = place_shape.iter().fold(Dim::from(1), |product, dim| product * dim.clone());
    let flat: Shape = [count.clone()].into_iter().chain(rest.iter().cloned()).collect();
    let (value, place) = (reshape(b, value, &flat)?, reshape(b, place, std::slice::from_ref(&count))?);
    let position = super::creation::arange_dim(b, &row_shape[0], DType::I64)?;
    let position = super::movement::unsqueeze(b, position, -1)?;
    let hit = super::arithmetic::eq(b, position, place)?;
    // One place is written once: there is no last value to look for.
    let (hit, written) = if count.is(1) { (hit, value) } else { last_written(b, hit, &count, value)? };
    let along: Shape = row_shape[..1].iter().cloned().chain(std::iter::repeat_n(Dim::from(1), rest.len())).collect();
    let hit = reshape(b, hit, &along)?;
    // Back to the axes of `x`.
    let others: Vec<usize> = (0..shape.len()).filter(|axis| !axes.contains(axis)).collect();
    let order: Vec<usize> = axes.iter().copied().chain(others).collect();
    let split: Shape = order.iter().map(|&axis| shape[axis].clone()).collect();
    let mut back = vec![0; order.len()];
    for (from, &to) in order.iter().enumerate() {
        back[to] = from as i64;
    }
    let mut whole = |rows: NodeId| {
        let rows = expand(b, rows, &row_shape)?;
        let split = reshape(b, rows, &split)?;
        super::movement::permute(b, split, &back)
    };
    Ok((whole(hit)?, whole(written)?))
}

/// Which positions are hit by any of `count` places, and the last value for each; `hit` is [positions, places], `value` has a
/// row a place.
fn last_written(b: &mut dyn Builder, hit: NodeId, count: &Dim, value: NodeId) -> Result<(NodeId, NodeId)> {
    // The number, from 1 on, of the last value for each position.
    let number = super::creation::arange_dim(b, count, DType::I32)?;
    let one = b.constant(Const::int(DType::I32, 1));
    let number = b.alu(Op::Add, &[number, one])?;
    let none = b.constant(Const::int(DType::I32, 0));
    // The maximum over no elements.
    let least = b.constant(Const::int(DType::I32, i32::MIN.into()));
    let numbers = b.alu(Op::Where, &[hit, number, least])?;
    let last = super::reduce::max(b, numbers, Some(&[-1]), false)?;
    let minus = b.constant(Const::int(DType::I32, -1));
    let index = b.alu(Op::Add, &[last, minus])?;
    let written = b.alu(Op::Index, &[value, index])?;
    Ok((b.alu(Op::CmpLt, &[none, last])?, written))
}
