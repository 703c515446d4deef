use tinyspec::prelude::*;

const SHAPE: [usize; 2] = [2, 4];

const fn padded(width: usize) -> usize {
    width + 1
}

#[function]
fn whole(x: &Tensor<f32, 8>) -> Tensor<f32, 2, 4> {
    x.reshape(SHAPE)
}

#[function]
fn element<B>(x: &Tensor<f32, B, 8>) -> Tensor<f32, B, 8> {
    x + SHAPE[1]
}

#[function]
fn differs<B>(x: &Tensor<f32, B, 8>) -> Tensor<f32, B, { padded(8) }> {
    x.relu()
}

#[function]
fn returned<B>(x: &Tensor<f32, B, { SHAPE[1] }>) -> Tensor<f32, B> {
    x.relu()
}

#[function]
fn of_a_dim<B>(x: &Tensor<f32, B, 8>) -> Tensor<f32, { padded(B) }, 8> {
    x.relu()
}

fn main() {}
