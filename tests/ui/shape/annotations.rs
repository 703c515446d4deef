use tinyspec::prelude::*;

#[function]
fn shapes<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let a: Tensor<f32, 64, B> = x.relu();
    let b: Tensor<f64, B, 64> = x.relu();
    let c: Tensor<f32, B> = x.relu();
    let (d, e): (Tensor<f32, B>, Tensor<f32, B, 64>) = (x.sum(0, false), x.exp());
    let f: &Tensor<f32, B, 65> = x;
    a + b + c + d + e + f
}

#[function]
fn types<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let a: f32 = x.relu();
    let b: Tensor<f32, B, 64> = 1.0;
    let c: Tensor = x;
    b + a + c
}

#[function]
fn badly_written<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let a: Tensor<f33, B, 64> = x.relu();
    let b: Tensor<B, 64> = x.relu();
    a + b
}

fn main() {}
