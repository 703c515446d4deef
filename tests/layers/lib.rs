//! A library of `#[function]`s: other crates call them, and their shapes are checked there.

/// For crates that have no dependency of their own on it.
pub use tinyspec;
use tinyspec::prelude::*;

/// Features between layers.
pub const WIDTH: usize = 8;

/// An affine map.
#[function]
pub fn dense<N, I, O>(x: &Tensor<f32, N, I>, w: &Tensor<f32, I, O>, b: &Tensor<f32, O>) -> Tensor<f32, N, O> {
    x.matmul(w) + b
}

/// As wide as the constant says.
#[function]
pub fn widened<N>(x: &Tensor<f32, N, WIDTH>, scale: f32) -> Tensor<f32, N, { WIDTH * 2 }> {
    Tensor::cat(&[x, &(x * scale)], 1)
}

/// Mean and variance of rows.
#[function]
pub fn moments<N, I>(x: &Tensor<f32, N, I>) -> (Tensor<f32, N, 1>, Tensor<f32, N, 1>) {
    (x.mean(1, true), x.var(1, 0, true))
}

mod hidden {
    use tinyspec::prelude::*;

    /// Reached through the crate's root only.
    #[function]
    pub fn activated<N, I>(x: &Tensor<f32, N, I>) -> Tensor<f32, N, I> {
        // A helper that nobody else sees.
        doubled(&x.relu())
    }

    #[function]
    fn doubled<N, I>(x: &Tensor<f32, N, I>) -> Tensor<f32, N, I> {
        x * 2.0
    }
}

pub use hidden::activated;
/// The same under another name.
pub use hidden::activated as act;

/// Layers of weights.
pub mod models {
    use tinyspec::prelude::*;

    /// `x @ weight + bias`
    #[model(functions)]
    pub struct Affine<I, O> {
        /// By column.
        pub weight: Tensor<f32, I, O>,
        bias: Tensor<f32, O>,
    }

    #[function]
    impl<I, O> Affine<I, O> {
        /// The layer's value.
        pub fn forward<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, O> {
            x.matmul(&self.weight) + &self.bias
        }
    }

    /// Two of them, which the outside cannot name.
    #[model(functions)]
    pub struct Pair<H> {
        first: Affine<H, H>,
        second: Affine<H, 2>,
    }

    #[function]
    impl<H> Pair<H> {
        /// One after the other.
        pub fn forward<B>(&self, x: &Tensor<f32, B, H>) -> Tensor<f32, B, 2> {
            self.second.forward(&self.first.forward(x).tanh())
        }
    }
}
