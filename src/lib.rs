//! A tensor compiler in one dialect, UOp: lazy tensors on the host, machine code for what they compute.
//!
//! ```
//! use tinyspec::prelude::*;
//!
//! fn main() -> Result<()> {
//!     let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [2, 2]);
//!     let y = (x.matmul(x.transpose(0, 1)) + 1.0).relu();
//!     assert_eq!(y.to_vec::<f32>()?, [6.0, 12.0, 12.0, 26.0]);
//!     Ok(())
//! }
//! ```
//!
//! A wrong operation needs no `?`: the tensor carries its error, with the caller's line, until it is read.
//!
//! ```
//! # use tinyspec::prelude::*;
//! let wrong = Tensor::ones([2, 3]).matmul(Tensor::ones([4, 5])) * 2.0;
//! let error = wrong.to_vec::<f32>().unwrap_err();
//! assert!(error.to_string().contains("matmul"));
//! ```
//!
//! Environment: `TINYSPEC_DEVICE` (`cpu`, `interpreter`), `TINYSPEC_DEBUG` (2 a table of kernels, 4 their code, 5 the UOps
//! of every stage), `TINYSPEC_VERIFY=1`, `TINYSPEC_LLVM` (a libLLVM or its folder), `TINYSPEC_CACHE` (a folder, or `off`).

pub use tinyspec_backends as backends;
pub use tinyspec_core::execute::{Device, default_device, device, register, set_default_device, with_default_device};
pub use tinyspec_core::function::named;
pub use tinyspec_core::{
    Argument, Element, Error, Function, IntoAxes, IntoShape, Operand, Permission, Prepared, Result, Scalar, Spec,
    Tensor, grad, grad_or_zeros, realize_all, set_seed,
};
pub use tinyspec_core::{execute, function, lower, nn, profile};
pub use tinyspec_ir as ir;
pub use tinyspec_ir::ops::options;
pub use tinyspec_ir::{DType, Dim, ErrorKind};

pub use tinyspec_macros::{function, uop};

/// What the macros expand to.
#[doc(hidden)]
pub mod __private {
    pub use crate::__tinyspec_hop as hop;
    pub use tinyspec_core::function::{
        EmbeddedFunction, ScalarArgument, call, call_gradient, check_size, constant, size, wrong,
    };
    pub use tinyspec_core::function::{call_kernel, kernel_constant};
    pub use tinyspec_macros::trace;
}

/// Visits the companion of the next callee, or, when all are known, goes on to the trace.
#[doc(hidden)]
#[macro_export]
macro_rules! __tinyspec_hop {
    ({ $($signature:tt)* } [[$($next:tt)*] $($rest:tt)*] [$($known:tt)*] $state:tt) => {
        $($next)* ! { @tinyspec1 [$crate::__private::hop] [$($rest)*] [$($known)* { $($signature)* }] $state }
    };
    ({ $($signature:tt)* } [] [$($known:tt)*] $state:tt) => {
        $crate::__private::trace! { [$($known)* { $($signature)* }] $state }
    };
}

/// What most programs need: `use tinyspec::prelude::*`.
pub mod prelude {
    pub use crate::nn::{Adam, Optimizer, Sgd, SgdOptions};
    pub use crate::options::{
        AvgPool1d, AvgPool2d, AvgPool3d, Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d,
        MaxPool1d, MaxPool2d, MaxPool3d, default,
    };
    pub use crate::{
        DType, Dim, Error, Function, Result, Spec, Tensor, function, grad, named, realize_all, set_seed, uop,
    };
}
