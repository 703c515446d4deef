//! Values written to places that data decide: one-hot masks, reduced.

use super::arithmetic::{add, div, idiv, maximum, minimum, mul, reverse_order};
use super::index::{reached, require_int, wide};
use super::movement::{expand, pad, reshape, shrink, unsqueeze};
use super::{axis_of, cast, dtype_of, like, reduce, shape_of};
use crate::dim::show;
use crate::{Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// Which element of `index` goes to which position of `axis` of `x`.
struct Places {
    op: &'static str,
    axis: usize,
    /// The part of `x` that the index reaches, and its shape.
    part: NodeId,
    shape: Shape,
    index_shape: Shape,
    /// The shape of `index` with an axis of positions after its own, so that values reduced by position are in the order of `part`.
    mask: NodeId,
}

impl Places {
    fn new(b: &mut dyn Builder, op: &'static str, x: NodeId, index: NodeId, axis: i64) -> Result<Places> {
        require_int(b, op, index)?;
        let index = b.beside(x, index)?;
        let index_shape = shape_of(b, index);
        let axis = axis_of(op, axis, &shape_of(b, x))?;
        let part = reached(b, op, "places into", x, &index_shape, axis)?;
        let shape = shape_of(b, part);
        let index = wide(b, index)?;
        let dtype = dtype_of(b, index);
        let positions = super::creation::arange_dim(b, &shape[axis], dtype)?;
        let mut down: Shape = shape[axis..].iter().map(|_| Dim::from(1)).collect();
        down[0] = shape[axis].clone();
        let positions = reshape(b, positions, &down)?;
        let index = unsqueeze(b, index, axis as i64 + 1)?;
        let mask = super::arithmetic::eq(b, index, positions)?;
        Ok(Places { op, axis, part, shape, index_shape, mask })
    }

    /// A value for each place, or one for all; of more values those at the numbers of the places.
    fn values(&self, b: &mut dyn Builder, value: NodeId) -> Result<NodeId> {
        let value_shape = shape_of(b, value);
        if value_shape.is_empty() {
            return Ok(value);
        }
        let is_short = |(value, index): (&Dim, &Dim)| (index - value).bounds().1 > 0;
        if value_shape.len() != self.index_shape.len() || value_shape.iter().zip(&self.index_shape).any(is_short) {
            let message = format!("values of {} for places of {}", show(&value_shape), show(&self.index_shape));
            return Err(Error::new(ErrorKind::Shape, self.op, message)
                .help("a value for each place: no axis of the values is shorter"));
        }
        let start: Shape = value_shape.iter().map(|_| Dim::from(0)).collect();
        shrink(b, value, &start, &self.index_shape)
    }

    /// `x` with `part`, as it is now, where the index reaches.
    fn whole(&self, b: &mut dyn Builder, x: NodeId, part: NodeId) -> Result<NodeId> {
        let shape = shape_of(b, x);
        if self.shape == shape {
            return Ok(part);
        }
        let start: Shape = shape.iter().map(|_| Dim::from(0)).collect();
        let inside = b.constant(Const::int(DType::Bool, 1));
        let inside = expand(b, inside, &self.shape)?;
        let inside = pad(b, inside, &start, &shape, 0.0)?;
        let part = pad(b, part, &start, &shape, 0.0)?;
        b.alu(Op::Where, &[inside, part, x])
    }

    /// `value` at its places, `fill` elsewhere.
    fn spread(&self, b: &mut dyn Builder, value: NodeId, fill: f64) -> Result<NodeId> {
        let value = self.values(b, value)?;
        let value = if shape_of(b, value).is_empty() { value } else { unsqueeze(b, value, self.axis as i64 + 1)? };
        let fill = like(b, value, fill);
        b.alu(Op::Where, &[self.mask, value, fill]).map_err(|error| error.in_op(self.op))
    }

    /// Reduces the values that meet at a position; the positions stand where the axis was.
    fn meet(
        &self,
        b: &mut dyn Builder,
        spread: NodeId,
        reduce: impl FnOnce(&mut dyn Builder, NodeId, Option<&[i64]>, bool) -> Result<NodeId>,
    ) -> Result<NodeId> {
        let dtype = dtype_of(b, spread);
        let met = reduce(b, spread, Some(&[self.axis as i64]), false)?;
        cast(b, met, dtype)
    }

    /// How many values meet at each place, as i32.
    fn count(&self, b: &mut dyn Builder) -> Result<NodeId> {
        let one = b.constant(Const::int(DType::I32, 1));
        let ones = self.spread(b, one, 0.0)?;
        self.meet(b, ones, reduce::sum)
    }

    /// The number, along the axis of the index, of the last value for each place; negative where there is none.
    fn last(&self, b: &mut dyn Builder) -> Result<NodeId> {
        let length = &self.index_shape[self.axis];
        let numbers = super::creation::arange_dim(b, length, DType::I32)?;
        let mut along: Shape = std::iter::repeat_n(Dim::from(1), self.index_shape.len() + 1).collect();
        along[self.axis] = length.clone();
        let numbers = reshape(b, numbers, &along)?;
        let none = b.constant(Const::int(DType::I32, i32::MIN.into()));
        let numbers = b.alu(Op::Where, &[self.mask, numbers, none])?;
        self.meet(b, numbers, reduce::max)
    }
}

/// `value` as the dtype of `x`.
fn as_element(b: &mut dyn Builder, x: NodeId, value: NodeId) -> Result<NodeId> {
    let dtype = dtype_of(b, x);
    cast(b, value, dtype)
}

/// `x` plus `value` at `index` along `axis`, collisions added up. As in all of these, `index` has the rank of `x`, and where
/// it is shorter than `x` on another axis the rest of `x` stays.
pub fn scatter_add(b: &mut dyn Builder, x: NodeId, index: NodeId, value: NodeId, axis: i64) -> Result<NodeId> {
    let places = Places::new(b, "scatter_add", x, index, axis)?;
    let written = wide_if_float(b, [places.part, value], |b, [part, value]| {
        let spread = places.spread(b, value, 0.0)?;
        let total = places.meet(b, spread, reduce::sum)?;
        let total = as_element(b, part, total)?;
        add(b, part, total)
    })?;
    places.whole(b, x, written)
}

/// Floats added up in at least f32, with what was there, and rounded once to the dtype of the first.
fn wide_if_float(
    b: &mut dyn Builder,
    [x, value]: [NodeId; 2],
    function: impl FnOnce(&mut dyn Builder, [NodeId; 2]) -> Result<NodeId>,
) -> Result<NodeId> {
    let dtype = dtype_of(b, x);
    if !dtype.is_float() || dtype == dtype.accumulator() {
        return function(b, [x, value]);
    }
    let wide = dtype.accumulator();
    let operands = [cast(b, x, wide)?, cast(b, value, wide)?];
    let result = function(b, operands)?;
    cast(b, result, dtype)
}

/// `x` times `value` at `index` along `axis`, collisions multiplied.
pub fn scatter_multiply(b: &mut dyn Builder, x: NodeId, index: NodeId, value: NodeId, axis: i64) -> Result<NodeId> {
    scatter_reduce(b, x, index, value, axis, "prod", true).map_err(|error| error.in_op("scatter_multiply"))
}

/// `x` with `value` at `index` along `axis`; of several values for one place the last one stays.
pub fn scatter(b: &mut dyn Builder, x: NodeId, index: NodeId, value: NodeId, axis: i64) -> Result<NodeId> {
    let places = Places::new(b, "scatter", x, index, axis)?;
    let value = as_element(b, x, value)?;
    let value = places.values(b, value)?;
    let last = places.last(b)?;
    let written = replaced(b, places.part, last, value, axis)?;
    places.whole(b, x, written)
}

/// `x` with the values of the numbers `last` along `axis`, which broadcast over it; as it is where they are negative.
fn replaced(b: &mut dyn Builder, x: NodeId, last: NodeId, value: NodeId, axis: i64) -> Result<NodeId> {
    let zero = b.constant(Const::int(DType::I32, 0));
    let none = b.alu(Op::CmpLt, &[last, zero])?;
    let placed = match shape_of(b, value).is_empty() {
        true => value,
        false => {
            let (number, shape) = (maximum(b, last, zero)?, shape_of(b, x));
            let number = expand(b, number, &shape)?;
            super::index::gather(b, value, number, axis)?
        }
    };
    b.alu(Op::Where, &[none, x, placed])
}

/// `x` with the rows of `value`, along `axis`, at the numbers of the vector `index`; of several for one place the last one stays.
pub(super) fn scatter_rows(
    b: &mut dyn Builder,
    op: &'static str,
    x: NodeId,
    index: NodeId,
    value: NodeId,
    axis: usize,
) -> Result<NodeId> {
    let shape = shape_of(b, x);
    // Which row goes to a place is the same all along it.
    let mut along: Shape = shape.iter().map(|_| Dim::from(1)).collect();
    along[axis] = shape[axis].clone();
    let place = like(b, x, 0.0);
    let place = expand(b, place, &along)?;
    along[axis] = shape_of(b, value)[axis].clone();
    let index = reshape(b, index, &along)?;
    let last = Places::new(b, op, place, index, axis as i64)?.last(b)?;
    replaced(b, x, last, value, axis as i64)
}

/// Reduces the values scattered to each position by `"sum"`, `"prod"`, `"mean"`, `"amax"` or `"amin"`, with the element of `x` unless
/// `include_self` is false. Integer means are rounded down.
pub fn scatter_reduce(
    b: &mut dyn Builder,
    x: NodeId,
    index: NodeId,
    value: NodeId,
    axis: i64,
    reduction: &str,
    include_self: bool,
) -> Result<NodeId> {
    let places = Places::new(b, "scatter_reduce", x, index, axis)?;
    let written = wide_if_float(b, [places.part, value], |b, [part, value]| {
        reduced(b, &places, part, value, reduction, include_self)
    })?;
    places.whole(b, x, written)
}

/// The part of a tensor that the index reaches, reduced with the values of each position.
fn reduced(
    b: &mut dyn Builder,
    places: &Places,
    part: NodeId,
    value: NodeId,
    reduction: &str,
    include_self: bool,
) -> Result<NodeId> {
    let value = as_element(b, part, value)?;
    // The sum of a mean may be more than its elements hold.
    let is_mean = reduction == "mean";
    let wide = dtype_of(b, part).accumulator();
    let value = if is_mean { cast(b, value, wide)? } else { value };
    type Reduction = fn(&mut dyn Builder, NodeId, Option<&[i64]>, bool) -> Result<NodeId>;
    type Combination = fn(&mut dyn Builder, NodeId, NodeId) -> Result<NodeId>;
    let (fill, reduce, combine): (f64, Reduction, Combination) = match reduction {
        "sum" | "mean" => (0.0, reduce::sum, add),
        "prod" => (1.0, reduce::prod, mul),
        "amax" => (f64::NEG_INFINITY, reduce::max, maximum),
        // The least is the greatest in reversed order, whose identity stands where nothing meets.
        "amin" => (f64::NEG_INFINITY, reduce::max, minimum),
        _ => {
            return Err(Error::new(
                ErrorKind::Value,
                "scatter_reduce",
                format!("the reduction `{reduction}` is unknown"),
            )
            .help("`sum`, `prod`, `mean`, `amax` or `amin`"));
        }
    };
    let is_reversed = reduction == "amin";
    let value = if is_reversed { reverse_order(b, value)? } else { value };
    let spread = places.spread(b, value, fill)?;
    let met = places.meet(b, spread, reduce)?;
    let met = if is_mean { met } else { as_element(b, part, met)? };
    let met = if is_reversed { reverse_order(b, met)? } else { met };
    let met = if include_self { combine(b, part, met)? } else { met };
    if include_self && !is_mean {
        // Where no value arrives, the identity leaves the element as it is.
        return Ok(met);
    }
    let count = places.count(b)?;
    let zero = b.constant(Const::int(DType::I32, 0));
    let hit = b.alu(Op::CmpNe, &[count, zero])?;
    let met = if is_mean {
        let own = b.constant(Const::int(DType::I32, include_self as i128));
        let count = b.alu(Op::Add, &[count, own])?;
        let mean = if wide.is_float() {
            div(b, met, count)?
        } else {
            let count = cast(b, count, wide)?;
            idiv(b, met, count, "floor")?
        };
        as_element(b, part, mean)?
    } else {
        met
    };
    b.alu(Op::Where, &[hit, met, part])
}
