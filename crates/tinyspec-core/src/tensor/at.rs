//! Parts of tensors read and written by position: `x.at((1..3, .., -1))`, `x.set((&rows, 0), 1.0)`.

use super::methods::{Call, Operand};
use super::{Tensor, select};
use crate::Result;
use crate::lazy::Walk;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use std::panic::Location;
use tinyspec_ir::ops::pick;
use tinyspec_ir::ops::slice::Slice;
use tinyspec_ir::{DType, Dim, ErrorKind};

/// A pick along one axis, or several.
#[derive(Clone, Debug)]
pub enum Pick {
    /// A position or a slice of one axis.
    Slice(Slice),
    /// The positions in an integer tensor, along one axis; or those where a bool tensor is true, along as many axes as
    /// it has.
    Tensor(Tensor),
    /// A new axis of size 1.
    NewAxis,
    /// All axes not covered by the other picks.
    Rest,
}

/// In [`Tensor::at`]: a new axis of size 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewAxis;

/// In [`Tensor::at`]: all axes not covered by the other picks, like NumPy's `...`.
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

/// An index of one axis: a number, a range, [`stepped`], an integer or a bool tensor, [`NewAxis`], [`Rest`].
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

/// A range between dims, which must be in bounds.
fn sizes(start: Dim, stop: Option<Dim>) -> Pick {
    Pick::Slice(Slice::Sizes { start, stop })
}

/// A position; one that exceeds i64 is beyond every axis.
fn number(position: impl TryInto<i64>) -> i64 {
    position.try_into().unwrap_or(i64::MAX)
}

/// The exclusive end for an inclusive one; `None` after the last position.
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
        [] $type, position => Pick::Slice(Slice::At(number(position).into()));
        [] Range<$type>, range => span(Some(number(range.start)), Some(number(range.end)));
        [] RangeFrom<$type>, range => span(Some(number(range.start)), None);
        [] RangeTo<$type>, range => span(None, Some(number(range.end)));
        [] RangeToInclusive<$type>, range => span(None, after(number(range.end)));
        [] RangeInclusive<$type>, range => span(Some(number(*range.start())), after(number(*range.end())));
    )* } };
}

picks! { numbers i32 i64 usize }
picks! {
    [] Dim, position => Pick::Slice(Slice::At(position));
    [] &Dim, position => Pick::Slice(Slice::At(position.clone()));
    [] Range<Dim>, range => sizes(range.start, Some(range.end));
    [] RangeFrom<Dim>, range => sizes(range.start, None);
    [] RangeTo<Dim>, range => sizes(Dim::from(0), Some(range.end));
    [] RangeToInclusive<Dim>, range => sizes(Dim::from(0), Some(range.end + Dim::from(1)));
    [] RangeInclusive<Dim>, range => sizes(range.start().clone(), Some(range.end().clone() + Dim::from(1)));
    [] Range<&Dim>, range => sizes(range.start.clone(), Some(range.end.clone()));
    [] RangeFrom<&Dim>, range => sizes(range.start.clone(), None);
    [] RangeTo<&Dim>, range => sizes(Dim::from(0), Some(range.end.clone()));
    [] RangeToInclusive<&Dim>, range => sizes(Dim::from(0), Some(range.end + Dim::from(1)));
    [] RangeInclusive<&Dim>, range => sizes((*range.start()).clone(), Some(*range.end() + Dim::from(1)));
}
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

/// The positions where the bool tensors among the `picks` of `x` are true. Each is read once; everything else stays
/// lazy.
#[track_caller]
fn places(x: &Tensor, picks: &[Pick]) -> Result<Vec<Option<Tensor>>> {
    let of = |pick: &Pick| match pick {
        Pick::Tensor(mask) if mask.dtype() == DType::Bool => {
            let positions = select::positions(mask)?;
            Ok(Some(select::on_devices_of(x, Tensor::from_slice(&positions, [positions.len()]).internal())))
        }
        _ => Ok(None),
    };
    picks.iter().map(of).collect()
}

impl Call {
    /// Picks over nodes; bool tensors along with the positions where they are true, if known.
    fn picks(&mut self, picks: &[Pick], places: &[Option<Tensor>]) -> Vec<pick::Pick> {
        let mut node = |(number, pick): (usize, &Pick)| match pick {
            Pick::Slice(slice) => pick::Pick::Slice(slice.clone()),
            Pick::Tensor(tensor) => {
                let tensor = self.operand(tensor, DType::Void);
                match places.get(number) {
                    Some(Some(positions)) => {
                        pick::Pick::Places { positions: self.operand(positions, DType::Void), mask: tensor }
                    }
                    _ => pick::Pick::Tensor(tensor),
                }
            }
            Pick::NewAxis => pick::Pick::NewAxis,
            Pick::Rest => pick::Pick::Rest,
        };
        picks.iter().enumerate().map(&mut node).collect()
    }
}

impl Tensor {
    /// The part of this tensor at `picks`, from the first axis on, with PyTorch's indexing: a number picks a position
    /// and drops the axis, a range keeps what it covers (negative ends count from the end, and the range is clipped),
    /// [`stepped`] takes every n-th position, [`Rest`] skips to the last axes, [`NewAxis`] adds one. An integer tensor
    /// picks the positions that it contains, several are paired, and positions out of bounds read 0. A bool tensor
    /// picks where it is true, like the positions of [`nonzero`](Tensor::nonzero), and is computed at once.
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
    /// The result carries one if there are more picks than axes, a position is out of bounds, a step is 0, an index
    /// tensor does not hold integers, the dims of a bool tensor differ from those that it covers, or a named dim is
    /// sliced.
    #[track_caller]
    pub fn at(&self, picks: impl IntoPicks) -> Tensor {
        let location = Location::caller();
        if self.node().is_err() {
            return self.clone();
        }
        let mut call = Call::new("at", location);
        let (x, picks) = (call.operand(self, DType::Void), picks.into_picks());
        match places(self, &picks) {
            Ok(places) => {
                let picks = call.picks(&picks, &places);
                call.tensor(|builder| pick::at(builder, x, &picks))
            }
            Err(error) => Tensor::failed(error.at(location)),
        }
    }

    /// Binds this handle to a new state that has `value` at `picks`, as in [`Tensor::at`], and is unchanged elsewhere;
    /// clones and earlier views keep their values. `value`, a tensor or a number, broadcasts to the part. If index
    /// tensors contain a position several times, the last value wins.
    ///
    /// For a bool tensor, `value` has one element for each position where it is true, in order, or one for all of them,
    /// as in NumPy; or else one for each element of the whole part. If the number of values must match, or there are
    /// index tensors, the bool tensor is computed at once; everything else stays lazy. In a function that is being
    /// traced the positions cannot be counted: those beyond the last value become 0.
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
    /// x.set(x.gt(0), Tensor::from_slice(&[7i32, 8], [2]));
    /// assert_eq!(x.to_vec::<i32>()?, [0, 7, 0, 0, 8, 0]);
    /// # Ok::<(), tinyspec_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::at`]; and if `value` does not broadcast to the part, or its dtype does not fit.
    #[track_caller]
    pub fn set(&mut self, picks: impl IntoPicks, value: impl Operand) {
        let location = Location::caller();
        if self.node().is_err() {
            return;
        }
        let written = self.with(location, &picks.into_picks(), value).unwrap_or_else(Tensor::failed);
        match written.node() {
            Ok(_) => self.assign_at(location, &written),
            Err(_) => *self = written,
        }
    }

    /// This tensor with `value` at `picks`.
    fn with(&self, location: &'static Location<'static>, picks: &[Pick], value: impl Operand) -> Result<Tensor> {
        let tensors = picks.iter().filter(|pick| matches!(pick, Pick::Tensor(_))).count();
        let places = if tensors > 1 { places(self, picks).map_err(|error| error.at(location))? } else { vec![] };
        let mut call = Call::new("set", location);
        let (x, value) = (call.operand(self, DType::Void), call.operand(value, self.dtype()));
        let nodes = call.picks(picks, &places);
        let mask = picks.iter().find_map(|pick| match pick {
            Pick::Tensor(mask) if places.is_empty() && mask.dtype() == DType::Bool => Some(mask),
            _ => None,
        });
        if let Some(mask) = mask
            && let Some(count) = call.look(|builder| pick::counted(builder, x, &nodes, value))?
            && let Some(count) = count.as_const()
            && !Walk::of(std::slice::from_ref(mask.node()?)).has_placeholder
        {
            let found = select::positions(mask).map_err(|error| error.at(location))?.len();
            if found as i64 != count {
                let message = format!("{count} values for the {found} places where the mask is true");
                let error = tinyspec_ir::Error::new(ErrorKind::Shape, "set", message);
                return Err(error.help("as many values as places, or one for all of them").at(location).into());
            }
        }
        Ok(call.tensor(|builder| pick::set(builder, x, &nodes, value)))
    }
}
