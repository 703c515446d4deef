//! Kernels of `uop!` as the macro calls them.

use super::EmbeddedFunction;
use crate::tensor::{Scalar, Tensor};
use tinyspec_ir::{Const, DType};

/// The written buffers after a kernel, lazily; a mistake in the arguments is carried by each of them.
#[doc(hidden)]
#[track_caller]
pub fn call_kernel<const COUNT: usize>(function: &'static EmbeddedFunction, arguments: &[&Tensor]) -> [Tensor; COUNT] {
    let results = function.call(arguments);
    std::array::from_fn(|number| {
        // A kernel that cannot be decoded has one result: its error.
        let result = results.get(number).or(results.first());
        result.cloned().unwrap_or_else(|| unreachable!("a call has results"))
    })
}

/// A scalar argument.
#[doc(hidden)]
pub fn kernel_scalar<S: Scalar>(value: S) -> Tensor {
    Tensor::full((), value)
}

/// An outer constant.
#[doc(hidden)]
pub fn kernel_constant(value: i64) -> Const {
    Const::int(DType::Index, value as i128)
}
