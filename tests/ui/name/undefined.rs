use tinyspec::prelude::*;

#[function]
fn number<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    let scale = 1.0 / (LENGTH as f32).sqrt();
    x * scale
}

#[function]
fn among_dims<B>(x: &Tensor<f32, B, K>) -> Tensor<f32, B> {
    x.reshape([B, K]).sum(1, false)
}

#[model]
struct Net<I> {
    w: Tensor<f32, I, O>,
    b: Tensor<f32, O>,
}

fn main() {}
