use tinyspec::prelude::*;

struct Weights;

#[function]
fn method<B>(&self, x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn mutable<B>(mut x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn changed<B>(x: &mut Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn list<B>(x: &[Tensor<f32, B>]) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn vector<B>(x: Vec<Tensor<f32, B>>) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn optional<B>(x: Option<&Tensor<f32, B>>) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn structure<B>(x: &Tensor<f32, B>, w: &Weights) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn opaque<B>(x: &impl Clone) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn text<B>(x: &Tensor<f32, B>, mode: &str) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn size<B>(x: &Tensor<f32, B>, n: usize) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn pair<B>(x: (&Tensor<f32, B>, &Tensor<f32, B>)) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn pattern<B>(_: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn callback<B>(x: &Tensor<f32, B>, f: fn(&Tensor) -> Tensor) -> Tensor<f32, B> {
    f(x)
}

#[function]
fn nothing() -> Tensor<f32, 4> {
    Tensor::zeros([4])
}

#[function]
fn attribute<B>(#[frozen] x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

fn main() {}
