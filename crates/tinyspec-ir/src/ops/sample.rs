//! Pictures read at places that are data.

use super::arithmetic::{add, mul, sub};
use super::elementwise::{floor, round, scale, shift};
use super::movement::{expand, flatten, reshape, stack, unsqueeze};
use super::{cast, dtype_of, like, shape_of, to_float};
use crate::dim::show;
use crate::{Builder, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// The padding outside of a picture.
#[derive(Clone, Copy, PartialEq)]
enum Outside {
    Zeros,
    Border,
    Reflection,
}

/// The places of a result of `size` (rows, columns) under the maps `theta`, 2×3 for each sample, in -1..1 of the picture:
/// `[N, rows, columns, 2]` as x and y.
pub fn affine_grid(b: &mut dyn Builder, theta: NodeId, size: &[i64], align_corners: bool) -> Result<NodeId> {
    let shape = shape_of(b, theta);
    let wrong = |message: String, help: &str| Err(Error::new(ErrorKind::Shape, "affine_grid", message).help(help));
    let &[rows, columns] = size else {
        let message = format!("a size of {} numbers, {size:?}, for maps of {}", size.len(), show(&shape));
        return wrong(
            message,
            "`theta.affine_grid([rows, columns], align_corners)`: the samples are those of the maps",
        );
    };
    if rows < 1 || columns < 1 {
        return wrong(format!("{rows} rows and {columns} columns"), "at least 1 of each");
    }
    if !matches!(&shape[..], [_, two, three] if two.is(2) && three.is(3)) {
        let message = format!("maps of {} for {rows} rows and {columns} columns", show(&shape));
        return wrong(message, "a 2×3 matrix for each sample: [samples, 2, 3]");
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

/// Samples pictures `[N, C, rows, columns]` at the places `[N, …, …, 2]`, x and y in -1..1: `mode` is `"bilinear"` or
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
    let picture = Picture { x, lengths: [rows, columns], places };
    let mut ends = [grid; 2];
    for ((axis, length), place) in [(1, rows), (0, columns)].into_iter().zip(&mut ends) {
        let end = super::movement::narrow(b, grid, -1, axis, 1)?;
        let end = super::movement::squeeze(b, end, Some(&[-1]))?;
        *place = placed(b, end, length, outside, align_corners)?;
    }
    if nearest {
        let [row, column] = ends;
        let (row, column) = (round(b, row)?, round(b, column)?);
        let (row, column) = (picture.whole(b, row)?, picture.whole(b, column)?);
        return picture.at(b, row, column);
    }
    let [row, column] = [neighbours(b, &picture, ends[0])?, neighbours(b, &picture, ends[1])?];
    let mut total: Option<NodeId> = None;
    for (row, of_row) in row {
        for (column, of_column) in column {
            let value = picture.at(b, row, column)?;
            let value = cast(b, value, float.accumulator())?;
            let share = mul(b, of_row, of_column)?;
            let share = unsqueeze(b, share, 1)?;
            let part = mul(b, value, share)?;
            total = Some(match total {
                Some(total) => add(b, total, part)?,
                None => part,
            });
        }
    }
    cast(b, total.unwrap_or(x), float)
}

/// The two elements along an axis that a place lies between, and the share of each.
fn neighbours(b: &mut dyn Builder, picture: &Picture, place: NodeId) -> Result<[(NodeId, NodeId); 2]> {
    let whole = floor(b, place)?;
    let second_share = sub(b, place, whole)?;
    let one = like(b, second_share, 1.0);
    let first_share = sub(b, one, second_share)?;
    let first = picture.whole(b, whole)?;
    let one = like(b, first, 1.0);
    // The greatest integer wraps to the least one, which is outside as well.
    let second = add(b, first, one)?;
    Ok([(first, first_share), (second, second_share)])
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
        // A period is there and back again; its second half is on the way back.
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
    places: Shape,
}

impl Picture {
    /// A whole number of elements as an integer that holds every place in the picture.
    fn whole(&self, b: &mut dyn Builder, place: NodeId) -> Result<NodeId> {
        let [rows, columns] = self.lengths;
        cast(b, place, if rows * columns <= i32::MAX.into() { DType::I32 } else { DType::I64 })
    }

    /// The elements at whole places, for each channel; 0 outside.
    fn at(&self, b: &mut dyn Builder, row: NodeId, column: NodeId) -> Result<NodeId> {
        let [rows, columns] = self.lengths;
        let (below, right) = (self.inside(b, row, rows)?, self.inside(b, column, columns)?);
        let inside = b.alu(Op::And, &[below, right])?;
        let start = scale(b, row, columns as f64)?;
        let place = add(b, start, column)?;
        let nowhere = like(b, place, -1.0);
        let place = b.alu(Op::Where, &[inside, place, nowhere])?;
        // The rows of a picture follow each other, so a place in it is one number.
        let planes = flatten(b, self.x, 2, 3)?;
        let place = flatten(b, place, 1, 2)?;
        let place = unsqueeze(b, place, 1)?;
        let [samples, channels, _] = &shape_of(b, planes)[..] else { return Ok(planes) };
        let count = shape_of(b, place)[2].clone();
        let place = expand(b, place, &[samples.clone(), channels.clone(), count])?;
        let taken = super::index::gather(b, planes, place, 2)?;
        let full = [samples.clone(), channels.clone(), self.places[1].clone(), self.places[2].clone()];
        reshape(b, taken, &full)
    }

    fn inside(&self, b: &mut dyn Builder, place: NodeId, length: i64) -> Result<NodeId> {
        let (zero, length) = (like(b, place, 0.0), like(b, place, length as f64));
        let (before, within) = (b.alu(Op::CmpLt, &[place, zero])?, b.alu(Op::CmpLt, &[place, length])?);
        let after = super::arithmetic::logical_not(b, before)?;
        b.alu(Op::And, &[after, within])
    }
}
