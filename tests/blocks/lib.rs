//! A library over another one: its functions call those, and are called from a third crate.

pub use layers::{act, moments};
use tinyspec::prelude::*;

/// Rows with mean 0 and variance 1.
#[function]
pub fn normalized<N, I>(x: &Tensor<f32, N, I>) -> Tensor<f32, N, I> {
    let (mean, variance) = moments(x);
    (x - mean) * (variance + 0.00001).rsqrt()
}

/// Two layers around an activation.
#[function]
pub fn mlp<N, I>(
    x: &Tensor<f32, N, I>,
    w: &Tensor<f32, I, { layers::WIDTH }>,
    b: &Tensor<f32, { layers::WIDTH }>,
) -> Tensor<f32, N, { layers::WIDTH * 2 }> {
    let h = ::layers::act(&layers::dense(x, w, b));
    layers::widened(&h, 0.5)
}

/// Names that arrive through globs.
pub mod prelude {
    pub use crate::{mlp, normalized};
    pub use layers::*;
}
