use tinyspec::prelude::*;

#[function]
fn first<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x[0]
}

#[function]
fn range<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x[1..3] + x
}

#[function]
fn two<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x[[0, 1]]
}

#[function]
fn assigned<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let mut y = x.clone();
    y[0] = x.relu();
    y
}

#[function]
fn field<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.data
}

#[function]
fn tuple_field<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.0
}

#[function]
fn size<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x * x.shape()[2]
}

#[function]
fn negative_list<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let parts = x.chunk(2, 1);
    parts[-1].clone()
}

#[function]
fn list_by_dim<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let parts = x.chunk(2, 1);
    parts[B].clone()
}

#[function]
fn tuple_index<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let pair = (x, x);
    pair[0]
}

fn main() {}
