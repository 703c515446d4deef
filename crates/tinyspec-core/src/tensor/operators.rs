//! Rust's operators, with tensors and numbers on either side.
//!
//! The right operand may be a number of any type, the left one an `f64`, an `i32` or a `bool`: with two float types,
//! rustc could not infer the type of a literal, and would refuse `(1.0 - &x).sqrt()`. A `#[function]` wraps left
//! operands in [`Left`], so that numbers of all types are allowed. In the body of a
//! `#[function]`, a number parameter `rate` is a `&Tensor`, so `&rate` is a `&&Tensor`.

use super::Tensor;
use super::methods::{Call, Operand};
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};
use std::panic::Location;
use tinyspec_ir::ops::arithmetic;
use tinyspec_ir::{DType, Dim};

/// A left operand of any number type. The typed copy of a `#[function]` wraps its left operands in it, which spares rustc the
/// inference.
#[doc(hidden)]
pub struct Left<N>(pub N);

macro_rules! operators {
    ($($trait:ident $method:ident $path:ident;)*) => { $(
        impl<R: Operand> $trait<R> for &Tensor {
            type Output = Tensor;

            #[track_caller]
            fn $method(self, other: R) -> Tensor {
                let mut call = Call::new(stringify!($path), Location::caller());
                let (x, y) = (call.operand(self, self.dtype()), call.operand(other, self.dtype()));
                call.tensor(|builder| arithmetic::$path(builder, x, y))
            }
        }

        impl<R: Operand> $trait<R> for Tensor {
            type Output = Tensor;

            #[track_caller]
            fn $method(self, other: R) -> Tensor {
                $trait::$method(&self, other)
            }
        }

        impl<R: Operand> $trait<R> for &&Tensor {
            type Output = Tensor;

            #[track_caller]
            fn $method(self, other: R) -> Tensor {
                $trait::$method(*self, other)
            }
        }

        impl<N: Operand, R: Operand> $trait<R> for Left<N> {
            type Output = Tensor;

            #[track_caller]
            fn $method(self, other: R) -> Tensor {
                let mut call = Call::new(stringify!($path), Location::caller());
                let dtype = other.own_dtype().unwrap_or(DType::Void);
                let (x, y) = (call.operand(self.0, dtype), call.operand(other, dtype));
                call.tensor(|builder| arithmetic::$path(builder, x, y))
            }
        }

        // One type of each kind, so that a literal on the left needs no suffix.
        operators!(@left $trait $method $path f64 i32 bool Dim &Dim);
    )* };
    (@left $trait:ident $method:ident $path:ident $($left:ty)*) => { $(
        impl $trait<&Tensor> for $left {
            type Output = Tensor;

            #[track_caller]
            fn $method(self, other: &Tensor) -> Tensor {
                let mut call = Call::new(stringify!($path), Location::caller());
                let (x, y) = (call.operand(self, other.dtype()), call.operand(other, other.dtype()));
                call.tensor(|builder| arithmetic::$path(builder, x, y))
            }
        }

        impl $trait<&&Tensor> for $left {
            type Output = Tensor;

            #[track_caller]
            fn $method(self, other: &&Tensor) -> Tensor {
                $trait::$method(self, *other)
            }
        }

        impl $trait<Tensor> for $left {
            type Output = Tensor;

            #[track_caller]
            fn $method(self, other: Tensor) -> Tensor {
                $trait::$method(self, &other)
            }
        }
    )* };
}

operators! {
    Add add add;
    Sub sub sub;
    Mul mul mul;
    Div div div;
    Rem rem modulo;
    BitAnd bitand and;
    BitOr bitor or;
    BitXor bitxor xor;
    Shl shl shl;
    Shr shr shr;
}

impl Neg for &Tensor {
    type Output = Tensor;

    #[track_caller]
    fn neg(self) -> Tensor {
        Tensor::neg(self)
    }
}

impl Neg for &&Tensor {
    type Output = Tensor;

    #[track_caller]
    fn neg(self) -> Tensor {
        Tensor::neg(self)
    }
}

impl Neg for Tensor {
    type Output = Tensor;

    #[track_caller]
    fn neg(self) -> Tensor {
        Tensor::neg(&self)
    }
}

impl Not for &Tensor {
    type Output = Tensor;

    #[track_caller]
    fn not(self) -> Tensor {
        Tensor::not(self)
    }
}

impl Not for &&Tensor {
    type Output = Tensor;

    #[track_caller]
    fn not(self) -> Tensor {
        Tensor::not(self)
    }
}

impl Not for Tensor {
    type Output = Tensor;

    #[track_caller]
    fn not(self) -> Tensor {
        Tensor::not(&self)
    }
}

macro_rules! assigning {
    ($($trait:ident $method:ident $operator:ident $path:ident;)*) => { $(
        /// Binds this handle to the result; clones keep the old value.
        impl<R: Operand> std::ops::$trait<R> for Tensor {
            #[track_caller]
            fn $method(&mut self, other: R) {
                *self = $operator::$path(&*self, other);
            }
        }
    )* };
}

assigning! {
    AddAssign add_assign Add add;
    SubAssign sub_assign Sub sub;
    MulAssign mul_assign Mul mul;
    DivAssign div_assign Div div;
    RemAssign rem_assign Rem rem;
    BitAndAssign bitand_assign BitAnd bitand;
    BitOrAssign bitor_assign BitOr bitor;
    BitXorAssign bitxor_assign BitXor bitxor;
    ShlAssign shl_assign Shl shl;
    ShrAssign shr_assign Shr shr;
}
