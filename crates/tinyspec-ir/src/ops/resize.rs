//! Ops that change the length of axes by data-independent indices: other ways to pad, and interpolation.

use super::creation::{arange_dim, size};
use super::movement::{cat, expand, flip, movedim, narrow, repeat_interleave, reshape};
use super::slice::{self, Slice};
use super::{cast, dtype_of, shape_of, to_float, within};
use crate::dim::show;
use crate::{Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// `before` and `after` more elements at the ends of the last axes, taken from `x` itself: mirrored without the edge
/// (`"reflect"`), the edge again (`"replicate"`), or from the other end (`"circular"`).
pub fn pad_mode(b: &mut dyn Builder, x: NodeId, before: &[i64], after: &[i64], mode: &str) -> Result<NodeId> {
    const OP: &str = "pad_mode";
    let shape = shape_of(b, x);
    let Some(lead) = shape.len().checked_sub(before.len()).filter(|_| before.len() == after.len()) else {
        let message = format!("{before:?} before and {after:?} after the axes of {}", show(&shape));
        return Err(Error::new(ErrorKind::Rank, OP, message).help("both name the last axes, a number for each"));
    };
    let mut x = x;
    for (axis, (&before, &after)) in (lead..).zip(before.iter().zip(after)) {
        let length = &shape[axis];
        let greatest = match mode {
            "reflect" => length - 1,
            "replicate" if length.bounds().1 > 0 => Dim::from(i64::MAX),
            "replicate" | "circular" => length.clone(),
            _ => {
                return Err(Error::new(ErrorKind::Value, OP, format!("the mode `{mode}` is unknown"))
                    .help("`reflect`, `replicate` or `circular`; `pad` fills with a value"));
            }
        };
        let greatest = greatest.bounds().1;
        if !(0..=greatest).contains(&before) || !(0..=greatest).contains(&after) {
            let message = format!("{before} before and {after} after the {length} elements of axis {axis}");
            return Err(Error::new(ErrorKind::Value, OP, message).help(format!("`{mode}` takes them from the axis")));
        }
        let ends = match mode {
            "reflect" => [(Dim::from(1), before), (length - 1 - after, after)],
            "circular" => [(length - before, before), (Dim::from(0), after)],
            _ => [(Dim::from(0), before), (length - 1, after)],
        };
        let mut parts = Vec::new();
        for (end, (start, count)) in ends.into_iter().enumerate() {
            if end == 1 {
                parts.push(x);
            }
            if count == 0 {
                continue;
            }
            let axis = axis as i64;
            parts.push(match mode {
                "replicate" => {
                    let edge = narrow(b, x, axis, start, 1)?;
                    let mut wide = shape_of(b, edge);
                    wide[axis as usize] = Dim::from(count);
                    expand(b, edge, &wide)?
                }
                "reflect" => {
                    let mirrored = narrow(b, x, axis, start, count)?;
                    flip(b, mirrored, &[axis])?
                }
                _ => narrow(b, x, axis, start, count)?,
            });
        }
        x = cat(b, &parts, axis as i64)?;
    }
    Ok(x)
}

/// The last axes at other lengths: `mode` is `"nearest"`, `"nearest-exact"` (from the middle of an element),
/// `"linear"` (`"bilinear"`, `"trilinear"`) or `"cubic"` (`"bicubic"`, by Keys, 1981), where `align_corners` keeps the ends
/// in place, or `"area"` (means).
pub fn interpolate(b: &mut dyn Builder, x: NodeId, size: &[i64], mode: &str, align_corners: bool) -> Result<NodeId> {
    resized(b, "interpolate", x, size, None, mode, align_corners)
}

/// [`interpolate`] of the axes after the first two, each `factor` times as long, rounded down. Where the ends are not kept in
/// place, elements are exactly `1 / factor` apart, which the rounded lengths are not.
pub fn interpolate_scale(
    b: &mut dyn Builder,
    x: NodeId,
    factor: f64,
    mode: &str,
    align_corners: bool,
) -> Result<NodeId> {
    const OP: &str = "interpolate_scale";
    let shape = shape_of(b, x);
    let Some(ratio) = Ratio::near(factor) else {
        return Err(Error::new(ErrorKind::Value, OP, format!("a factor of {factor}"))
            .help("it is greater than 0, and below 2^20"));
    };
    let lengths: Option<Vec<i64>> = shape.iter().skip(2).map(Dim::as_const).collect();
    let Some(lengths) = lengths.filter(|_| shape.len() > 2) else {
        let message = format!("needs (batch, channels, …) with numbers as the other lengths, found {}", show(&shape));
        return Err(Error::new(ErrorKind::Shape, OP, message).help("`interpolate` takes the new lengths"));
    };
    let size: Vec<i64> = lengths.iter().map(|&length| (length as f64 * factor).floor() as i64).collect();
    resized(b, OP, x, &size, Some(ratio), mode, align_corners)
}

/// A factor as the quotient of whole numbers.
#[derive(Clone, Copy)]
struct Ratio {
    above: i64,
    below: i64,
}

impl Ratio {
    /// Numbers of a million and more are left alone: places are counted in them.
    const MOST: f64 = (1 << 20) as f64;

    /// The simplest one that a factor is, by its continued fraction: 0.3 is 3/10, whatever its bits.
    fn near(factor: f64) -> Option<Ratio> {
        let (mut rest, mut before, mut ratio) = (factor, (0.0, 1.0), (1.0, 0.0));
        if !(factor > 1.0 / Ratio::MOST && factor < Ratio::MOST) {
            return None;
        }
        loop {
            let whole = rest.floor();
            let next = (whole * ratio.0 + before.0, whole * ratio.1 + before.1);
            if next.0 >= Ratio::MOST || next.1 >= Ratio::MOST {
                break;
            }
            (before, ratio) = (ratio, next);
            if (ratio.0 / ratio.1 / factor - 1.0).abs() < 1e-12 {
                break;
            }
            rest = 1.0 / (rest - whole);
        }
        Some(Ratio { above: ratio.0 as i64, below: ratio.1 as i64 }).filter(|ratio| ratio.above > 0 && ratio.below > 0)
    }
}

fn resized(
    b: &mut dyn Builder,
    op: &str,
    x: NodeId,
    size: &[i64],
    ratio: Option<Ratio>,
    mode: &str,
    align_corners: bool,
) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let Some(lead) = shape.len().checked_sub(size.len()) else {
        return Err(Error::new(ErrorKind::Rank, op, format!("sizes {size:?} for {}", show(&shape)))
            .help("a size for each of the last axes"));
    };
    if mode == "area" {
        let x = to_float(b, x)?;
        return super::adaptive::area(b, op, x, size);
    }
    let way = match mode {
        "linear" | "bilinear" | "trilinear" => Way::Linear,
        "cubic" | "bicubic" => Way::Cubic,
        "nearest" | "nearest-exact" => Way::Nearest,
        _ => {
            return Err(Error::new(ErrorKind::Value, op, format!("the mode `{mode}` is unknown"))
                .help("`nearest`, `nearest-exact`, `linear`, `cubic` or `area`"));
        }
    };
    let between = way != Way::Nearest;
    let mut x = if between { to_float(b, x)? } else { x };
    for (axis, &to) in (lead..).zip(size) {
        let from = &shape[axis];
        let (least, most) = from.bounds();
        let message = || format!("axis {axis} from {from} to {to} elements");
        if most < 1 || least > 1 << 30 {
            return Err(Error::new(ErrorKind::Value, op, message()).help("from 1 to 1073741824 elements"));
        }
        within(op, to, 0..(1 << 30) + 1, message)?;
        // So many elements become so many.
        let (before, after) = match ratio {
            Some(Ratio { above, below }) => (Dim::from(below), above),
            None => (from.clone(), to),
        };
        // Where element i of the result lies, as the whole numbers (i · step + start) / unit.
        let (step, start, unit) = match (between, align_corners) {
            (true, true) => (from - 1, Dim::from(0), (to - 1).max(1)),
            (true, false) => (&before * 2, &before - after, 2 * after),
            _ if mode == "nearest" => (before, Dim::from(0), after),
            _ => (&before * 2, before.clone(), 2 * after),
        };
        x = match whole_factor(from, to, (&step, &start, unit)).filter(|_| !between) {
            Some(Factor::Up(repeats)) => repeat_interleave(b, x, repeats, axis as i64)?,
            Some(Factor::Down(picked)) => {
                let mut slices = vec![Slice::ALL; axis];
                slices.push(picked);
                slice::get(b, op, x, &slices)?
            }
            None => resample(b, x, axis, &Resampling { from, to, step: &step, start: &start, unit: unit.max(1), way })?,
        };
    }
    Ok(x)
}

/// Nearest-neighbour resizing where one length is a multiple of the other.
enum Factor {
    /// How often each element is repeated.
    Up(i64),
    /// The elements that stay.
    Down(Slice),
}

/// The factor, if it is whole; element `i` of the result is the one at `(i · step + start) / unit`, where `start` is below `step`.
fn whole_factor(from: &Dim, to: i64, (step, start, unit): (&Dim, &Dim, i64)) -> Option<Factor> {
    let (from, step, start) = (from.as_const()?, step.as_const()?, start.as_const()?);
    if step > 0 && unit % step == 0 && from.checked_mul(unit / step)? == to {
        return Some(Factor::Up(unit / step));
    }
    if unit < 1 || step % unit != 0 || to.checked_mul(step / unit)? != from {
        return None;
    }
    Some(Factor::Down(Slice::Span { start: Some(start / unit), stop: None, step: step / unit }))
}

/// How a value between elements is made of them.
#[derive(Clone, Copy, PartialEq, Hash)]
enum Way {
    Nearest,
    Linear,
    Cubic,
}

/// Where the elements of a resized axis lie: element `i` of `to` at `(i · step + start) / unit` of `from`.
struct Resampling<'a> {
    from: &'a Dim,
    to: i64,
    step: &'a Dim,
    start: &'a Dim,
    unit: i64,
    way: Way,
}

/// The neighbours of an element: their places, and their weights; a single neighbour has none.
type Neighbours = Vec<(NodeId, Option<NodeId>)>;

fn resample(b: &mut dyn Builder, x: NodeId, axis: usize, resampling: &Resampling) -> Result<NodeId> {
    let Resampling { from, to, step, start, unit, way } = resampling;
    let (Some(from), Some(step), Some(start)) = (from.as_const(), step.as_const(), start.as_const()) else {
        return resampling.forward(b, x, axis);
    };
    if !dtype_of(b, x).is_float() || step == 0 {
        return resampling.forward(b, x, axis);
    }
    let what = ("resample", from, *to, step, start, *unit, *way, axis);
    let body = |b: &mut dyn Builder, x: &[NodeId]| Ok(vec![resampling.forward(b, x[0], axis)?]);
    let gradient = |b: &mut dyn Builder, _: &[NodeId], g: &[NodeId]| Ok(vec![resampling.backward(b, g[0], axis)?]);
    Ok(super::function::with_gradient(b, what, &[x], &body, &gradient)?[0])
}

impl Resampling<'_> {
    /// An integer type for places.
    fn dtype(&self) -> DType {
        if self.step.bounds().1.saturating_mul(self.to) < 1 << 30 { DType::I32 } else { DType::I64 }
    }

    /// The neighbours of the elements `i` of the result.
    fn neighbours(&self, b: &mut dyn Builder, i: NodeId, wide: DType) -> Result<Neighbours> {
        let dtype = self.dtype();
        let number = |b: &mut dyn Builder, value: i64| b.constant(Const::int(dtype, value as i128));
        let (step, start) = (size(b, self.step, dtype)?, size(b, self.start, dtype)?);
        let (unit, zero) = (number(b, self.unit), number(b, 0));
        let place = b.alu(Op::Mul, &[i, step])?;
        let place = b.alu(Op::Add, &[place, start])?;
        let place = if self.way == Way::Cubic { place } else { b.alu(Op::Max, &[place, zero])? };
        let lower = b.alu(Op::Idiv, &[place, unit])?;
        if self.way == Way::Nearest {
            return Ok(vec![(lower, None)]);
        }
        let rest = b.alu(Op::Mod, &[place, unit])?;
        let rest = cast(b, rest, wide)?;
        let share = super::elementwise::scale(b, rest, 1.0 / self.unit as f64)?;
        let last = size(b, &(self.from - 1), dtype)?;
        let neighbour = |b: &mut dyn Builder, distance: i64, weight: NodeId| -> Result<(NodeId, Option<NodeId>)> {
            let distance = number(b, distance);
            let place = b.alu(Op::Add, &[lower, distance])?;
            let (below, beyond) = (b.alu(Op::CmpLt, &[place, zero])?, b.alu(Op::CmpLt, &[last, place])?);
            let place = b.alu(Op::Where, &[beyond, last, place])?;
            Ok((b.alu(Op::Where, &[below, zero, place])?, Some(weight)))
        };
        if self.way == Way::Linear {
            let minus = super::arithmetic::neg(b, share)?;
            let rest = super::elementwise::shift(b, minus, 1.0)?;
            return Ok(vec![neighbour(b, 0, rest)?, neighbour(b, 1, share)?]);
        }
        let mut all = vec![];
        for (distance, weights) in (-1..).zip(CUBIC) {
            let weight = super::elementwise::polynomial(b, share, &weights)?;
            all.push(neighbour(b, distance, weight)?);
        }
        Ok(all)
    }

    fn forward(&self, b: &mut dyn Builder, x: NodeId, axis: usize) -> Result<NodeId> {
        let ramp = arange_dim(b, &Dim::from(self.to), self.dtype())?;
        let float = dtype_of(b, x);
        let wide = float.accumulator();
        let mut values = vec![];
        for (place, weight) in self.neighbours(b, ramp, wide)? {
            let value = picked(b, x, axis, place)?;
            let Some(weight) = weight else { return Ok(value) };
            values.push((cast(b, value, wide)?, along(b, weight, axis, value)?));
        }
        let mixed = match values[..] {
            // Exact if both neighbours are equal.
            [(low, _), (high, share)] => super::arithmetic::lerp(b, low, high, share)?,
            _ => {
                let products: Result<Vec<NodeId>> =
                    values.into_iter().map(|(value, weight)| b.alu(Op::Mul, &[value, weight])).collect();
                sum_of(b, products?)?
            }
        };
        cast(b, mixed, float)
    }

    /// The gradient as a gather: each operand element contributes to a bounded number of consecutive results.
    fn backward(&self, b: &mut dyn Builder, g: NodeId, axis: usize) -> Result<NodeId> {
        let dtype = self.dtype();
        let number = |b: &mut dyn Builder, value: i64| b.constant(Const::int(dtype, value as i128));
        let (Some(from), Some(step), Some(start)) = (self.from.as_const(), self.step.as_const(), self.start.as_const())
        else {
            unreachable!("only resizing of known sizes has a gradient of its own")
        };
        // The last of the `span` neighbours of a place lies `reach` beyond the element at or below it.
        let (reach, span) = match self.way {
            Way::Nearest => (0, 1),
            Way::Linear => (1, 2),
            Way::Cubic => (2, 4),
        };
        let most = ((span * self.unit + step - 1) / step).min(self.to);
        let float = dtype_of(b, g);
        let wide = float.accumulator();
        // Element `j` contributes first to the result at or behind `(j - reach) · unit`.
        let j = arange_dim(b, &Dim::from(from), dtype)?;
        let j = reshape(b, j, &[Dim::from(from), Dim::from(1)])?;
        let (unit, divisor) = (number(b, self.unit), number(b, step));
        let offset = number(b, step - 1 - start - reach * self.unit);
        let first = b.alu(Op::Mul, &[j, unit])?;
        let first = b.alu(Op::Add, &[first, offset])?;
        let first = b.alu(Op::Idiv, &[first, divisor])?;
        let zero = number(b, 0);
        let first = b.alu(Op::Max, &[first, zero])?;
        let k = arange_dim(b, &Dim::from(most), dtype)?;
        let i = super::arithmetic::add(b, first, k)?;
        let to = number(b, self.to);
        let is_inside = b.alu(Op::CmpLt, &[i, to])?;
        let mut weights = vec![];
        for (place, weight) in self.neighbours(b, i, wide)? {
            let hit = super::arithmetic::eq(b, place, j)?;
            let hit = b.alu(Op::And, &[hit, is_inside])?;
            let (one, none) = (b.constant(Const::float(wide, 1.0)), b.constant(Const::float(wide, 0.0)));
            weights.push(b.alu(Op::Where, &[hit, weight.unwrap_or(one), none])?);
        }
        let weights = sum_of(b, weights)?;
        let last = number(b, self.to - 1);
        let i = super::arithmetic::minimum(b, i, last)?;
        let found = picked(b, g, axis, i)?;
        let weights = along(b, weights, axis, found)?;
        let found = cast(b, found, wide)?;
        let products = b.alu(Op::Mul, &[found, weights])?;
        let total = super::reduce::sum(b, products, Some(&[axis as i64 + 1]), false)?;
        cast(b, total, float)
    }
}

/// The sum of one value and more.
fn sum_of(b: &mut dyn Builder, values: Vec<NodeId>) -> Result<NodeId> {
    let mut values = values.into_iter();
    let first = values.next().unwrap_or_else(|| unreachable!("every element has neighbours"));
    values.try_fold(first, |sum, value| b.alu(Op::Add, &[sum, value]))
}

/// Gathers along an axis, which the axes of `places` replace. Unlike indices from a user, `places` are known to be in bounds.
fn picked(b: &mut dyn Builder, x: NodeId, axis: usize, places: NodeId) -> Result<NodeId> {
    let rows = movedim(b, x, axis as i64, 0)?;
    slice::rows_at(b, rows, places, axis)
}

/// `weights` as a factor of `x`, along its axes from `axis` on.
fn along(b: &mut dyn Builder, weights: NodeId, axis: usize, x: NodeId) -> Result<NodeId> {
    let mut shape: Shape = shape_of(b, x).iter().map(|_| Dim::from(1)).collect();
    for (dim, size) in shape[axis..].iter_mut().zip(shape_of(b, weights)) {
        *dim = size;
    }
    reshape(b, weights, &shape)
}

/// The weights of the four neighbours by the share of the way, highest power first, with slope -3/4 at distance 1.
const CUBIC: [[f64; 4]; 4] =
    [[-0.75, 1.5, -0.75, 0.0], [1.25, -2.25, 0.0, 1.0], [-1.25, 1.5, 0.75, 0.0], [0.75, -0.75, 0.0, 0.0]];
