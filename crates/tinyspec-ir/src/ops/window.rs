//! Sliding windows as views: Reshape, Expand, Shrink and Permute place every window's elements beside each other, and
//! Rangeify turns that into the index `position * stride + element * dilation`. Nothing is copied.

use super::movement::{expand, pad, permute, reshape, shrink};
use super::{axis_of, shape_of, within};
use crate::dim::show;
use crate::{Builder, Dim, Error, ErrorKind, NodeId, Result, Shape};

/// The windows along one axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub size: i64,
    pub stride: i64,
    pub dilation: i64,
}

impl Window {
    /// From the first element to the last, both included.
    pub fn span(&self) -> i64 {
        (self.size - 1) * self.dilation + 1
    }

    /// The least length of a copy of the axis, if the starts of windows span `steps` elements: no row of starts wraps into another
    /// copy.
    fn reach(&self, steps: &Dim) -> Dim {
        steps.clone() + Dim::from((self.size - 2) * self.dilation)
    }

    /// How many windows lie in `length` elements.
    fn count(&self, length: &Dim) -> Dim {
        (length.clone() - Dim::from(self.span())).idiv(&Dim::from(self.stride)) + Dim::from(1)
    }
}

/// Anything greater is a mistake, and could not be computed with.
const GREATEST: i64 = 1 << 31;

/// Refuses a padding that is negative or beyond all measure.
pub(crate) fn check_padding(op: &str, padding: &[i64]) -> Result<()> {
    let message = || format!("a padding of {padding:?}");
    padding.iter().try_for_each(|&count| within(op, count, 0..GREATEST, message))
}

/// The padding before and after each axis.
///
/// # Errors
/// As [`check_padding`].
pub(crate) fn padding_ends<const N: usize>(
    op: &str,
    padding: [i64; N],
    padding_end: Option<[i64; N]>,
) -> Result<[[i64; 2]; N]> {
    let after = padding_end.unwrap_or(padding);
    check_padding(op, &padding)?;
    check_padding(op, &after)?;
    Ok(std::array::from_fn(|axis| [padding[axis], after[axis]]))
}

/// Refuses windows without elements or steps.
pub(crate) fn check(op: &str, windows: &[Window]) -> Result<()> {
    for window in windows {
        for (name, value) in [("window size", window.size), ("stride", window.stride), ("dilation", window.dilation)] {
            within(op, value, 1..GREATEST, || format!("a {name} of {value}"))?;
        }
    }
    Ok(())
}

/// `before` and `after` elements of `value` at the ends of the last axes; negative counts cut off.
pub(crate) fn pad_ends(b: &mut dyn Builder, x: NodeId, before: &[i64], after: &[i64], value: f64) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let lead = shape.len().saturating_sub(before.len());
    let mut x = x;
    for grow in [false, true] {
        let change = |count: i64| if grow { count.max(0) } else { count.min(0) };
        let (mut offset, mut target): (Shape, Shape) = (shape.iter().map(|_| Dim::from(0)).collect(), shape_of(b, x));
        for (axis, (&before, &after)) in (lead..).zip(before.iter().zip(after)) {
            offset[axis] = Dim::from(change(before).abs());
            target[axis] = target[axis].clone() + Dim::from(change(before) + change(after));
        }
        x = match grow {
            true => pad(b, x, &offset, &target, value)?,
            false => shrink(b, x, &offset, &target)?,
        };
    }
    Ok(x)
}

/// The windows over the last axes, one of `windows` each: from `lead + lengths` to `lead + counts + sizes`.
pub(crate) fn windows(b: &mut dyn Builder, op: &str, x: NodeId, windows: &[Window]) -> Result<NodeId> {
    check(op, windows)?;
    let shape = shape_of(b, x);
    let Some(lead) = shape.len().checked_sub(windows.len()) else {
        let message = format!("windows over {} axes of {}", windows.len(), show(&shape));
        return Err(Error::new(ErrorKind::Rank, op, message).help("`unsqueeze(0)` adds an axis in front"));
    };
    let mut x = x;
    for (axis, window) in (lead..).zip(windows) {
        x = along_axis(b, op, x, axis, *window)?;
    }
    Ok(x)
}

/// Windows of one axis, their elements in a new last axis.
fn along_axis(b: &mut dyn Builder, op: &str, x: NodeId, axis: usize, window: Window) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let count = window.count(&shape[axis]);
    if count.bounds().1 < 1 {
        let message =
            format!("a window that spans {} elements does not fit axis {axis} of {}", window.span(), show(&shape));
        return Err(Error::new(ErrorKind::Shape, op, message).help("pad the axis, or use a smaller window"));
    }
    let Window { size, stride, dilation } = window;
    let mut view = AxisView { b, x, axis };
    if (&shape[axis] - &Dim::from(window.span())).bounds().0 < 0 {
        view.must_hold(window.span())?;
    }
    if size == stride && dilation == 1 {
        // Beside each other: the windows are the rows.
        view.keep(count.clone() * Dim::from(size))?;
        view.split(&[count, Dim::from(size)])?;
        return view.moved_last(axis + 1);
    }
    let steps = count.clone() * Dim::from(stride);
    if size > 1 {
        // A copy of the axis for each element of a window, cut into rows of `length + dilation`: row k starts at
        // element k * dilation of copy k.
        view.at_least(window.reach(&steps))?;
        let row = view.length() + Dim::from(dilation);
        view.repeat(Dim::from(size))?;
        view.filled(Dim::from(size) * row.clone())?;
        view.split(&[Dim::from(size), row])?;
    } else {
        view.at_least(steps.clone())?;
        let length = view.length();
        view.split(&[Dim::from(1), length])?;
    }
    view.axis += 1;
    view.keep(steps)?;
    view.split(&[count, Dim::from(stride)])?;
    view.axis += 1;
    view.keep(Dim::from(1))?;
    view.drop()?;
    view.moved_last(axis)
}

/// Windows added up where [`windows`] reads their elements: from `lead + counts + sizes` to `lead + lengths`, which are
/// long enough for all of them.
pub(crate) fn folded(b: &mut dyn Builder, x: NodeId, windows: &[Window], lengths: &[Dim]) -> Result<NodeId> {
    let lead = shape_of(b, x).len() - 2 * windows.len();
    let mut x = x;
    for (number, (window, length)) in windows.iter().zip(lengths).enumerate().rev() {
        x = back_along_axis(b, x, lead + number, *window, length)?;
    }
    Ok(x)
}

/// The steps of [`along_axis`] backwards.
fn back_along_axis(b: &mut dyn Builder, x: NodeId, axis: usize, window: Window, length: &Dim) -> Result<NodeId> {
    let Window { size, stride, dilation } = window;
    let shape = shape_of(b, x);
    let (count, last) = (shape[axis].clone(), shape.len() - 1);
    let are_beside = size == stride && dilation == 1;
    let first = if are_beside { axis + 1 } else { axis };
    let order: Vec<i64> = (0..first).chain([last]).chain(first..last).map(|axis| axis as i64).collect();
    let x = permute(b, x, &order)?;
    let mut view = AxisView { b, x, axis };
    if are_beside {
        view.join()?;
        view.filled(length.clone())?;
        return Ok(view.x);
    }
    // Zeros between the steps of each row of elements.
    let steps = count.clone() * Dim::from(stride);
    view.axis += 1;
    view.split(&[count, Dim::from(1)])?;
    view.axis += 1;
    view.filled(Dim::from(stride))?;
    view.axis -= 1;
    view.join()?;
    let reach = if size > 1 { window.reach(&steps) } else { steps };
    let whole = length.maximum(&reach);
    view.filled(if size > 1 { whole.clone() + Dim::from(dilation) } else { whole.clone() })?;
    view.axis -= 1;
    view.join()?;
    if size > 1 {
        view.keep(Dim::from(size) * whole.clone())?;
        view.split(&[Dim::from(size), whole])?;
        view.x = super::reduce::sum(view.b, view.x, Some(&[axis as i64]), false)?;
    }
    view.keep(length.clone())?;
    Ok(view.x)
}

/// Steps along one axis of a view.
struct AxisView<'a> {
    b: &'a mut dyn Builder,
    x: NodeId,
    axis: usize,
}

impl AxisView<'_> {
    fn length(&self) -> Dim {
        self.b.props(self.x).shape[self.axis].clone()
    }

    fn replaced(&self, dims: &[Dim]) -> Shape {
        let shape = &self.b.props(self.x).shape;
        shape[..self.axis].iter().chain(dims).chain(&shape[self.axis + 1..]).cloned().collect()
    }

    fn split(&mut self, dims: &[Dim]) -> Result<()> {
        let target = self.replaced(dims);
        self.x = reshape(self.b, self.x, &target)?;
        Ok(())
    }

    /// One axis of this and the next.
    fn join(&mut self) -> Result<()> {
        let mut target = shape_of(self.b, self.x);
        let next = target.remove(self.axis + 1);
        target[self.axis] = target[self.axis].clone() * next;
        self.x = reshape(self.b, self.x, &target)?;
        Ok(())
    }

    fn drop(&mut self) -> Result<()> {
        self.split(&[])
    }

    fn keep(&mut self, length: Dim) -> Result<()> {
        let target = self.replaced(&[length]);
        let offset: Shape = target.iter().map(|_| Dim::from(0)).collect();
        self.x = shrink(self.b, self.x, &offset, &target)?;
        Ok(())
    }

    /// Says that the axis has so many elements, which is known when it has a size: a count of windows may be 0 where none fits.
    fn must_hold(&mut self, elements: i64) -> Result<()> {
        let length = self.length();
        self.keep(length.maximum(&Dim::from(elements)))?;
        self.keep(length)
    }

    /// Zeros at the end that no window reads, so that whole steps can be cut.
    fn at_least(&mut self, length: Dim) -> Result<()> {
        let (have, enough) = (self.length(), self.length().maximum(&length));
        if have == enough { Ok(()) } else { self.filled(enough) }
    }

    /// Zeros at the end.
    fn filled(&mut self, length: Dim) -> Result<()> {
        let target = self.replaced(&[length]);
        let offset: Shape = target.iter().map(|_| Dim::from(0)).collect();
        self.x = pad(self.b, self.x, &offset, &target, 0.0)?;
        Ok(())
    }

    fn repeat(&mut self, copies: Dim) -> Result<()> {
        let length = self.length();
        let (row, wide) =
            (self.replaced(&[Dim::from(1), length.clone()]), self.replaced(&[copies.clone(), length.clone()]));
        let flat = self.replaced(&[copies * length]);
        self.x = reshape(self.b, self.x, &row)?;
        self.x = expand(self.b, self.x, &wide)?;
        self.x = reshape(self.b, self.x, &flat)?;
        Ok(())
    }

    fn moved_last(self, axis: usize) -> Result<NodeId> {
        let rank = self.b.props(self.x).rank();
        let order: Vec<i64> = (0..rank).filter(|&other| other != axis).chain([axis]).map(|axis| axis as i64).collect();
        permute(self.b, self.x, &order)
    }
}

/// Windows of `size` along an axis, `step` apart, their elements in a new last axis.
pub fn unfold(b: &mut dyn Builder, x: NodeId, axis: i64, size: i64, step: i64) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let axis = axis_of("unfold", axis, &shape)?;
    let window = Window { size, stride: step, dilation: 1 };
    check("unfold", &[window])?;
    along_axis(b, "unfold", x, axis, window)
}
