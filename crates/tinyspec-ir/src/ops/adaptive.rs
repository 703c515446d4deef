//! Pools over a given number of windows, which together cover an axis.

use super::elementwise::stored;
use super::function::with_gradient;
use super::movement::{movedim, reshape};
use super::options::per_axis;
use super::{cast, creation, dtype_of, in_wide, like, reduce, shape_of};
use crate::affine::gcd;
use crate::dim::show;
use crate::{Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// The reduction of the windows of one axis.
#[derive(Clone, Copy)]
enum Pool {
    Mean,
    Max,
}

macro_rules! pools {
    ($($avg:ident $max:ident $axes:literal;)*) => { $(
        /// Means of as many windows along each of the last axes as `size` says.
        pub fn $avg(b: &mut dyn Builder, x: NodeId, size: &[i64]) -> Result<NodeId> {
            let op = concat!("adaptive_avg_pool", $axes, "d");
            in_wide(b, x, |b, x| adaptive::<$axes>(b, op, x, size, Pool::Mean))
        }

        /// Greatest elements of as many windows along each of the last axes as `size` says.
        pub fn $max(b: &mut dyn Builder, x: NodeId, size: &[i64]) -> Result<NodeId> {
            adaptive::<$axes>(b, concat!("adaptive_max_pool", $axes, "d"), x, size, Pool::Max)
        }
    )* };
}

pools! {
    avg_pool1 max_pool1 1;
    avg_pool2 max_pool2 2;
    avg_pool3 max_pool3 3;
}

fn adaptive<const N: usize>(b: &mut dyn Builder, op: &str, x: NodeId, size: &[i64], pool: Pool) -> Result<NodeId> {
    let Some(size) = per_axis::<N>(size) else {
        let message = format!("sizes {size:?} for {N} axes");
        return Err(Error::new(ErrorKind::Shape, op, message).help("one size, or one for each axis"));
    };
    pooled(b, op, x, &size, pool)
}

/// Means over the last axes; what `interpolate` calls `"area"`.
pub(super) fn area(b: &mut dyn Builder, op: &str, x: NodeId, size: &[i64]) -> Result<NodeId> {
    in_wide(b, x, |b, x| pooled(b, op, x, size, Pool::Mean))
}

fn pooled(b: &mut dyn Builder, op: &str, x: NodeId, size: &[i64], pool: Pool) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let Some(lead) = shape.len().checked_sub(size.len()) else {
        let message = format!("needs at least {} axes, found {}", size.len(), show(&shape));
        return Err(Error::new(ErrorKind::Rank, op, message).help("`unsqueeze(0)` adds an axis in front"));
    };
    let mut x = x;
    for (axis, &count) in (lead..).zip(size) {
        let length = &shape[axis];
        super::within(op, count, 1..1 << 30, || format!("{count} windows over {length} elements"))?;
        if length.bounds().0 < 1 || length.as_const() >= Some(1 << 30) {
            return Err(Error::new(ErrorKind::Value, op, format!("{count} windows over {length} elements"))
                .help("the axis has from 1 to 1073741824 elements"));
        }
        if !length.is(count) {
            x = along(b, x, axis, length, count, pool)?;
        }
    }
    Ok(x)
}

/// Window `i` goes from `⌊i length / count⌋` to `⌈(i + 1) length / count⌉`.
fn along(b: &mut dyn Builder, x: NodeId, axis: usize, length: &Dim, count: i64, pool: Pool) -> Result<NodeId> {
    let each = length.idiv(&count.into());
    if &each * count == *length {
        let mut rows = shape_of(b, x);
        rows[axis] = Dim::from(count);
        rows.insert(axis + 1, each);
        let x = reshape(b, x, &rows)?;
        let within = [axis as i64 + 1];
        return match pool {
            Pool::Mean => reduce::mean(b, x, Some(&within), false),
            Pool::Max => reduce::max(b, x, Some(&within), false),
        };
    }
    // Every window is read at the length of the longest; elements past its own end are masked off.
    let first = movedim(b, x, axis as i64, 0)?;
    let seen = windows(b, first, count)?;
    let Places { start, end, inside, .. } = places(b, length, count)?;
    let seen = masked(b, inside, seen, if matches!(pool, Pool::Max) { f64::NEG_INFINITY } else { 0.0 })?;
    let pooled = match pool {
        Pool::Max => reduce::max(b, seen, Some(&[1]), false)?,
        Pool::Mean => {
            let total = reduce::sum(b, seen, Some(&[1]), false)?;
            let size = super::arithmetic::sub(b, end, start)?;
            let dtype = dtype_of(b, total);
            let size = cast(b, size, dtype)?;
            let mut along: Shape = shape_of(b, total).iter().map(|_| Dim::from(1)).collect();
            along[0] = Dim::from(count);
            let size = reshape(b, size, &along)?;
            b.alu(Op::Div, &[total, size])?
        }
    };
    movedim(b, pooled, 0, axis as i64)
}

/// Which elements of an axis windows see.
struct Places {
    /// Of each window, the first element.
    start: NodeId,
    /// And the one behind the last.
    end: NodeId,
    /// The elements, as many for each window as the longest one has.
    element: NodeId,
    /// Those before the window's own end.
    inside: NodeId,
}

fn places(b: &mut dyn Builder, length: &Dim, count: i64) -> Result<Places> {
    let number = |b: &mut dyn Builder, value: i64| b.constant(Const::int(DType::I64, value.into()));
    let longest = longest(length, count);
    let (step, parts) = (creation::size(b, length, DType::I64)?, number(b, count));
    let window = creation::arange_dim(b, &Dim::from(count), DType::I64)?;
    let window = reshape(b, window, &[Dim::from(count), Dim::from(1)])?;
    let place = b.alu(Op::Mul, &[window, step])?;
    let start = b.alu(Op::Idiv, &[place, parts])?;
    let end = b.alu(Op::Add, &[place, step])?;
    let rounded_up = number(b, count - 1);
    let end = b.alu(Op::Add, &[end, rounded_up])?;
    let end = b.alu(Op::Idiv, &[end, parts])?;
    let element = creation::arange_dim(b, &longest, DType::I64)?;
    let element = b.alu(Op::Add, &[start, element])?;
    let inside = b.alu(Op::CmpLt, &[element, end])?;
    Ok(Places { start, end, element, inside })
}

/// The elements that each window over the first axis covers: that axis becomes two, the window and the element within it.
fn seen(b: &mut dyn Builder, x: NodeId, count: i64) -> Result<NodeId> {
    let length = shape_of(b, x)[0].clone();
    let Places { element, .. } = places(b, &length, count)?;
    // Stored as a small table: from a quotient nothing can tell that elements past the last window do not exist.
    let element = stored(b, element)?;
    b.alu(Op::Index, &[x, element])
}

/// As [`seen`], with a gradient for which no element looks through all windows. Element `h` is in those from `⌊h count / length⌋`
/// to `⌈(h + 1) count / length⌉`: windows over the windows.
fn windows(b: &mut dyn Builder, x: NodeId, count: i64) -> Result<NodeId> {
    let length = shape_of(b, x)[0].as_const().filter(|_| dtype_of(b, x).is_float());
    let Some(length) = length else { return seen(b, x, count) };
    let gradient = |b: &mut dyn Builder, _: &[NodeId], cotangents: &[NodeId]| {
        let g = cotangents[0];
        let mut shape = shape_of(b, g);
        let Places { element: window, inside, .. } = places(b, &Dim::from(count), length)?;
        let number = |b: &mut dyn Builder, value: i64| b.constant(Const::int(DType::I64, value.into()));
        let (step, parts, width) = (number(b, length), number(b, count), creation::size(b, &shape[1], DType::I64)?);
        let start = b.alu(Op::Mul, &[window, step])?;
        let start = b.alu(Op::Idiv, &[start, parts])?;
        let element = creation::arange_dim(b, &Dim::from(length), DType::I64)?;
        let element = reshape(b, element, &[Dim::from(length), Dim::from(1)])?;
        let within = super::arithmetic::sub(b, element, start)?;
        let first = b.alu(Op::Mul, &[window, width])?;
        let place = b.alu(Op::Add, &[first, within])?;
        let place = stored(b, place)?;
        let width = shape.remove(1);
        shape[0] = &width * count;
        let flat = reshape(b, g, &shape)?;
        let found = b.alu(Op::Index, &[flat, place])?;
        let found = masked(b, inside, found, 0.0)?;
        Ok(vec![reduce::sum(b, found, Some(&[1]), false)?])
    };
    let body = |b: &mut dyn Builder, inputs: &[NodeId]| Ok(vec![seen(b, inputs[0], count)?]);
    Ok(with_gradient(b, ("windows", count), &[x], &body, &gradient)?[0])
}

/// `x` where a mask of its first two axes holds, else `other`.
fn masked(b: &mut dyn Builder, mask: NodeId, x: NodeId, other: f64) -> Result<NodeId> {
    let mut shape = shape_of(b, mask);
    shape.resize(shape_of(b, x).len(), Dim::from(1));
    let mask = reshape(b, mask, &shape)?;
    let other = like(b, x, other);
    b.alu(Op::Where, &[mask, x, other])
}

/// Elements of the longest window, at least.
fn longest(length: &Dim, count: i64) -> Dim {
    // A window starts up to a whole element, in steps of what both share, before its place.
    let shared = length.as_const().map_or(1, |length| gcd(length, count));
    (length + (2 * count - shared - 1)).idiv(&count.into())
}
