use tinyspec::prelude::*;

#[function]
fn dtypes<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let a = x.half();
    let b = x.float();
    let c = x.double();
    let d = x.int();
    let e = x.long();
    let f = x.bool();
    x.relu()
}

#[function]
fn results<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.relu().unwrap().exp().expect("a tensor")
}

#[function]
fn in_place<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.clamp_(0.0, 1.0).relu_()
}

#[function]
fn composed<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.addmm(x, x).arcsin()
}

#[function]
fn of_data<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.nonzero()
}

fn main() {}
