//! Here tinyspec is called `ts`, and another library has it too, as `layers::tinyspec`: there is no `::tinyspec`.

use ts::prelude::*;

/// An affine map, with a gradient.
#[function(crate = ts, grad)]
pub fn loss<B, I>(x: &Tensor<f32, B, I>, w: &Tensor<f32, I, 3>, scale: f32) -> Tensor<f32> {
    // A function that was compiled under the usual name.
    let h = layers::dense(x, w, &Tensor::zeros([3]));
    (activated(&h) * scale).sum(.., false)
}

/// By a kernel.
#[function(crate = ts)]
pub fn activated<B, H>(x: &Tensor<f32, B, H>) -> Tensor<f32, B, H> {
    squares(x)
}

uop! { <M, N>
    #[gradient(slopes)]
    /// Elementwise.
    pub fn squares(x: &Global<f32, M, N>) -> Global<f32, M, N> as y {
        for i in global(M) { for j in local(N) { y[i, j] = x[i, j] * x[i, j]; } }
    }
}

#[function(crate = ts)]
fn slopes<M, N>(x: &Tensor<f32, M, N>, dy: &Tensor<f32, M, N>) -> Tensor<f32, M, N> {
    dy * x * 2.0
}

/// A layer.
#[model(crate = ts, functions)]
pub struct Layer<I, O> {
    #[model(init = ones)]
    weight: Tensor<f32, I, O>,
    inner: Option<layers::models::Affine<O, O>>,
}

#[function(crate = ts)]
impl<I, O> Layer<I, O> {
    /// Its value.
    pub fn forward<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, O> {
        let h = x.matmul(&self.weight);
        if let Some(inner) = &self.inner { inner.forward(&h) } else { h }
    }
}

/// Through the library that has tinyspec.
pub mod through {
    use layers::tinyspec::prelude::*;

    /// Layers.
    #[model(crate = layers::tinyspec)]
    pub struct Stack {
        layers: [super::Layer<4, 4>; 2],
    }

    impl Stack {
        /// In order.
        pub fn layers(&self) -> &[super::Layer<4, 4>] {
            &self.layers
        }
    }

    /// Their value.
    #[function(crate = layers::tinyspec)]
    pub fn forward<B>(stack: &Stack, x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
        let mut h = doubled(x);
        for layer in &stack.layers {
            h = layer.forward(&h);
        }
        h
    }

    uop! { <M, N>
        fn doubled(x: &Global<f32, M, N>) -> Global<f32, M, N> as y {
            for i in global(M) { for j in local(N) { y[i, j] = x[i, j] + x[i, j]; } }
        }
    }
}
