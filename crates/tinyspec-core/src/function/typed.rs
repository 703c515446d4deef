//! Helpers for the typed copy of a body, for what plain Rust cannot express.

use super::Results;
use crate::Error;
use crate::tensor::{Tensor, apply};
use std::panic::Location;
use tinyspec_ir::ops::creation;
use tinyspec_ir::{DType, Dim, ErrorKind};

/// A size in the typed copy of a body: a number, or a named dim.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a size is a whole number or a dim, found `{Self}`",
    label = "expected a size"
)]
pub trait Size {
    /// As a dim.
    fn to_dim(&self) -> Dim;
}

macro_rules! sizes {
    ($($type:ty)*) => { $(impl Size for $type {
        fn to_dim(&self) -> Dim {
            Dim::from(*self)
        }
    })* };
}
sizes!(i32 i64 usize);

impl Size for Dim {
    fn to_dim(&self) -> Dim {
        self.clone()
    }
}

impl<T: Size> Size for &T {
    fn to_dim(&self) -> Dim {
        T::to_dim(self)
    }
}

/// A size in a shape of the typed copy.
#[doc(hidden)]
pub fn size(size: &impl Size) -> Dim {
    size.to_dim()
}

/// A constant of any integer type, for a method that takes an `i64`.
#[doc(hidden)]
pub trait Whole {
    /// As an `i64`.
    fn whole(self) -> i64;
}

macro_rules! whole {
    ($($type:ty)*) => { $(impl Whole for $type {
        fn whole(self) -> i64 {
            self as i64
        }
    })* };
}
whole!(i8 i16 i32 i64 isize u8 u16 u32 usize);

/// As an `i64`.
#[doc(hidden)]
pub fn whole(number: impl Whole) -> i64 {
    number.whole()
}

/// A size as a number of the graph, in the typed copy.
#[doc(hidden)]
#[track_caller]
pub fn size_as(size: &impl Size, dtype: DType) -> Tensor {
    apply(Location::caller(), &[], |builder, _| creation::size(builder, &size.to_dim(), dtype))
}

/// A list that is destructured by an array pattern, in the typed copy.
#[doc(hidden)]
pub fn array<const COUNT: usize, L: IntoIterator>(list: L) -> [L::Item; COUNT] {
    let mut list = list.into_iter();
    std::array::from_fn(|_| list.next().unwrap_or_else(|| unreachable!("the macro has counted the elements")))
}

/// Stands in the typed copy where the macro has refused an expression.
#[doc(hidden)]
pub fn wrong() -> Tensor {
    Tensor::failed(Error::refused(ErrorKind::Unsupported, "function", "the macro refused this expression"))
}

/// Stands for the results of a body that the macro has refused.
#[doc(hidden)]
pub fn wrong_results<R: Results>() -> R {
    R::from_tensors(vec![wrong(); R::COUNT])
}
