use tinyspec::prelude::*;

#[function]
fn parameter<B>(x: &mut Tensor<f32, B>) -> Tensor<f32, B> {
    *x = x.relu();
    x.clone()
}

#[function]
fn reference<B>(x: &Tensor<f32, B>) -> &Tensor<f32, B> {
    x
}

#[function]
fn dereferenced<B, I>(x: &Tensor<f32, B, I>, w: &Tensor<f32, I, I>) -> Tensor<f32, B, I> {
    let y = (*x).relu().matmul(*w);
    *x + y
}

#[function]
fn list<B, C>(x: &Tensor<f32, B, C>, y: &Tensor<f32, B, C>) -> Tensor<f32, B, { 4 * C }> {
    let both = Tensor::cat(vec![x, y], 1);
    let again = Tensor::cat([x, y], 1);
    Tensor::cat(&[&both, &again], 1)
}

fn main() {}
