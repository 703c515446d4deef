//! Pictures read at places that are data.

use super::arithmetic::{add, mul, sub};
use super::elementwise::{floor, round, scale, shift};
use super::movement::{flatten, reshape, stack, unsqueeze};
use super::{cast, dtype_of, like, shape_of, to_float};
use crate::dim::show;
use crate::{Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// What lies outside of a picture.
#[derive(Clone, Copy, PartialEq)]
enum Outside {
    Zeros,
    Border,
    Reflection,
}

/// The places of a result of `size` (rows, columns) under the maps `theta`, 2×3 for each sample, in -1..1 of the picture:
/// `[N, rows, columns, 2]` as x and y.
pub fn affine_grid(b: &mut dyn Builder, theta: NodeId, size: &[i64], align_corners: bool) -> Result<NodeId> {
    const OP: &str = "affine_grid";
    let shape = shape_of(b, theta);
    let ([_, two, three], &[rows, columns]) = (&shape[..], size) else {
        let message = format!("maps of {} for sizes {size:?}", show(&shape));
        return Err(Error::new(ErrorKind::Shape, OP, message).help("(samples, 2, 3), and rows and columns"));
    };
    if !two.is(2) || !three.is(3) || rows < 1 || columns < 1 {
        let message = format!("maps of {} for sizes {size:?}", show(&shape));
        return Err(Error::new(ErrorKind::Shape, OP, message).help("(samples, 2, 3), and rows and columns"));
    }
    let theta = to_float(b, theta)?;
    let dtype = dtype_of(b, theta);
    let mut along = |length: i64| -> Result<NodeId> {
        let ramp = super::creation::arange_dim(b, &Dim::from(length), DType::I32)?;
        let ramp = cast(b, ramp, dtype)?;
        // Element i of n lies at (2i + 1)/n - 1, or with the ends in place at 2i/(n - 1) - 1.
        match align_corners {
            true if length == 1 => scale(b, ramp, 0.0),
            true => {
                let place = scale(b, ramp, 2.0 / (length - 1) as f64)?;
                shift(b, place, -1.0)
            }
            false => {
                let place = scale(b, ramp, 2.0 / length as f64)?;
                shift(b, place, 1.0 / length as f64 - 1.0)
            }
        }
    };
    let (y, x) = (along(rows)?, along(columns)?);
    let y = unsqueeze(b, y, -1)?;
    let part = |b: &mut dyn Builder, row: i64, column: i64| -> Result<NodeId> {
        let part = super::movement::narrow(b, theta, 1, row, 1)?;
        super::movement::narrow(b, part, 2, column, 1)
    };
    let mut both = [theta; 2];
    for (row, place) in (0..).zip(&mut both) {
        let (of_x, of_y, start) = (part(b, row, 0)?, part(b, row, 1)?, part(b, row, 2)?);
        let (left, top) = (mul(b, of_x, x)?, mul(b, of_y, y)?);
        let sum = add(b, left, top)?;
        *place = add(b, sum, start)?;
    }
    stack(b, &both, -1)
}

/// What of pictures `[N, C, rows, columns]` lies at the places `[N, …, …, 2]`, x and y in -1..1: `mode` is `"bilinear"` or
/// `"nearest"`; outside there is 0 (`"zeros"`), the edge (`"border"`) or the mirror image (`"reflection"`).
pub fn grid_sample(
    b: &mut dyn Builder,
    x: NodeId,
    grid: NodeId,
    mode: &str,
    padding: &str,
    align_corners: bool,
) -> Result<NodeId> {
    const OP: &str = "grid_sample";
    let wrong = |message: String, help: &str| Err(Error::new(ErrorKind::Value, OP, message).help(help));
    let nearest = match mode {
        "bilinear" => false,
        "nearest" => true,
        _ => return wrong(format!("the mode `{mode}` is unknown"), "`bilinear` or `nearest`"),
    };
    let outside = match padding {
        "zeros" => Outside::Zeros,
        "border" => Outside::Border,
        "reflection" => Outside::Reflection,
        _ => return wrong(format!("the padding `{padding}` is unknown"), "`zeros`, `border` or `reflection`"),
    };
    let (shape, places) = (shape_of(b, x), shape_of(b, grid));
    let fits = shape.len() == 4 && places.len() == 4 && shape[0] == places[0] && places[3].is(2);
    let lengths = shape.get(2..4).map(|last| [last[0].as_const(), last[1].as_const()]);
    let Some([Some(rows), Some(columns)]) = lengths.filter(|_| fits) else {
        let message = format!("places of {} in {}", show(&places), show(&shape));
        return Err(Error::new(ErrorKind::Shape, OP, message).help("[N, C, rows, columns] at [N, …, …, 2]"));
    };
    if rows < 1 || columns < 1 || rows.max(columns) > 1 << 20 {
        return Err(Error::new(ErrorKind::Shape, OP, format!("a picture of {rows} rows and {columns} columns"))
            .help("from 1 to 1048576 of each"));
    }
    let x = to_float(b, x)?;
    let float = dtype_of(b, x);
    let grid = cast(b, grid, float.accumulator())?;
    let picture = Picture { x, lengths: [rows, columns], shape, places };
    let mut ends = [grid; 2];
    for ((axis, length), place) in [(1, rows), (0, columns)].into_iter().zip(&mut ends) {
        let end = super::movement::narrow(b, grid, -1, axis, 1)?;
        let end = super::movement::squeeze(b, end, Some(&[-1]))?;
        *place = placed(b, end, length, outside, align_corners)?;
    }
    let [row, column] = ends;
    if nearest {
        let (row, column) = (round(b, row)?, round(b, column)?);
        return picture.at(b, row, column);
    }
    let (top, left) = (floor(b, row)?, floor(b, column)?);
    let (below, right) = (shift(b, top, 1.0)?, shift(b, left, 1.0)?);
    let (down, across) = (sub(b, row, top)?, sub(b, column, left)?);
    let one = like(b, down, 1.0);
    let (up, back) = (sub(b, one, down)?, sub(b, one, across)?);
    let mut total: Option<NodeId> = None;
    for (row, column, shares) in [
        (top, left, [up, back]),
        (top, right, [up, across]),
        (below, left, [down, back]),
        (below, right, [down, across]),
    ] {
        let value = picture.at(b, row, column)?;
        let value = cast(b, value, float.accumulator())?;
        let share = mul(b, shares[0], shares[1])?;
        let share = unsqueeze(b, share, 1)?;
        let part = mul(b, value, share)?;
        total = Some(match total {
            Some(total) => add(b, total, part)?,
            None => part,
        });
    }
    cast(b, total.unwrap_or(x), float)
}

/// A place in -1..1 as a number of elements.
fn placed(b: &mut dyn Builder, end: NodeId, length: i64, outside: Outside, align_corners: bool) -> Result<NodeId> {
    let n = length as f64;
    let scaled = shift(b, end, 1.0)?;
    let place = match align_corners {
        true => scale(b, scaled, (n - 1.0) / 2.0)?,
        false => {
            let place = scale(b, scaled, n / 2.0)?;
            shift(b, place, -0.5)?
        }
    };
    if outside == Outside::Zeros {
        return Ok(place);
    }
    let mut place = place;
    if outside == Outside::Reflection {
        // There and back again is a period; what is past the middle of it is on the way back.
        let (low, span) = if align_corners { (0.0, n - 1.0) } else { (-0.5, n) };
        if span == 0.0 {
            return scale(b, place, 0.0);
        }
        let offset = shift(b, place, -low)?;
        let offset = super::elementwise::abs(b, offset)?;
        let periods = scale(b, offset, 0.5 / span)?;
        let whole = floor(b, periods)?;
        let whole = scale(b, whole, 2.0 * span)?;
        let rest = sub(b, offset, whole)?;
        let turn = like(b, rest, span);
        let is_back = b.alu(Op::CmpLt, &[turn, rest])?;
        let minus = scale(b, rest, -1.0)?;
        let back = shift(b, minus, 2.0 * span)?;
        let rest = b.alu(Op::Where, &[is_back, back, rest])?;
        place = shift(b, rest, low)?;
    }
    super::elementwise::clip(b, place, 0.0, n - 1.0)
}

struct Picture {
    x: NodeId,
    lengths: [i64; 2],
    shape: Shape,
    places: Shape,
}

impl Picture {
    /// The elements at whole places, for each channel.
    fn at(&self, b: &mut dyn Builder, row: NodeId, column: NodeId) -> Result<NodeId> {
        let number = |b: &mut dyn Builder, value: i64| b.constant(Const::int(DType::I64, value.into()));
        let (row, column) = (cast(b, row, DType::I64)?, cast(b, column, DType::I64)?);
        let zero = number(b, 0);
        let mut inside: Option<NodeId> = None;
        for (place, length) in [row, column].into_iter().zip(self.lengths) {
            let length = number(b, length);
            let (below, within) = (b.alu(Op::CmpLt, &[place, zero])?, b.alu(Op::CmpLt, &[place, length])?);
            let above = super::arithmetic::logical_not(b, below)?;
            let here = b.alu(Op::And, &[above, within])?;
            inside = Some(match inside {
                Some(inside) => b.alu(Op::And, &[inside, here])?,
                None => here,
            });
        }
        // One axis of all elements: the place of a sample's row in it.
        let [samples, channels, ..] = &self.shape[..] else { return Ok(self.x) };
        let columns = number(b, self.lengths[1]);
        let line = b.alu(Op::Mul, &[row, columns])?;
        let place = b.alu(Op::Add, &[line, column])?;
        let sample = super::creation::arange_dim(b, samples, DType::I64)?;
        let sample = reshape(b, sample, &[samples.clone(), Dim::from(1), Dim::from(1)])?;
        let area = number(b, self.lengths[0] * self.lengths[1]);
        let start = b.alu(Op::Mul, &[sample, area])?;
        let place = b.alu(Op::Add, &[start, place])?;
        let nowhere = number(b, -1);
        let place = match inside {
            Some(inside) => b.alu(Op::Where, &[inside, place, nowhere])?,
            None => place,
        };
        let turned = super::movement::transpose(b, self.x, 0, 1)?;
        let rows = reshape(b, turned, &[channels.clone(), Dim::from(-1)])?;
        let rows = super::movement::transpose(b, rows, 0, 1)?;
        let place = flatten(b, place, 0, -1)?;
        let taken = b.alu(Op::Index, &[rows, place])?;
        let full: Shape = self.places[..3].iter().cloned().chain([channels.clone()]).collect();
        let taken = reshape(b, taken, &full)?;
        super::movement::movedim(b, taken, -1, 1)
    }
}
