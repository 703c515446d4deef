//! Linear recurrences of the first order along an axis.

use super::arithmetic::{add, mul};
use super::movement::{narrow, pad};
use super::shape_of;
use crate::{Builder, Dim, NodeId, Result, Shape};

/// Where a recurrence begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// `s(i) = t(i) + f(i-1) · s(i-1)`
    Forward,
    /// `s(i) = t(i) + f(i) · s(i+1)`
    Backward,
}

/// Steps that one step of the next level is: a level reads so many places, and is a pass over memory.
const RADIX: i64 = 8;

/// What `f` and `t` above give: `factors` has one element less than `terms` along the axis, whose length is a constant.
///
/// Steps of steps: a composition of `RADIX` steps is a step again, that much longer, so that after `log n` levels each
/// reaches the end. Nothing is divided, and no factor is used that the result does not hold, so that zeros are exact
/// and what is infinite stays where it is.
pub fn recurrence(b: &mut dyn Builder, order: Order, factors: NodeId, terms: NodeId, axis: i64) -> Result<NodeId> {
    let position = super::axis_of("recurrence", axis, &shape_of(b, terms))?;
    let Some(length) = shape_of(b, terms)[position].as_const() else {
        let message = "the length of the axis is not known".to_string();
        return Err(crate::Error::new(crate::ErrorKind::Shape, "recurrence", message));
    };
    let axis = Along { axis: position, order };
    let (mut factors, mut terms, mut step) = (factors, terms, 1);
    while step < length {
        // Of the places that are `part` steps on: what they add up to with all that follow them within the level.
        let parts = RADIX.min((length - 1) / step + 1);
        let mut total = axis.from(b, terms, (parts - 1) * step, length)?;
        for part in (0..parts - 1).rev() {
            let factor = axis.from(b, factors, part * step, length - step)?;
            let joins = mul(b, factor, total)?;
            let own = axis.from(b, terms, part * step, length)?;
            let joins = axis.grown(b, joins, length - part * step)?;
            total = add(b, own, joins)?;
        }
        let left = length - RADIX * step;
        if left > 0 {
            let mut product = axis.part(b, factors, 0, left)?;
            for part in 1..RADIX {
                let factor = axis.part(b, factors, part * step, left)?;
                product = mul(b, product, factor)?;
            }
            factors = product;
        }
        terms = total;
        step *= RADIX;
    }
    Ok(terms)
}

/// An axis, counted from where the recurrence ends.
struct Along {
    axis: usize,
    order: Order,
}

impl Along {
    fn length(&self, b: &dyn Builder, x: NodeId) -> i64 {
        shape_of(b, x)[self.axis].as_const().unwrap_or(0)
    }

    /// `length` places from `start` on.
    fn part(&self, b: &mut dyn Builder, x: NodeId, start: i64, length: i64) -> Result<NodeId> {
        let start = match self.order {
            Order::Backward => start,
            Order::Forward => self.length(b, x) - start - length,
        };
        narrow(b, x, self.axis as i64, start, length)
    }

    /// The places from `start` on, of `length`.
    fn from(&self, b: &mut dyn Builder, x: NodeId, start: i64, length: i64) -> Result<NodeId> {
        self.part(b, x, start, length - start)
    }

    /// With zeros where the recurrence begins.
    fn grown(&self, b: &mut dyn Builder, x: NodeId, length: i64) -> Result<NodeId> {
        let mut shape = shape_of(b, x);
        let missing = length - self.length(b, x);
        let mut offset: Shape = std::iter::repeat_n(Dim::from(0), shape.len()).collect();
        if self.order == Order::Forward {
            offset[self.axis] = Dim::from(missing);
        }
        shape[self.axis] = Dim::from(length);
        pad(b, x, &offset, &shape, 0.0)
    }
}
