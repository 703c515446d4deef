use tinyspec::prelude::*;

#[function]
fn in_parameter(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x * 2.0
}

#[function]
fn in_body<T>(x: &Tensor<f32, T, 64>) -> Tensor<f32, T, 8, 8> {
    x.reshape([T, K, 8])
}

#[function]
fn in_result(x: &Tensor<f32, 64>) -> Tensor<f32, M, 64> {
    x.reshape([1, 64])
}

fn main() {}
