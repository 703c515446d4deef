use tinyspec::prelude::*;

const fn first(of: &[f32]) -> f32 {
    of[0]
}

// Rust, and nothing that has a sentence of its own: never a function without a graph.
#[function]
fn called_in_a_constant<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    const SCALE: f32 = first(&[3.0]);
    x * SCALE
}

// Where rustc finds a mistake, that is all that is said.
#[function]
fn of_rustc<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x.nothing_like_it + 1.0
}

#[function]
fn between_others<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    const SCALE: f32 = first(&[3.0]);
    called_in_a_constant(x) * SCALE
}

#[model(functions)]
struct Scale<N> {
    w: Tensor<f32, N>,
}

#[function]
impl<N> Scale<N> {
    fn forward<B>(&self, x: &Tensor<f32, B, N>) -> Tensor<f32, B, N> {
        const SCALE: f32 = first(&[3.0]);
        x * &self.w * SCALE
    }
}

fn main() {}
