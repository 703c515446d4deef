//! Linear recurrences of the first order along an axis.

use super::arithmetic::{add, mul};
use super::movement::{narrow, pad};
use super::{like, shape_of};
use crate::signature::NamedDim;
use crate::{Builder, Const, DType, Dim, NodeId, Op, Result, Shape};

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

/// The greatest length of an axis along which there are levels for: a number, or the bound of a dim.
pub fn longest(length: &Dim) -> Option<i64> {
    let most = length.bounds().1;
    (length.as_const().is_some() || most < NamedDim::MAX).then_some(most)
}

/// The `s` above, of `f` (`factors`) and `t` (`terms`): `factors` has one element less than `terms` along the axis, whose length is a
/// number or has a bound.
///
/// Steps of steps: `RADIX` steps compose into one longer step, so that after `log n` levels each reaches the end. Nothing is
/// divided, and no factor is used that the result does not hold, so that zeros are exact and infinities stay where they are.
pub fn recurrence(b: &mut dyn Builder, order: Order, factors: NodeId, terms: NodeId, axis: i64) -> Result<NodeId> {
    let position = super::axis_of("recurrence", axis, &shape_of(b, terms))?;
    let dim = shape_of(b, terms)[position].clone();
    let Some(length) = dim.as_const() else {
        return match longest(&dim) {
            Some(most) => {
                let rank = shape_of(b, terms).len();
                Bounded { axis: position, rank, order, length: dim }.recurrence(b, factors, terms, most)
            }
            None => {
                let message = "the length of the axis is not known".to_string();
                Err(crate::Error::new(crate::ErrorKind::Shape, "recurrence", message))
            }
        };
    };
    let axis = Along { axis: position, order };
    let (mut factors, mut terms, mut step) = (factors, terms, 1);
    while step < length {
        // For the places `part` steps on: their sum with all that follow within the level.
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

/// An axis whose length a call decides: all levels have its length, and values behind its end do not take part.
struct Bounded {
    axis: usize,
    rank: usize,
    order: Order,
    length: Dim,
}

impl Bounded {
    fn recurrence(&self, b: &mut dyn Builder, factors: NodeId, terms: NodeId, most: i64) -> Result<NodeId> {
        let (mut factors, mut terms, mut step) = (self.grown(b, factors)?, terms, 1);
        while step < most {
            let parts = RADIX.min((most - 1) / step + 1);
            let mut total = self.shifted(b, terms, (parts - 1) * step)?;
            for part in (0..parts - 1).rev() {
                let factor = self.shifted(b, factors, part * step)?;
                let joins = mul(b, factor, total)?;
                let (there, zero) = (self.there(b, (part + 1) * step)?, like(b, joins, 0.0));
                let joins = b.alu(Op::Where, &[there, joins, zero])?;
                let own = self.shifted(b, terms, part * step)?;
                total = add(b, own, joins)?;
            }
            let mut product = factors;
            for part in 1..RADIX {
                let factor = self.shifted(b, factors, part * step)?;
                product = mul(b, product, factor)?;
            }
            (factors, terms) = (product, total);
            step *= RADIX;
        }
        Ok(terms)
    }

    /// The factors by the place that they lead to another one from.
    fn grown(&self, b: &mut dyn Builder, factors: NodeId) -> Result<NodeId> {
        let mut shape = shape_of(b, factors);
        shape[self.axis] = self.length.clone();
        let start = i64::from(self.order == Order::Forward);
        let offset: Shape = (0..shape.len()).map(|axis| Dim::from(if axis == self.axis { start } else { 0 })).collect();
        pad(b, factors, &offset, &shape, 0.0)
    }

    /// The value `by` places on, at each place.
    fn shifted(&self, b: &mut dyn Builder, x: NodeId, by: i64) -> Result<NodeId> {
        let mut shape = shape_of(b, x);
        let mut offset: Shape = std::iter::repeat_n(Dim::from(0), shape.len()).collect();
        shape[self.axis] = &self.length + by;
        if self.order == Order::Forward {
            offset[self.axis] = Dim::from(by);
        }
        let longer = pad(b, x, &offset, &shape, 0.0)?;
        let start = if self.order == Order::Forward { 0 } else { by };
        narrow(b, longer, self.axis as i64, start, self.length.clone())
    }

    /// There is a place `by` places on.
    fn there(&self, b: &mut dyn Builder, by: i64) -> Result<NodeId> {
        let all = b.constant(Const::int(DType::Bool, 1));
        let mut shape: Shape = std::iter::repeat_n(Dim::from(1), self.rank).collect();
        shape[self.axis] = self.length.clone();
        let all = super::movement::expand(b, all, &shape)?;
        self.shifted(b, all, by)
    }
}
