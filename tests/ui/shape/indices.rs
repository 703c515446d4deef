use tinyspec::prelude::*;

#[function]
fn gather<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, 7, 3>, t: &Tensor<f32, 100, 8>) -> Tensor<f32, B, 64> {
    x.gather(i, 1)
}

#[function]
fn scatter<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, 7, 3>, t: &Tensor<f32, 100, 8>) -> Tensor<f32, B, 64> {
    x.scatter_add(i, t, 1)
}

#[function]
fn embedding<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, 7, 3>, t: &Tensor<f32, 100, 8>) -> Tensor<f32, B, 64> {
    i.embedding(x)
}

#[function]
fn cross_entropy<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, 7, 3>, t: &Tensor<f32, 100, 8>) -> Tensor<f32, B, 64> {
    x.cross_entropy(i, "mean", 0.0, -1)
}

#[function]
fn norm<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, 7, 3>, t: &Tensor<f32, 100, 8>) -> Tensor<f32, B, 64> {
    x.layer_norm(t, t, 1, 0.00001)
}

#[function]
fn attention<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, 7, 3>, t: &Tensor<f32, 100, 8>) -> Tensor<f32, B, 64> {
    x.sdpa(t, t, true)
}

fn main() {}
