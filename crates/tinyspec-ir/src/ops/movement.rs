//! Views: reshape, permute, pad, slices, joins and splits.

use super::elementwise::stored;
use super::{axes_of, axis_of, dtype_of, like, new_axis_of, shape_of};
use crate::dim::{Atom, show};
use crate::{Arg, Axes, Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// Row-major reinterpretation; one dim may be -1 and is then inferred.
pub fn reshape(b: &mut dyn Builder, x: NodeId, shape: &[Dim]) -> Result<NodeId> {
    let from = shape_of(b, x);
    let mut target: Shape = shape.into();
    let unknown: Vec<usize> = (0..target.len()).filter(|&axis| target[axis].is(-1)).collect();
    if unknown.len() > 1 {
        let message = format!("-1 stands in {} twice, so the sizes cannot be inferred", show(shape));
        return Err(Error::new(ErrorKind::Shape, "reshape", message).help("write all sizes but one out"));
    }
    if let [axis] = unknown[..] {
        let product = |dims: &mut dyn Iterator<Item = &Dim>| dims.cloned().fold(Dim::from(1), |a, b| a * b);
        let total = product(&mut from.iter());
        let known = product(&mut target.iter().filter(|dim| !dim.is(-1)));
        let (left, by) = total.ratio(&known);
        if known.is(0) || !left.modulo(&by).is(0) {
            // Numbers as the user wrote them; for named dims the reduced fraction.
            let is_number = total.as_const().is_some() && known.as_const().is_some();
            let (over, under) = if is_number { (&total, &known) } else { (&left, &by) };
            let why = if left.as_const().is_some() && by.as_const().is_some() { "" } else { " for every size" };
            let message =
                format!("-1 stands for {over} / {under} in {}, which is not a whole number{why}", show(shape));
            let error = Error::new(ErrorKind::Shape, "reshape", message);
            return Err(match left.as_atom() {
                Some(Atom::Named { .. }) => {
                    error.help(format!("`#[function(where({left} % {by} == 0))]` says that it is"))
                }
                _ => error.help("the other sizes must multiply to a divisor of the number of elements"),
            });
        }
        target[axis] = left.idiv(&by);
    }
    if from == target {
        return Ok(x);
    }
    let target = b.shape(&target)?;
    b.alu(Op::Reshape, &[x, target])
}

/// Axes in another order.
pub fn permute(b: &mut dyn Builder, x: NodeId, order: &[i64]) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let mut axes = Axes::new();
    for &axis in order {
        axes.push(axis_of("permute", axis, &shape)? as u32);
    }
    b.add(Op::Permute, &[x], Arg::Axes(axes))
}

/// Two axes swapped.
pub fn transpose(b: &mut dyn Builder, x: NodeId, axis0: i64, axis1: i64) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let (first, second) = (axis_of("transpose", axis0, &shape)?, axis_of("transpose", axis1, &shape)?);
    let mut order: Axes = (0..shape.len() as u32).collect();
    order.swap(first, second);
    b.add(Op::Permute, &[x], Arg::Axes(order))
}

/// An axis moved to another place; the others keep their order.
pub fn movedim(b: &mut dyn Builder, x: NodeId, from: i64, to: i64) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let (from, to) = (axis_of("movedim", from, &shape)?, axis_of("movedim", to, &shape)?);
    let mut order: Axes = (0..shape.len() as u32).filter(|&axis| axis as usize != from).collect();
    order.insert(to, from as u32);
    b.add(Op::Permute, &[x], Arg::Axes(order))
}

/// Size-1 axes broadcast to `shape`; -1 keeps a dim.
pub fn expand(b: &mut dyn Builder, x: NodeId, shape: &[Dim]) -> Result<NodeId> {
    let from = shape_of(b, x);
    let mut target: Shape = shape.into();
    let lead = target.len().saturating_sub(from.len());
    for (axis, dim) in target.iter_mut().enumerate() {
        if dim.is(-1)
            && let Some(kept) = axis.checked_sub(lead).and_then(|axis| from.get(axis))
        {
            *dim = kept.clone();
        }
    }
    if from == target {
        return Ok(x);
    }
    let x = if lead > 0 {
        let padded: Shape = std::iter::repeat_n(Dim::from(1), lead).chain(from).collect();
        reshape(b, x, &padded)?
    } else {
        x
    };
    let target = b.shape(&target)?;
    b.alu(Op::Expand, &[x, target])
}

/// Reversed along `axes`.
pub fn flip(b: &mut dyn Builder, x: NodeId, axes: &[i64]) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let axes = axes_of("flip", Some(axes), &shape)?;
    let flags = (0..shape.len() as u32).map(|axis| axes.contains(&axis)).collect();
    b.add(Op::Flip, &[x], Arg::Flags(flags))
}

/// `x` at `offset` in a tensor of `shape` that is `value` elsewhere.
pub fn pad(b: &mut dyn Builder, x: NodeId, offset: &[Dim], shape: &[Dim], value: f64) -> Result<NodeId> {
    let padded = window(b, Op::Pad, x, offset, shape)?;
    if value == 0.0 || padded == x {
        return Ok(padded);
    }
    // Another fill is a mask and a Where.
    let inside = b.constant(Const::int(DType::Bool, 1));
    let inner = shape_of(b, x);
    let inside = expand(b, inside, &inner)?;
    let inside = window(b, Op::Pad, inside, offset, shape)?;
    let fill = super::given_element(b, "pad", x, value)?;
    b.alu(Op::Where, &[inside, padded, fill])
}

/// `shape` elements from `offset` on.
pub fn shrink(b: &mut dyn Builder, x: NodeId, offset: &[Dim], shape: &[Dim]) -> Result<NodeId> {
    window(b, Op::Shrink, x, offset, shape)
}

fn window(b: &mut dyn Builder, op: Op, x: NodeId, offset: &[Dim], shape: &[Dim]) -> Result<NodeId> {
    if shape_of(b, x).as_slice() == shape && offset.iter().all(|dim| dim.is(0)) {
        return Ok(x);
    }
    let (offset, shape) = (b.shape(offset)?, b.shape(shape)?);
    b.alu(op, &[x, offset, shape])
}

/// Keeps `length` elements of one axis from `start` on.
pub fn narrow(
    b: &mut dyn Builder,
    x: NodeId,
    axis: i64,
    start: impl Into<Dim>,
    length: impl Into<Dim>,
) -> Result<NodeId> {
    let mut shape = shape_of(b, x);
    let axis = axis_of("narrow", axis, &shape)?;
    let mut offset: Shape = std::iter::repeat_n(Dim::from(0), shape.len()).collect();
    (offset[axis], shape[axis]) = (start.into(), length.into());
    shrink(b, x, &offset, &shape).map_err(|error| error.in_op("narrow"))
}

/// A new axis of size 1.
pub fn unsqueeze(b: &mut dyn Builder, x: NodeId, axis: i64) -> Result<NodeId> {
    let mut shape = shape_of(b, x);
    shape.insert(new_axis_of("unsqueeze", axis, &shape)?, Dim::from(1));
    reshape(b, x, &shape)
}

/// Without the axes of size 1 (all of them, or those named).
pub fn squeeze(b: &mut dyn Builder, x: NodeId, axes: Option<&[i64]>) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let named = axes_of("squeeze", axes, &shape)?;
    let kept: Shape = (0..shape.len())
        .filter(|&axis| !(shape[axis].is(1) && named.contains(&(axis as u32))))
        .map(|axis| shape[axis].clone())
        .collect();
    reshape(b, x, &kept)
}

/// Axes `start` to `end` (inclusive) as one.
pub fn flatten(b: &mut dyn Builder, x: NodeId, start: i64, end: i64) -> Result<NodeId> {
    let shape = shape_of(b, x);
    if shape.is_empty() {
        return reshape(b, x, &[Dim::from(1)]);
    }
    let (start, end) = (axis_of("flatten", start, &shape)?, axis_of("flatten", end, &shape)?);
    if end < start {
        return Err(Error::new(
            ErrorKind::Axis,
            "flatten",
            format!("the last axis {end} comes before the first {start}"),
        )
        .help("the first axis stands first; `flatten(0, -1)` merges all"));
    }
    let merged = shape[start..=end].iter().cloned().fold(Dim::from(1), |a, b| a * b);
    let target: Shape =
        shape[..start].iter().cloned().chain([merged]).chain(shape[end + 1..].iter().cloned()).collect();
    reshape(b, x, &target)
}

/// One axis as several of `sizes`.
pub fn unflatten(b: &mut dyn Builder, x: NodeId, axis: i64, sizes: &[Dim]) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let axis = axis_of("unflatten", axis, &shape)?;
    let target: Shape = shape[..axis].iter().chain(sizes).chain(&shape[axis + 1..]).cloned().collect();
    reshape(b, x, &target)
        .map_err(|error| error.in_op("unflatten").help("the product of the sizes must be the size of the axis"))
}

/// Tensors that [`cat`] joins at once.
const GROUP: usize = 16;
/// Elements of a tensor that a kernel of its own is worth its while for, and of its rows.
const LARGE: i64 = 64;
const LONG: i64 = 32;

/// Joined along an existing axis.
pub fn cat(b: &mut dyn Builder, tensors: &[NodeId], axis: i64) -> Result<NodeId> {
    let first = *tensors.first().ok_or_else(|| {
        Error::new(ErrorKind::Arity, "cat", "needs at least one tensor")
            .help("of none, neither dtype nor shape is known")
    })?;
    let shape = shape_of(b, first);
    let axis = axis_of("cat", axis, &shape)?;
    for &x in tensors {
        let other = shape_of(b, x);
        if other.len() != shape.len() {
            let message = format!("{} has {} axes and {} has {}", show(&shape), shape.len(), show(&other), other.len());
            return Err(Error::new(ErrorKind::Shape, "cat", message)
                .help("`unsqueeze` adds an axis of one; `stack` joins equal shapes along a new axis"));
        }
        if (0..shape.len()).any(|a| a != axis && other[a] != shape[a]) {
            let message = format!("{} and {} differ outside axis {axis}", show(&shape), show(&other));
            return Err(Error::new(ErrorKind::Shape, "cat", message)
                .help("all other axes are equal: choose another axis, or `pad` the shorter one"));
        }
        let (dtype, found) = (dtype_of(b, first), dtype_of(b, x));
        if dtype != found {
            let message = format!("all tensors must have one dtype, found {dtype} and {found}");
            return Err(Error::new(ErrorKind::DType, "cat", message)
                .help(format!("`.cast(DType::{})`", dtype.name().to_uppercase())));
        }
    }
    // Where each part is stored in the whole, nothing is looked for. Elsewhere an element is looked for in all parts: groups are joined first,
    // so that it is looked for in few of them.
    let elements = |dims: &[Dim]| dims.iter().fold(1, |count: i64, dim| count.saturating_mul(dim.bounds().1));
    let is_short = |&x: &NodeId| elements(&shape_of(b, x)[axis..]) < LONG || elements(&shape_of(b, x)) < LARGE;
    let has_groups = tensors.iter().any(is_short);
    let mut parts = tensors.to_vec();
    while has_groups && parts.len() > 2 * GROUP {
        let mut groups = Vec::with_capacity(parts.len().div_ceil(GROUP));
        for group in parts.chunks(GROUP) {
            let joined = beside(b, group, axis)?;
            groups.push(stored(b, joined)?);
        }
        parts = groups;
    }
    beside(b, &parts, axis)
}

/// Tensors that differ in nothing but the length of `axis`, each where the one before ends.
fn beside(b: &mut dyn Builder, tensors: &[NodeId], axis: usize) -> Result<NodeId> {
    let mut target = shape_of(b, tensors[0]);
    let rank = target.len();
    target[axis] = tensors.iter().fold(Dim::from(0), |total, &x| total + shape_of(b, x)[axis].clone());
    let mut start = Dim::from(0);
    let mut joined: Option<NodeId> = None;
    for &x in tensors {
        let mut offset: Shape = std::iter::repeat_n(Dim::from(0), rank).collect();
        offset[axis] = start.clone();
        start = start + shape_of(b, x)[axis].clone();
        let padded = pad(b, x, &offset, &target, 0.0)?;
        joined = Some(match joined {
            None => padded,
            // Everything else is 0 there, so or (bools) and + (numbers) put the parts beside each other; -0 + 0
            // would lose a sign, hence the mask for floats.
            Some(joined) if !dtype_of(b, x).is_float() => b.alu(Op::Or, &[joined, padded])?,
            Some(joined) => {
                let inside = b.constant(Const::int(DType::Bool, 1));
                let inner = shape_of(b, x);
                let inside = expand(b, inside, &inner)?;
                let inside = pad(b, inside, &offset, &target, 0.0)?;
                b.alu(Op::Where, &[inside, padded, joined])?
            }
        });
    }
    Ok(joined.unwrap_or(tensors[0]))
}

/// Joined along a new axis.
pub fn stack(b: &mut dyn Builder, tensors: &[NodeId], axis: i64) -> Result<NodeId> {
    let first = *tensors.first().ok_or_else(|| {
        Error::new(ErrorKind::Arity, "stack", "needs at least one tensor")
            .help("of none, neither dtype nor shape is known")
    })?;
    let stacked = b.alu(Op::Stack, tensors)?;
    let shape = shape_of(b, first);
    let axis = new_axis_of("stack", axis, &shape)?;
    let mut order: Axes = (1..=shape.len() as u32).collect();
    order.insert(axis, 0);
    if axis == 0 { Ok(stacked) } else { b.add(Op::Permute, &[stacked], Arg::Axes(order)) }
}

/// Pieces of `size` along an axis, the last one shorter. A dim must have bounds between which there are as many of them.
pub fn split(b: &mut dyn Builder, x: NodeId, size: i64, axis: i64) -> Result<Vec<NodeId>> {
    let shape = shape_of(b, x);
    let position = axis_of("split", axis, &shape)?;
    if size <= 0 {
        return Err(Error::new(ErrorKind::Value, "split", format!("pieces of size {size}"))
            .help("a size of at least 1; `chunk` takes the number of pieces"));
    }
    let (least, most) = shape[position].bounds();
    // Of nothing there is one piece.
    let pieces = |length: i64| (length / size + i64::from(length % size != 0)).max(1);
    let (count, length) = match pieces(least) == pieces(most) {
        true => (pieces(least), shape[position].clone()),
        false => super::fixed_length("split", &shape, position).map(|length| (pieces(length), length.into()))?,
    };
    (0..count)
        .map(|piece| {
            let start = piece * size;
            let rest = if piece + 1 == count { &length - start } else { size.into() };
            narrow(b, x, axis, start, rest)
        })
        .collect()
}

/// Pieces of the given sizes along an axis.
pub fn split_sizes(b: &mut dyn Builder, x: NodeId, sizes: &[i64], axis: i64) -> Result<Vec<NodeId>> {
    let length = axis_length(b, "split_sizes", x, axis)?;
    let total: i128 = sizes.iter().map(|&size| i128::from(size)).sum();
    if total != length.into() || sizes.iter().any(|&size| size < 0) {
        return Err(Error::new(ErrorKind::Shape, "split_sizes", format!("{sizes:?} do not add up to {length}"))
            .help(format!("sizes of at least 0 whose sum is the length of axis {axis}; `narrow` takes a part")));
    }
    let mut start = 0;
    let mut pieces = Vec::new();
    for &size in sizes {
        pieces.push(narrow(b, x, axis, start, size)?);
        start += size;
    }
    Ok(pieces)
}

/// At most `n` pieces of equal size along an axis, the last one shorter. A dim must be a multiple of `n`, as `4*B` is of 4.
pub fn chunk(b: &mut dyn Builder, x: NodeId, n: i64, axis: i64) -> Result<Vec<NodeId>> {
    let shape = shape_of(b, x);
    let position = axis_of("chunk", axis, &shape)?;
    if n <= 0 {
        return Err(Error::new(ErrorKind::Value, "chunk", format!("{n} pieces"))
            .help("at least 1; `split` takes the size of the pieces"));
    }
    let each = shape[position].idiv(&n.into());
    if each.as_const().is_none() && each.bounds().0 > 0 && &each * n == shape[position] {
        return (0..n).map(|piece| narrow(b, x, axis, &each * piece, each.clone())).collect();
    }
    let length = super::fixed_length("chunk", &shape, position)?;
    let size = length / n + i64::from(length % n != 0);
    split(b, x, size.max(1), axis).map_err(|error| error.in_op("chunk"))
}

fn axis_length(b: &dyn Builder, op: &str, x: NodeId, axis: i64) -> Result<i64> {
    let shape = shape_of(b, x);
    super::fixed_length(op, &shape, axis_of(op, axis, &shape)?)
}

/// `repeats[k]` copies along axis k; a longer list adds axes in front.
pub fn repeat(b: &mut dyn Builder, x: NodeId, repeats: &[i64]) -> Result<NodeId> {
    let from = shape_of(b, x);
    let lead = repeats.len().checked_sub(from.len()).ok_or_else(|| {
        Error::new(ErrorKind::Rank, "repeat", format!("{repeats:?} has fewer entries than {} has axes", show(&from)))
            .help("a number for each axis: 1 leaves one as it is")
    })?;
    if let Some(count) = repeats.iter().find(|&&count| count < 0) {
        return Err(Error::new(ErrorKind::Value, "repeat", format!("{count} copies")).help("0 copies or more"));
    }
    let (mut split, mut wide, mut merged) = (Shape::new(), Shape::new(), Shape::new());
    for (axis, &count) in repeats.iter().enumerate() {
        let dim = axis.checked_sub(lead).map_or(Dim::from(1), |axis| from[axis].clone());
        split.extend([Dim::from(1), dim.clone()]);
        wide.extend([Dim::from(count), dim.clone()]);
        merged.push(dim * Dim::from(count));
    }
    let x = reshape(b, x, &split)?;
    let x = expand(b, x, &wide)?;
    reshape(b, x, &merged)
}

/// Each element `repeats` times along an axis.
pub fn repeat_interleave(b: &mut dyn Builder, x: NodeId, repeats: i64, axis: i64) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let axis = axis_of("repeat_interleave", axis, &shape)?;
    if repeats < 0 {
        return Err(
            Error::new(ErrorKind::Value, "repeat_interleave", format!("{repeats} repeats")).help("0 repeats or more")
        );
    }
    let (mut split, mut merged) = (shape.clone(), shape.clone());
    split.insert(axis + 1, Dim::from(1));
    merged[axis] = shape[axis].clone() * Dim::from(repeats);
    let x = reshape(b, x, &split)?;
    split[axis + 1] = Dim::from(repeats);
    let x = expand(b, x, &split)?;
    reshape(b, x, &merged)
}

/// The diagonal of the last two axes, `offset` columns to the right.
pub fn diagonal(b: &mut dyn Builder, x: NodeId, offset: i64) -> Result<NodeId> {
    let mut shape = shape_of(b, x);
    let (Some(columns), Some(rows)) = (shape.pop(), shape.pop()) else {
        let message = format!("needs two axes, found {}", shape_of(b, x).len());
        return Err(Error::new(ErrorKind::Rank, "diagonal", message)
            .help("`diag` makes a matrix with a vector on its diagonal"));
    };
    let (first_row, first_column) = (Dim::from(offset.min(0).saturating_neg()), Dim::from(offset.max(0)));
    let width = columns - &first_column;
    let length = (rows - &first_row).minimum(&width).maximum(&Dim::from(0));
    if length.is(0) {
        shape.push(length);
        let x = narrow(b, x, -1, 0, 0)?;
        return reshape(b, x, &shape);
    }
    let x = narrow(b, x, -2, first_row, length.clone())?;
    let x = narrow(b, x, -1, first_column, width.clone())?;
    // With rows of one element more, the diagonal is the first column.
    let flat = flatten(b, x, -2, -1)?;
    let longer = width + Dim::from(1);
    shape.push(&length * &longer);
    let offset: Shape = shape.iter().map(|_| Dim::from(0)).collect();
    let padded = pad(b, flat, &offset, &shape, 0.0)?;
    let turned = unflatten(b, padded, -1, &[length, longer])?;
    let column = narrow(b, turned, -1, 0, 1)?;
    squeeze(b, column, Some(&[-1]))
}

/// Cyclic shift along axes: a window of two copies one after the other, so that another shift is the same window elsewhere.
pub fn roll(b: &mut dyn Builder, x: NodeId, shifts: &[i64], axes: &[i64]) -> Result<NodeId> {
    if shifts.len() != axes.len() {
        let message = format!("{} shifts for {} axes: {shifts:?} and {axes:?}", shifts.len(), axes.len());
        return Err(Error::new(ErrorKind::Arity, "roll", message).help("one shift an axis"));
    }
    let mut x = x;
    for (&shift, &axis) in shifts.iter().zip(axes) {
        let shape = shape_of(b, x);
        let length = &shape[axis_of("roll", axis, &shape)?];
        let shift = Dim::from(shift).modulo(&length.maximum(&Dim::from(1)));
        if !shift.is(0) {
            let twice = cat(b, &[x, x], axis)?;
            x = narrow(b, twice, axis, length - &shift, length)?;
        }
    }
    Ok(x)
}

/// `[row - column <= -diagonal]` of the last two axes: what `triu` keeps.
fn upper(b: &mut dyn Builder, op: &str, x: NodeId, diagonal: i64) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let [.., rows, columns] = &shape[..] else {
        return Err(Error::new(ErrorKind::Rank, op, format!("needs two axes, found {}", show(&shape)))
            .help("the last two axes are rows and columns; `unsqueeze` makes a vector one of them"));
    };
    let row = super::creation::arange_dim(b, rows, DType::I32)?;
    let row = reshape(b, row, &[rows.clone(), Dim::from(1)])?;
    let column = super::creation::arange_dim(b, columns, DType::I32)?;
    // Beyond the corners there is nothing.
    let diagonal = diagonal.clamp(rows.bounds().1.saturating_neg(), columns.bounds().1);
    let shift = b.number(Const::int(DType::I32, diagonal.into()));
    let row = b.alu(Op::Add, &[row, shift])?;
    super::arithmetic::ge(b, column, row)
}

/// The upper triangle from `diagonal` on, else 0.
pub fn triu(b: &mut dyn Builder, x: NodeId, diagonal: i64) -> Result<NodeId> {
    let keep = upper(b, "triu", x, diagonal)?;
    let zero = like(b, x, 0.0);
    b.alu(Op::Where, &[keep, x, zero])
}

/// The lower triangle up to `diagonal`, else 0.
pub fn tril(b: &mut dyn Builder, x: NodeId, diagonal: i64) -> Result<NodeId> {
    let drop = upper(b, "tril", x, diagonal.saturating_add(1))?;
    let zero = like(b, x, 0.0);
    b.alu(Op::Where, &[drop, zero, x])
}
