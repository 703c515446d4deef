use tinyspec::prelude::*;

#[function]
fn randn<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x + Tensor::randn([B, 64])
}

#[function]
fn uniform<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x + Tensor::uniform([B, 64])
}

#[function]
fn dropout<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.dropout(0.5)
}

#[function]
fn rand<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x * Tensor::rand([B, 64])
}

#[function]
fn seed<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    set_seed(1);
    x.relu()
}

fn main() {}
