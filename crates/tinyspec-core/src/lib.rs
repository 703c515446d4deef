//! Lazy tensors, functions and the lowering pipeline of tinyspec.

mod cache;
mod compare;
mod compile;
mod custom_function;
mod device;
mod error;
pub mod execute;
mod file;
pub mod function;
mod kept;
mod lazy;
pub mod lower;
pub mod nn;
pub mod profile;
pub mod search;
pub mod tensor;
mod threads;

pub use error::{Error, Result};
pub use function::{Function, Prepared, Program, Spec};
pub use tensor::{
    Argument, Element, F8E4M3, F8E5M2, GradcheckOptions, IntoAxes, IntoDevice, IntoPick, IntoPicks, IntoShape, NewAxis,
    Operand, Pick, Rest, Scalar, Tensor, grad, grad_or_zeros, gradcheck, random_state, realize_all, set_random_state,
    set_seed, stepped,
};
pub use threads::{set_threads, threads};
pub use tinyspec_ir::rewrite::Permission;
