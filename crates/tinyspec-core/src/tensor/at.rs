//! Parts of tensors read and written by position: `x.at((1..3, .., -1))`, `x.set((&rows, 0), 1.0)`.

use super::methods::{Call, Operand};
use super::{Tensor, select};
use crate::Result;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use std::panic::Location;
use tinyspec_ir::dim::show;
use tinyspec_ir::ops::slice::{self, Slice};
use tinyspec_ir::{DType, ErrorKind};

/// What is picked along one axis, or several.
#[derive(Clone, Debug)]
pub enum Pick {
    /// A position or a slice of one axis.
    Slice(Slice),
    /// The positions that an integer tensor names along one axis; or, of a bool tensor, where it is true along as many
    /// axes as it has.
    Tensor(Tensor),
    /// A new axis of size 1.
    NewAxis,
    /// All axes that the other picks leave.
    Rest,
}

/// In [`Tensor::at`]: a new axis of size 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewAxis;

/// In [`Tensor::at`]: all axes that the other picks leave, as NumPy's `...`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rest;

/// Every `step`-th position of a range, backwards where `step` is negative: NumPy's `start:stop:step`.
///
/// ```
/// # use tinyspec_core::{Tensor, stepped};
/// let x = Tensor::arange(6);
/// assert_eq!(x.at(stepped(1.., 2)).to_vec::<i32>()?, [1, 3, 5]);
/// assert_eq!(x.at(stepped(.., -1)).to_vec::<i32>()?, [5, 4, 3, 2, 1, 0]);
/// # Ok::<(), tinyspec_core::Error>(())
/// ```
pub fn stepped(range: impl IntoPick, step: i64) -> Pick {
    match range.into_pick() {
        Pick::Slice(Slice::Span { start, stop, .. }) => Pick::Slice(Slice::Span { start, stop, step }),
        other => other,
    }
}

/// What one axis may be picked by: a number, a range, [`stepped`], an integer or a bool tensor, [`NewAxis`], [`Rest`].
#[diagnostic::on_unimplemented(
    message = "expected a position, a range, or a tensor of positions, found `{Self}`",
    label = "this picks nothing"
)]
pub trait IntoPick {
    /// The pick.
    fn into_pick(self) -> Pick;
}

/// Picks of the leading axes: one, or a tuple of them.
#[diagnostic::on_unimplemented(
    message = "expected a pick or a tuple of picks such as `(1..3, .., -1)`, found `{Self}`",
    label = "this picks nothing"
)]
pub trait IntoPicks {
    /// The picks, from the first axis on.
    fn into_picks(self) -> Vec<Pick>;
}

fn span(start: Option<i64>, stop: Option<i64>) -> Pick {
    Pick::Slice(Slice::Span { start, stop, step: 1 })
}

/// An end that is included: the next one is not. After the last one comes nothing.
fn after(end: i64) -> Option<i64> {
    if end == -1 { None } else { Some(end.saturating_add(1)) }
}

macro_rules! picks {
    ($([$($generics:tt)*] $type:ty, $value:ident => $pick:expr;)*) => { $(
        impl<$($generics)*> IntoPick for $type {
            fn into_pick(self) -> Pick {
                let $value = self;
                $pick
            }
        }

        impl<$($generics)*> IntoPicks for $type {
            fn into_picks(self) -> Vec<Pick> {
                vec![self.into_pick()]
            }
        }
    )* };
    (numbers $($type:ty)*) => { picks! { $(
        [] $type, position => Pick::Slice(Slice::At(position as i64));
        [] Range<$type>, range => span(Some(range.start as i64), Some(range.end as i64));
        [] RangeFrom<$type>, range => span(Some(range.start as i64), None);
        [] RangeTo<$type>, range => span(None, Some(range.end as i64));
        [] RangeToInclusive<$type>, range => span(None, after(range.end as i64));
        [] RangeInclusive<$type>, range => span(Some(*range.start() as i64), after(*range.end() as i64));
    )* } };
}

picks! { numbers i32 i64 usize }
picks! {
    [] RangeFull, _range => span(None, None);
    [] Pick, pick => pick;
    [] Tensor, tensor => Pick::Tensor(tensor);
    [] &Tensor, tensor => Pick::Tensor(tensor.clone());
    [] NewAxis, _axis => Pick::NewAxis;
    [] Rest, _rest => Pick::Rest;
}

impl IntoPicks for Vec<Pick> {
    fn into_picks(self) -> Vec<Pick> {
        self
    }
}

macro_rules! tuples {
    ($(($($name:ident)+))*) => { $(
        impl<$($name: IntoPick),+> IntoPicks for ($($name,)+) {
            fn into_picks(self) -> Vec<Pick> {
                #[allow(non_snake_case, reason = "a value of each type")]
                let ($($name,)+) = self;
                vec![$($name.into_pick()),+]
            }
        }
    )* };
}
tuples! { (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H) }

/// Picks in their places.
struct Plan {
    /// Of the leading axes; those that tensors pick from are kept.
    slices: Vec<Slice>,
    /// Tensors, and the axis of each after slicing.
    tensors: Vec<(usize, Tensor)>,
    /// Axes of size 1 in the result, if no tensor picks.
    new_axes: Vec<usize>,
}

impl Plan {
    fn of(x: &Tensor, picks: Vec<Pick>) -> tinyspec_ir::Result<Plan> {
        let rank = x.rank();
        let refuse = |message: String| Err(tinyspec_ir::Error::new(ErrorKind::Rank, "at", message));
        let taken = |pick: &Pick| match pick {
            Pick::Slice(_) => 1,
            Pick::Tensor(mask) if mask.dtype() == DType::Bool => mask.rank(),
            Pick::Tensor(_) => 1,
            Pick::NewAxis | Pick::Rest => 0,
        };
        let total: usize = picks.iter().map(taken).sum();
        if total > rank || picks.iter().filter(|pick| matches!(pick, Pick::Rest)).count() > 1 {
            return refuse(format!("{} picks of {total} axes of {}", picks.len(), show(x.shape())));
        }
        let mut plan = Plan { slices: vec![], tensors: vec![], new_axes: vec![] };
        // The axes of the result so far.
        let mut axis = 0;
        for pick in picks {
            match pick {
                Pick::Slice(slice) => {
                    plan.slices.push(slice);
                    axis += usize::from(!matches!(slice, Slice::At(_)));
                }
                Pick::Tensor(tensor) => {
                    let axes = if tensor.dtype() == DType::Bool { tensor.rank() } else { 1 };
                    plan.slices.extend(std::iter::repeat_n(Slice::ALL, axes));
                    plan.tensors.push((axis, tensor));
                    axis += axes;
                }
                Pick::NewAxis => {
                    plan.new_axes.push(axis);
                    axis += 1;
                }
                Pick::Rest => {
                    plan.slices.extend(std::iter::repeat_n(Slice::ALL, rank - total));
                    axis += rank - total;
                }
            }
        }
        let masks = plan.tensors.iter().filter(|(_, tensor)| tensor.dtype() == DType::Bool).count();
        if masks > 0 && plan.tensors.len() > 1 {
            return refuse("a bool tensor picks beside another tensor: pick one after the other".into());
        }
        if !plan.tensors.is_empty() && !plan.new_axes.is_empty() {
            return refuse("new axes beside tensors: `.unsqueeze(axis)` makes one".into());
        }
        Ok(plan)
    }

    fn mask(&self) -> Option<(usize, &Tensor)> {
        let (axis, mask) = self.tensors.first()?;
        (mask.dtype() == DType::Bool).then_some((*axis, mask))
    }
}

impl Tensor {
    /// The part of this tensor at `picks`, from the first axis on, as NumPy and PyTorch index: a number picks a position
    /// and drops the axis, a range keeps what it covers (negative ends count from the end, what lies outside is cut off),
    /// [`stepped`] takes every n-th, [`Rest`] skips to the last axes, [`NewAxis`] adds one. An integer tensor picks the
    /// positions that it holds, several are paired; outside they read 0. A bool tensor picks where it is true, and is
    /// computed at once.
    ///
    /// ```
    /// # use tinyspec_core::{NewAxis, Rest, Tensor};
    /// let x = Tensor::arange(12).reshape([3, 4]);
    /// assert_eq!(x.at((1.., -1)).to_vec::<i32>()?, [7, 11]);
    /// assert_eq!(x.at((Rest, 0)).to_vec::<i32>()?, [0, 4, 8]);
    /// assert_eq!(x.at((.., NewAxis, 1..3)).sizes()?, [3, 1, 2]);
    /// let rows = Tensor::from_slice(&[2i32, 0], [2]);
    /// assert_eq!(x.at((&rows, &rows)).to_vec::<i32>()?, [10, 0]);
    /// assert_eq!(x.at(x.gt(9)).to_vec::<i32>()?, [10, 11]);
    /// # Ok::<(), tinyspec_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// The result carries one where there are more picks than axes, a position is outside, a step is 0, an index tensor is
    /// no integer, or a dim that is sliced has no number.
    #[track_caller]
    pub fn at(&self, picks: impl IntoPicks) -> Tensor {
        let location = Location::caller();
        if self.node().is_err() {
            return self.clone();
        }
        let plan = match Plan::of(self, picks.into_picks()) {
            Ok(plan) => plan,
            Err(error) => return Tensor::failed(error.at(location)),
        };
        let mut call = Call::new(location);
        let x = call.operand(self, DType::Void);
        if let Some((axis, mask)) = plan.mask() {
            let part = call.tensor(|builder| slice::get(builder, "at", x, &plan.slices));
            return part.where_true(axis, mask).unwrap_or_else(Tensor::failed);
        }
        let indices: Vec<_> = plan.tensors.iter().map(|(_, tensor)| call.operand(tensor, DType::Void)).collect();
        call.tensor(|builder| {
            let part = slice::get(builder, "at", x, &plan.slices)?;
            if !indices.is_empty() {
                let axes: Vec<usize> = plan.tensors.iter().map(|(axis, _)| *axis).collect();
                return slice::index_axes(builder, "at", part, &axes, &indices);
            }
            let unsqueezed = |part, &axis| tinyspec_ir::ops::movement::unsqueeze(builder, part, axis as i64);
            plan.new_axes.iter().try_fold(part, unsqueezed)
        })
    }

    /// Binds this handle to a new state that has `value` at `picks`, which are those of [`Tensor::at`], and is as before
    /// elsewhere; clones and earlier views keep what they saw. `value`, a tensor or a number, broadcasts to the part.
    /// Where index tensors name a place several times the last value stays.
    ///
    /// ```
    /// # use tinyspec_core::{Tensor, stepped};
    /// let mut x = Tensor::arange(6).reshape([2, 3]);
    /// let before = x.at(0);
    /// x.set((.., stepped(.., 2)), 9);
    /// assert_eq!(x.to_vec::<i32>()?, [9, 1, 9, 9, 4, 9]);
    /// assert_eq!(before.to_vec::<i32>()?, [0, 1, 2]);
    /// x.set(x.gt(5), 0);
    /// assert_eq!(x.to_vec::<i32>()?, [0, 1, 0, 0, 4, 0]);
    /// # Ok::<(), tinyspec_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::at`]; and where `value` does not broadcast to the part, or its dtype does not fit.
    #[track_caller]
    pub fn set(&mut self, picks: impl IntoPicks, value: impl Operand) {
        let location = Location::caller();
        if self.node().is_err() {
            return;
        }
        let written = Plan::of(self, picks.into_picks()).map(|plan| self.with(location, &plan, value));
        match written {
            Ok(written) if written.node().is_ok() => self.assign_at(location, &written),
            Ok(failed) => *self = failed,
            Err(error) => *self = Tensor::failed(error.in_op("set").at(location)),
        }
    }

    /// A tensor with `value` at the places of a plan.
    fn with(&self, location: &'static Location<'static>, plan: &Plan, value: impl Operand) -> Tensor {
        let mut call = Call::new(location);
        let (x, value) = (call.operand(self, DType::Void), call.operand(value, self.dtype()));
        let tensors: Vec<_> = plan.tensors.iter().map(|(_, tensor)| call.operand(tensor, DType::Void)).collect();
        call.tensor(|builder| {
            if !plan.new_axes.is_empty() {
                let message = "a new axis is no place of the tensor";
                return Err(tinyspec_ir::Error::new(ErrorKind::Value, "set", message));
            }
            let axes: Vec<usize> = plan.tensors.iter().map(|(axis, _)| *axis).collect();
            let (Some(&axis), Some(&first)) = (axes.first(), tensors.first()) else {
                return slice::set(builder, "set", x, &plan.slices, value);
            };
            let part = slice::get(builder, "set", x, &plan.slices)?;
            let part = match plan.mask() {
                Some(_) => slice::set_mask(builder, "set", part, axis, first, value)?,
                None => slice::set_axes(builder, "set", part, &axes, &tensors, value)?,
            };
            slice::set(builder, "set", x, &plan.slices, part)
        })
    }

    /// The rows where `mask` is true, which lies over the axes from `axis` on.
    fn where_true(&self, axis: usize, mask: &Tensor) -> Result<Tensor> {
        let shape = self.shape();
        let covered = &shape[axis.min(shape.len())..(axis + mask.rank()).min(shape.len())];
        if covered != mask.shape() {
            let message = format!("a mask of {} over {}", show(mask.shape()), show(covered));
            return Err(crate::Error::refused(ErrorKind::Shape, "at", message));
        }
        let positions = select::positions(mask)?;
        let index = select::beside(self, Tensor::from_slice(&positions, [positions.len()]));
        let rows = match mask.rank() {
            0 => self.unsqueeze(axis as i64),
            rank => self.flatten(axis as i64, (axis + rank - 1) as i64),
        };
        Ok(rows.index_select(axis as i64, index))
    }
}
