use tinyspec::prelude::*;

struct Out;

#[function]
fn unit<B>(x: &Tensor<f32, B>) -> () {
    x * 2.0
}

#[function]
fn number<B>(x: &Tensor<f32, B>) -> f32 {
    x.sum(.., false)
}

#[function]
fn fallible<B>(x: &Tensor<f32, B>) -> Result<Tensor<f32, B>> {
    Ok(x * 2.0)
}

#[function]
fn optional<B>(x: &Tensor<f32, B>) -> Option<Tensor<f32, B>> {
    Some(x * 2.0)
}

#[function]
fn reference<B>(x: &Tensor<f32, B>) -> &Tensor<f32, B> {
    x
}

#[function]
fn opaque<B>(x: &Tensor<f32, B>) -> impl Clone {
    x * 2.0
}

#[function]
fn structure<B>(x: &Tensor<f32, B>) -> Out {
    x * 2.0
}

#[function]
fn list<B>(x: &Tensor<f32, B>) -> Vec<Tensor<f32, B>> {
    x.chunk(2, 0)
}

#[function]
fn array<B>(x: &Tensor<f32, B>) -> [Tensor<f32, B>; 2] {
    [x * 2.0, x * 3.0]
}

#[function]
fn without_dims<B>(x: &Tensor<f32, B>) -> Tensor {
    x * 2.0
}

fn main() {}
