//! Windows laid back over what they were cut from, and channels as places.

use super::movement::{narrow, pad, permute, reshape, shrink, transpose};
use super::reduce::sum;
use super::{cast, dtype_of, fixed_length, shape_of, within};
use crate::dim::show;
use crate::{Builder, Dim, Error, ErrorKind, NodeId, Result, Shape};

/// The last three axes and those before them, if `factor` is one.
fn image(b: &dyn Builder, op: &str, x: NodeId, factor: i64) -> Result<(Shape, [Dim; 3])> {
    let shape = shape_of(b, x);
    within(op, factor, 1..1 << 20, || format!("a factor of {factor}"))?;
    match &shape[..] {
        [lead @ .., channels, rows, columns] => {
            Ok((lead.iter().cloned().collect(), [channels.clone(), rows.clone(), columns.clone()]))
        }
        _ => {
            Err(Error::new(ErrorKind::Rank, op, format!("needs (…, channels, rows, columns), found {}", show(&shape)))
                .help("`unsqueeze(0)` adds an axis in front"))
        }
    }
}

fn reordered(b: &mut dyn Builder, x: NodeId, lead: usize, order: [usize; 5]) -> Result<NodeId> {
    let order: Vec<i64> = (0..lead).chain(order.map(|axis| axis + lead)).map(|axis| axis as i64).collect();
    permute(b, x, &order)
}

/// Channels, `factor²` at a time, as the pixels of a picture that is `factor` times as large (Shi et al., 2016).
pub fn pixel_shuffle(b: &mut dyn Builder, x: NodeId, factor: i64) -> Result<NodeId> {
    const OP: &str = "pixel_shuffle";
    let (lead, [channels, rows, columns]) = image(b, OP, x, factor)?;
    let (factor, square) = (Dim::from(factor), Dim::from(factor * factor));
    if !channels.modulo(&square).is(0) {
        let message = format!("{channels} channels are not a multiple of {square}");
        return Err(Error::new(ErrorKind::Shape, OP, message)
            .help("each channel of the result takes the square of the factor of them"));
    }
    let channels = channels.idiv(&square);
    let with = |dims: &[Dim]| -> Shape { lead.iter().chain(dims).cloned().collect() };
    let split = with(&[channels.clone(), factor.clone(), factor.clone(), rows.clone(), columns.clone()]);
    let x = reshape(b, x, &split)?;
    let x = reordered(b, x, lead.len(), [0, 3, 1, 4, 2])?;
    reshape(b, x, &with(&[channels, rows * factor.clone(), columns * factor]))
}

/// The inverse of [`pixel_shuffle`].
pub fn pixel_unshuffle(b: &mut dyn Builder, x: NodeId, factor: i64) -> Result<NodeId> {
    const OP: &str = "pixel_unshuffle";
    let (lead, [channels, rows, columns]) = image(b, OP, x, factor)?;
    let factor = Dim::from(factor);
    if !rows.modulo(&factor).is(0) || !columns.modulo(&factor).is(0) {
        let message = format!("{rows} rows and {columns} columns are not multiples of {factor}");
        return Err(Error::new(ErrorKind::Shape, OP, message).help("`pad` or `center_crop` the picture first"));
    }
    let (rows, columns) = (rows.idiv(&factor), columns.idiv(&factor));
    let with = |dims: &[Dim]| -> Shape { lead.iter().chain(dims).cloned().collect() };
    let split = with(&[channels.clone(), rows.clone(), factor.clone(), columns.clone(), factor.clone()]);
    let x = reshape(b, x, &split)?;
    let x = reordered(b, x, lead.len(), [0, 2, 4, 1, 3])?;
    reshape(b, x, &with(&[channels * factor.clone() * factor, rows, columns]))
}

/// The windows of [`unfold`](super::window::unfold) (in the last axis) added up where they were cut from: `axis` then
/// has `length` elements.
pub fn fold(b: &mut dyn Builder, x: NodeId, axis: i64, length: i64, step: i64) -> Result<NodeId> {
    const OP: &str = "fold";
    let shape = shape_of(b, x);
    let Some((size, lead)) = shape.split_last() else {
        return Err(Error::new(ErrorKind::Rank, OP, "a scalar has no windows")
            .help("windows are an axis and their elements the last one, as `unfold` makes them"));
    };
    let axis = super::axis_of(OP, axis, lead)?;
    let (Some(size), Some(count)) = (size.as_const(), lead[axis].as_const()) else {
        return Err(Error::new(ErrorKind::Unsupported, OP, format!("windows of {}, of named sizes", show(&shape))));
    };
    if step < 1 || count < 1 || (count - 1).saturating_mul(step).saturating_add(size) > length {
        let message = format!("{count} windows of {size}, {step} apart, do not fit {length} elements");
        return Err(Error::new(ErrorKind::Shape, OP, message)
            .help("`length` is at least (windows - 1) · step + the elements of a window"));
    }
    // A window is split into `parts` pieces of `step` elements; piece k of window w is added to piece w + k of the result. Reading rows
    // of `count + parts` pieces as rows that are one piece shorter shifts row k by k pieces, so a sum over the rows adds them up.
    let mut outer: Shape = lead.into();
    outer.remove(axis);
    let parts = (size + step - 1) / step;
    let dtype = dtype_of(b, x);
    let with =
        |dims: &[i64]| -> Shape { outer.iter().cloned().chain(dims.iter().map(|&dim| Dim::from(dim))).collect() };
    let outer_axes = outer.len() as i64;
    let others = (0..lead.len() as i64).filter(|&other| other != axis as i64);
    let order: Vec<i64> = others.chain([axis as i64, lead.len() as i64]).collect();
    let x = permute(b, x, &order)?;
    let x = padded(b, x, &with(&[count, parts * step]))?;
    let x = reshape(b, x, &with(&[count, parts, step]))?;
    let x = transpose(b, x, outer_axes, outer_axes + 1)?;
    let x = padded(b, x, &with(&[parts, count + parts, step]))?;
    let x = reshape(b, x, &with(&[parts * (count + parts), step]))?;
    let x = narrow(b, x, outer_axes, 0, parts * (count + parts - 1))?;
    let x = reshape(b, x, &with(&[parts, count + parts - 1, step]))?;
    let x = sum(b, x, Some(&[outer_axes]), false)?;
    let x = cast(b, x, dtype)?;
    let pieces = (count + parts - 1) * step;
    let x = reshape(b, x, &with(&[pieces]))?;
    let x = narrow(b, x, outer_axes, 0, pieces.min(length))?;
    let x = padded(b, x, &with(&[length]))?;
    let back: Vec<i64> = (0..axis as i64).chain([outer_axes]).chain(axis as i64..outer_axes).collect();
    permute(b, x, &back)
}

/// Pads each axis with zeros at its end, up to a shape.
fn padded(b: &mut dyn Builder, x: NodeId, shape: &[Dim]) -> Result<NodeId> {
    let zeros: Shape = shape.iter().map(|_| Dim::from(0)).collect();
    pad(b, x, &zeros, shape, 0.0)
}

/// The middle of the last axes: `size` elements of each; shorter axes are padded with zeros.
pub fn center_crop(b: &mut dyn Builder, x: NodeId, size: &[i64]) -> Result<NodeId> {
    const OP: &str = "center_crop";
    let shape = shape_of(b, x);
    let Some(lead) = shape.len().checked_sub(size.len()) else {
        return Err(Error::new(ErrorKind::Rank, OP, format!("sizes {size:?} for {}", show(&shape)))
            .help("a size for each of the last axes"));
    };
    let zeros: Shape = shape.iter().map(|_| Dim::from(0)).collect();
    let (mut cut, mut kept, mut offset, mut target) = (zeros.clone(), shape.clone(), zeros, shape.clone());
    for (axis, &size) in (lead..).zip(size) {
        let length = fixed_length(OP, &shape, axis)?;
        within(OP, size, 0..1 << 31, || format!("{size} elements of axis {axis}"))?;
        cut[axis] = Dim::from((length - size).max(0) / 2);
        kept[axis] = Dim::from(size.min(length));
        offset[axis] = Dim::from((size - length).max(0) / 2);
        target[axis] = Dim::from(size);
    }
    let x = shrink(b, x, &cut, &kept)?;
    pad(b, x, &offset, &target, 0.0)
}

/// The channels (axis 1) of `groups` groups, dealt in turn.
pub fn channel_shuffle(b: &mut dyn Builder, x: NodeId, groups: i64) -> Result<NodeId> {
    const OP: &str = "channel_shuffle";
    let shape = shape_of(b, x);
    let count = Dim::from(groups);
    let Some(channels) = shape.get(1).filter(|channels| groups > 0 && channels.modulo(&count).is(0)) else {
        let message = format!("{groups} groups of the channels (axis 1) of {}", show(&shape));
        return Err(Error::new(ErrorKind::Shape, OP, message).help("the channels are a multiple of the groups"));
    };
    let mut split: Shape = shape.clone();
    split[1] = channels.idiv(&count);
    split.insert(1, count);
    let x = reshape(b, x, &split)?;
    let x = super::movement::transpose(b, x, 1, 2)?;
    reshape(b, x, &shape)
}
