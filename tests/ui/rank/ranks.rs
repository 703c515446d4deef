use tinyspec::prelude::*;

#[function]
fn matmul_of_number<B>(x: &Tensor<f32, B, 64>, v: &Tensor<f32, 64>, s: f32) -> Tensor<f32, B, 64> {
    x.matmul(s)
}

#[function]
fn matmul_of_literal<B>(x: &Tensor<f32, B, 64>, v: &Tensor<f32, 64>, s: f32) -> Tensor<f32, B, 64> {
    x.matmul(2.0)
}

#[function]
fn diagonal<B>(x: &Tensor<f32, B, 64>, v: &Tensor<f32, 64>, s: f32) -> Tensor<f32, B, 64> {
    v.diagonal(0)
}

#[function]
fn triu<B>(x: &Tensor<f32, B, 64>, v: &Tensor<f32, 64>, s: f32) -> Tensor<f32, B, 64> {
    v.triu(0)
}

#[function]
fn permute<B>(x: &Tensor<f32, B, 64>, v: &Tensor<f32, 64>, s: f32) -> Tensor<f32, B, 64> {
    x.permute([1, 0, 2])
}

#[function]
fn expand<B>(x: &Tensor<f32, B, 64>, v: &Tensor<f32, 64>, s: f32) -> Tensor<f32, B, 64> {
    x.expand([64])
}

#[function]
fn pad<B>(x: &Tensor<f32, B, 64>, v: &Tensor<f32, 64>, s: f32) -> Tensor<f32, B, 64> {
    x.pad([0], [B], 0.0)
}

#[function]
fn annotation<B>(x: &Tensor<f32, B, 64>, v: &Tensor<f32, 64>, s: f32) -> Tensor<f32, B, 64> {
    let y: Tensor<f32, B, 64, 1> = x.relu();
    y
}

#[function]
fn transpose<B>(x: &Tensor<f32, B, 64>, v: &Tensor<f32, 64>, s: f32) -> Tensor<f32, B, 64> {
    v.transpose(0, 1)
}

#[function]
fn flatten<B>(x: &Tensor<f32, B, 64>, v: &Tensor<f32, 64>, s: f32) -> Tensor<f32, B, 64> {
    v.flatten(0, 1)
}

#[function]
fn result<B>(x: &Tensor<f32, B, 64>, v: &Tensor<f32, 64>, s: f32) -> Tensor<f32, B, 64> {
    x.sum(1, true).squeeze(1)
}

#[function]
fn group_norm<B>(x: &Tensor<f32, B, 64>, v: &Tensor<f32, 64>, s: f32) -> Tensor<f32, B, 64> {
    x.group_norm(v, v, 3, 0.00001)
}

fn main() {}
