//! Pooling: a Reduce over the elements of each window.

use super::options::{AvgPool, MaxPool, per_axis};
use super::window::{Window, check, pad_ends, windows};
use super::{dtype_of, in_wide, like, shape_of};
use crate::dim::show;
use crate::{Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result};

/// The options of a pool for each axis; without a stride windows do not overlap, without `padding_end` both ends are
/// padded alike.
struct Spacing<const N: usize> {
    stride: Option<[i64; N]>,
    padding: [i64; N],
    padding_end: Option<[i64; N]>,
    dilation: [i64; N],
}

/// The windows of a pool, and the padding before and after each axis.
struct Layout<const N: usize> {
    windows: [Window; N],
    before: [i64; N],
    after: [i64; N],
    /// The padding that `ceil_mode` adds behind `after`.
    beyond: [i64; N],
}

impl<const N: usize> Layout<N> {
    fn new(b: &dyn Builder, op: &str, x: NodeId, size: &[i64], spacing: Spacing<N>, ceil_mode: bool) -> Result<Self> {
        let Spacing { stride, padding, padding_end, dilation } = spacing;
        let shape = shape_of(b, x);
        let lengths = shape.len().checked_sub(N).map(|lead| &shape[lead..]);
        let Some(lengths) = lengths else {
            let message = format!("needs at least {N} axes, found {}", show(&shape));
            return Err(Error::new(ErrorKind::Rank, op, message).help("`unsqueeze(0)` adds an axis in front"));
        };
        let Some(size) = per_axis::<N>(size) else {
            let message = format!("a kernel of {size:?} over {N} axes");
            return Err(Error::new(ErrorKind::Shape, op, message).help("one size, or one for each axis"));
        };
        let stride = stride.unwrap_or(size);
        let windows =
            std::array::from_fn(|axis| Window { size: size[axis], stride: stride[axis], dilation: dilation[axis] });
        check(op, &windows)?;
        let after = padding_end.unwrap_or(padding);
        for axis in 0..N {
            let span = windows[axis].span();
            let (most, help) = match padding_end {
                None => (span / 2, "at most half a window is padding"),
                Some(_) => (span - 1, "the padding at an end is less than a window"),
            };
            if let Some(count) = [padding[axis], after[axis]].into_iter().find(|count| !(0..=most).contains(count)) {
                let message = format!("a padding of {count} for windows that span {span}");
                return Err(Error::new(ErrorKind::Value, op, message).help(help));
            }
        }
        let mut layout = Layout { windows, before: padding, after, beyond: [0; N] };
        if ceil_mode {
            for (axis, length) in lengths.iter().enumerate() {
                layout.beyond[axis] = beyond(op, length, windows[axis], [padding[axis], after[axis]])?;
            }
        }
        Ok(layout)
    }

    /// The elements of each window in `N` last axes, `fill` outside of `x`.
    fn views(&self, b: &mut dyn Builder, op: &str, x: NodeId, fill: f64) -> Result<NodeId> {
        let after: [i64; N] = std::array::from_fn(|axis| self.after[axis] + self.beyond[axis]);
        let padded = pad_ends(b, x, &self.before, &after, fill)?;
        windows(b, op, padded, &self.windows)
    }

    fn summed(&self) -> Vec<i64> {
        (-(N as i64)..0).collect()
    }
}

/// How far the last window that starts inside reaches beyond the padding.
fn beyond(op: &str, length: &Dim, window: Window, [before, after]: [i64; 2]) -> Result<i64> {
    let Some(length) = length.as_const() else {
        return Err(Error::new(ErrorKind::Unsupported, op, format!("ceil_mode with the dim {length}")));
    };
    let padded = length + before + after;
    let rest = padded - window.span();
    if rest < 0 {
        return Ok(0);
    }
    let mut steps = (rest + window.stride - 1) / window.stride;
    if steps * window.stride >= length + before {
        steps -= 1;
    }
    Ok((steps * window.stride + window.span() - padded).max(0))
}

/// Greatest element of each window over the last N axes.
pub fn max_pool<const N: usize>(b: &mut dyn Builder, x: NodeId, size: &[i64], options: MaxPool<N>) -> Result<NodeId> {
    let op = format!("max_pool{N}d");
    let MaxPool { stride, padding, padding_end, dilation, ceil_mode } = options;
    let layout = Layout::new(b, &op, x, size, Spacing { stride, padding, padding_end, dilation }, ceil_mode)?;
    let views = layout.views(b, &op, x, f64::NEG_INFINITY)?;
    super::reduce::max(b, views, Some(&layout.summed()), false)
}

/// Mean of each window over the last N axes.
pub fn avg_pool<const N: usize>(b: &mut dyn Builder, x: NodeId, size: &[i64], options: AvgPool<N>) -> Result<NodeId> {
    let op = format!("avg_pool{N}d");
    let AvgPool { stride, padding, padding_end, ceil_mode, count_include_pad } = options;
    in_wide(b, x, |b, x| {
        let layout =
            Layout::new(b, &op, x, size, Spacing { stride, padding, padding_end, dilation: [1; N] }, ceil_mode)?;
        let views = layout.views(b, &op, x, 0.0)?;
        let total = super::reduce::sum(b, views, Some(&layout.summed()), false)?;
        let is_padded = layout.before != [0; N] || layout.after != [0; N];
        let partial = layout.beyond != [0; N] || !count_include_pad && is_padded;
        let count = if partial {
            // Counts by summing a tensor of ones, with 0 for elements that do not count.
            let shape = shape_of(b, x);
            let one = b.constant(Const::int(DType::I32, 1));
            let inside = super::movement::expand(b, one, &shape[shape.len() - N..])?;
            let inside =
                if count_include_pad { pad_ends(b, inside, &layout.before, &layout.after, 1.0)? } else { inside };
            let layout = match count_include_pad {
                true => Layout { before: [0; N], after: [0; N], ..layout },
                false => layout,
            };
            let views = layout.views(b, &op, inside, 0.0)?;
            let count = super::reduce::sum(b, views, Some(&layout.summed()), false)?;
            let dtype = dtype_of(b, total);
            super::cast(b, count, dtype)?
        } else {
            like(b, total, layout.windows.iter().map(|window| window.size).product::<i64>() as f64)
        };
        b.alu(Op::Div, &[total, count])
    })
}

/// `(Σ |x|^p)^(1/p)` of each window over the last N axes, `p` at least 1.
pub fn lp_pool<const N: usize>(
    b: &mut dyn Builder,
    x: NodeId,
    p: f64,
    size: &[i64],
    options: AvgPool<N>,
) -> Result<NodeId> {
    let op = format!("lp_pool{N}d");
    if !p.is_finite() || p < 1.0 {
        return Err(Error::new(ErrorKind::Value, &op, format!("the {p}-norm")).help("at least 1, and finite"));
    }
    let AvgPool { stride, padding, padding_end, ceil_mode, .. } = options;
    in_wide(b, x, |b, x| {
        let layout =
            Layout::new(b, &op, x, size, Spacing { stride, padding, padding_end, dilation: [1; N] }, ceil_mode)?;
        let views = layout.views(b, &op, x, 0.0)?;
        super::distance::norm(b, views, p, Some(&layout.summed()), false).map_err(|error| error.in_op(&op))
    })
}
