//! `mlp.prepare(&[…])`: Rust functions of tensors can be prepared like a [`Function`].

use super::{Function, Prepared, Results, Spec};
use crate::tensor::Tensor;
use crate::{Error, Result};
use std::panic::Location;
use tinyspec_ir::ErrorKind;

/// Rust functions over tensors, including those of `#[function]`.
///
/// ```
/// # use tinyspec_core::{Tensor, function::Prepare};
/// fn double(x: &Tensor) -> Tensor {
///     x + x
/// }
/// let x = Tensor::from_slice(&[1f32, 2.0], [2]);
/// let run = double.prepare(&[&x])?;
/// let mut out = run.outputs()?;
/// run.call(&mut out, &[&x])?;
/// assert_eq!(out[0].to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), tinyspec_core::Error>(())
/// ```
///
/// A function with scalar parameters is prepared by its `FUNCTION`: `axpy::FUNCTION.prepare(&[&x, &a])`.
pub trait Prepare<Arguments> {
    /// Traces the function on arguments like these and plans it: calls of the result neither allocate nor build a graph.
    ///
    /// # Errors
    /// When the number of arguments is wrong, the function refuses them, or a kernel cannot be compiled.
    fn prepare(&self, arguments: &[&Tensor]) -> Result<Prepared>;
}

macro_rules! callable {
    ($($count:literal: $($tensor:ident)*;)*) => { $(
        impl<F, R> Prepare<fn($(callable!(@type $tensor)),*) -> R> for F
        where
            F: Fn($(callable!(@reference $tensor)),*) -> R,
            R: Results,
        {
            #[track_caller]
            fn prepare(&self, arguments: &[&Tensor]) -> Result<Prepared> {
                let location = Location::caller();
                if arguments.len() != $count {
                    let message = format!("takes {} tensors, found {}", $count, arguments.len());
                    return Err(tinyspec_ir::Error::new(ErrorKind::Arity, "prepare", message).at(location).into());
                }
                for argument in arguments {
                    argument.node()?;
                }
                let inputs: Vec<Spec> = arguments.iter().map(|argument| Spec::of(argument)).collect();
                let traced = Function::trace(&inputs, |inputs| match inputs {
                    [$($tensor),*] => self($($tensor),*).into_tensors(),
                    _ => vec![Tensor::failed(Error::refused(ErrorKind::Arity, "prepare", "a wrong number of inputs"))],
                });
                traced.map_err(|error| error.at(location))?.prepare(arguments)
            }
        }
    )* };
    (@type $tensor:ident) => { Tensor };
    (@reference $tensor:ident) => { &Tensor };
}
callable! {
    1: a; 2: a b; 3: a b c; 4: a b c d; 5: a b c d e; 6: a b c d e f; 7: a b c d e f g; 8: a b c d e f g h;
    9: a b c d e f g h i; 10: a b c d e f g h i j; 11: a b c d e f g h i j k; 12: a b c d e f g h i j k l;
}
