use tinyspec::prelude::*;

#[function]
fn as_many<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 32> {
    let (a, b) = x.chunk(2, 1);
    a + b
}

#[function]
fn too_many<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 32> {
    let (a, b, _) = x.chunk(2, 1);
    a + b
}

#[function]
fn too_few<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 16> {
    let (a, b) = x.split(16, 1);
    a + b
}

fn main() {}
