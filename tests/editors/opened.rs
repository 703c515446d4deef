//! What an editor opens. It is compiled with the tests, so that it is right before it is half typed.

use layers::dense;
use tinyspec::prelude::*;

/// In heads.
///
/// Each has its part of the last axis.
#[function(where(D % H == 0))]
pub fn heads<B, D, H>(x: &Tensor<f32, B, D>, h: &Tensor<f32, H>) -> Tensor<f32, B, H, { D / H }> {
    x.reshape([B, H, D / H]) + h.reshape([H, 1])
}

#[function(grad)]
pub fn loss<B>(x: &Tensor<f32, B, 784>, w: &Tensor<f32, 784, 10>, b: &Tensor<f32, 10>, scale: f32) -> Tensor<f32> {
    let y = dense(x, w, b);
    y.relu().sum(.., false) * scale
}

/// As many as there are.
pub const LAYERS: usize = 2;

/// Made when it is first used.
#[function]
pub fn deep<B>(x: &Tensor<f32, B, 4>, residual: bool) -> Tensor<f32, B, 4> {
    let mut y = x.clone();
    for _ in 0..LAYERS {
        let z = y.relu();
        y = if residual { y + z } else { z };
    }
    y
}

/// A layer.
#[model(functions)]
pub struct Linear<I, O> {
    /// By column.
    pub weight: Tensor<f32, I, O>,
    bias: Option<Tensor<f32, O>>,
}

#[function]
impl<I, O> Linear<I, O> {
    /// Its value.
    pub fn forward<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, O> {
        x.matmul(&self.weight)
    }
}

/// What it has seen.
#[model(functions)]
pub struct Mean {
    /// So far.
    #[model(buffer)]
    pub mean: Tensor<f32, 3>,
}

#[function]
impl Mean {
    /// The next one.
    pub fn see<B>(&mut self, x: &Tensor<f32, B, 3>) -> Tensor<f32, B, 3> {
        self.mean = &self.mean * 0.9 + x.mean(0, false) * 0.1;
        x - &self.mean
    }
}

/// Of a model.
#[function]
pub fn run<B>(layer: &Linear<3, 4>, x: &Tensor<f32, B, 3>) -> (Tensor<f32, B, 4>, Tensor<f32, B, 3>) {
    (layer.forward(x), x.relu())
}

uop! { <N>
    /// `a x + y`
    pub fn saxpy(y: &mut Global<f32, N>, x: &Global<f32, N>, a: f32) {
        for i in global(N) { y[i] = a * x[i] + y[i]; }
    }
}
