use tinyspec::prelude::*;

#[function]
fn reshape<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.reshape([B, 32])
}

#[function]
fn expand<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.expand([B, 128])
}

#[function]
fn permute<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.permute([0, 0])
}

#[function]
fn pad<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.pad([0, 0], [B, 32], 0.0)
}

#[function]
fn shrink<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.shrink([0, 10], [B, 64])
}

#[function]
fn narrow<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.narrow(1, 60, 10)
}

#[function]
fn cat<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    Tensor::cat(&[x, &x.narrow(1, 0, 3)], 0)
}

#[function]
fn stack<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    Tensor::stack(&[x, &x.narrow(1, 0, 3)], 0)
}

#[function]
fn split<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let [a, b] = [x.split(30, 1), x.split(0, 1)];
    &a[0] + &b[0]
}

#[function]
fn squeeze<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.squeeze(1)
}

#[function]
fn unflatten<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.unflatten(1, [7, 9])
}

#[function]
fn repeat<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.repeat([2])
}

#[function]
fn roll<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.roll([1], [0, 1])
}

#[function]
fn list_index<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let parts = x.chunk(2, 1);
    let third = &parts[2];
    Tensor::cat(&[third, third], 1)
}

fn main() {}
