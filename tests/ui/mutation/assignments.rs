use tinyspec::prelude::*;

static mut COUNTER: i32 = 0;

#[function]
fn not_mut<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let y = x.relu();
    y = y * 2.0;
    y
}

#[function]
fn parameter<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x = x.relu();
    x
}

#[function]
fn outside<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    COUNTER = 1;
    x.relu()
}

#[function]
fn field<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let mut pair = (x.relu(), x.exp());
    pair.0 = x.relu();
    pair.0
}

#[function]
fn element<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let mut parts = x.chunk(2, 1);
    parts[0] = x.relu();
    parts[0].clone()
}

#[function]
fn through_reference<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let mut y = x.relu();
    let r = &mut y;
    *r = x.exp();
    y
}

#[function]
fn shape_changes<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let mut y = x.relu();
    for _ in 0..2 {
        y = y.matmul(x);
    }
    y
}

#[function]
fn pushed<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let mut parts = vec![];
    parts.push(x.relu());
    Tensor::cat(&parts, 0)
}

#[function]
fn late<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let y;
    y = x.relu();
    y
}

fn main() {}
