use tinyspec::prelude::*;

#[function]
fn bracketed(x: &Tensor<f32, [4, 4]>) -> Tensor<f32, 4> {
    x * 2.0
}

#[function]
fn without_dtype<B>(x: &Tensor<B, 64>) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn dims_first<B>(x: &Tensor<B, 64, f32>) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn negative<B>(x: &Tensor<f32, B, -1>) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn negative_expression(x: &Tensor<f32, { 2 - 4 }>) -> Tensor<f32, 4> {
    x * 2.0
}

#[function]
fn fraction(x: &Tensor<f32, 1.5>) -> Tensor<f32, 4> {
    x * 2.0
}

#[function]
fn called(x: &Tensor<f32, { size() }>) -> Tensor<f32, 4> {
    x * 2.0
}

#[function]
fn power<B>(x: &Tensor<f32, B>) -> Tensor<f32, { B << 1 }> {
    x * 2.0
}

#[function]
fn inferred(x: &Tensor<f32, _>) -> Tensor<f32, 4> {
    x * 2.0
}

#[function]
fn double<B>(x: &Tensor<double, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn huge(x: &Tensor<f32, 99999999999999999999>) -> Tensor<f32, 4> {
    x * 2.0
}

#[function]
fn empty(x: &Tensor<>) -> Tensor<f32, 4> {
    x * 2.0
}

fn main() {}
