//! Numbers have the range of their type.

use tinyspec::prelude::*;

#[function]
fn literals(x: &Tensor<f32>) -> Tensor<f32> {
    x * 300u8 + -129i8 + 256 as u8
}

#[function]
fn results(x: &Tensor<f32>) -> Tensor<f32> {
    let mut sum = 100u8;
    for i in 0..3 {
        sum *= 2;
    }
    x * sum + (2000000000 + 2000000000) + (1 << 32) + 1 / 0
}

#[function]
fn learned(x: &Tensor<f32>) -> Tensor<f32> {
    let k = 200 + 100;
    let bytes = [k, 1u8];
    let parts = [x, x, x];
    let i = 0;
    x * parts[i] * parts[i - 1] * bytes[0]
}

#[function]
fn casts(x: &Tensor<f32>) -> Tensor<f32> {
    x * (3 as Count) + (3u128 as f32)
}

type Count = u8;

fn main() {}
