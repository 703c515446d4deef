use tinyspec::prelude::*;

#[function]
fn undeclared(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x * 2.0
}

#[function]
fn in_result<B>(x: &Tensor<f32, B>) -> Tensor<f32, B, WIDTH> {
    x * 2.0
}

#[function]
fn type_name<B>(x: &Tenser<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn option<B>(x: &Tensor<f32, B>) -> Tensr<f32, B> {
    x * 2.0
}

fn main() {}
