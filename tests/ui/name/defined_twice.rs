use tinyspec::prelude::*;

#[function]
fn twice<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x.relu()
}

#[function]
fn twice<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x.exp()
}

#[function]
fn parameters<B>(x: &Tensor<f32, B>, x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x.exp()
}

#[function]
fn dim_and_parameter<x>(x: &Tensor<f32, x>) -> Tensor<f32, x> {
    x.exp()
}

fn main() {}
