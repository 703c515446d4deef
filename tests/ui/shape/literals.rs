use tinyspec::prelude::*;

const WIDTH: usize = 7;
const HEADS: usize = 2;

#[function]
fn reshaped<B>(x: &Tensor<f32, B, 8>) -> Tensor<f32, B, HEADS, { WIDTH / HEADS }> {
    x.reshape([B, HEADS, WIDTH / HEADS])
}

#[function]
fn multiplied<B>(x: &Tensor<f32, B, 8>, y: &Tensor<f32, { HEADS * WIDTH }, 3>) -> Tensor<f32, B, 3> {
    let product = x.matmul(y);
    product.relu()
}

#[function]
fn annotated<B>(x: &Tensor<f32, B, 8>) -> Tensor<f32, B, 8> {
    let y: Tensor<f32, B, { HEADS * WIDTH }> = x.relu();
    y
}

#[function]
fn returned<B>(x: &Tensor<f32, B, 8>) -> Tensor<f32, B, { HEADS * WIDTH }> {
    x.relu()
}

fn main() {}
