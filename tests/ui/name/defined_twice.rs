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

uop! {
    <N> pub fn kernel(x: &Global<f32, N>) -> Global<f32, N> as y { for i in global(N) { y[i] = x[i]; } }
    <N> pub fn kernel(x: &Global<f32, N>) -> Global<f32, N> as y { for i in global(N) { y[i] = 2.0 * x[i]; } }
}

fn main() {}
