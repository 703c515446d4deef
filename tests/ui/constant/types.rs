use tinyspec::prelude::*;

const SMALL: i32 = 4;
const FRACTION: f32 = 1.5;
const TEXT: &str = "four";

#[function]
fn other_integer<B>(x: &Tensor<f32, B, SMALL>) -> Tensor<f32, B, SMALL> {
    x.relu()
}

#[function]
fn number_with_point<B>(x: &Tensor<f32, B, FRACTION>) -> Tensor<f32, B, FRACTION> {
    x.relu()
}

#[function]
fn text<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * TEXT
}

fn main() {}
