use tinyspec::prelude::*;

#[function]
fn number_annotated<B>(x: &Tensor<f32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    let n: usize = 1.5;
    x * n
}

#[function]
fn number_and_text<B>(x: &Tensor<f32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    x * (1 + "2")
}

#[function]
fn tuple_pattern<B>(x: &Tensor<f32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    let (a, b) = (x, x, x);
    a + b
}

#[function]
fn tuple_field<B>(x: &Tensor<f32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    let pair = (x, x);
    pair.2 + x
}

#[function]
fn blocks<B>(x: &Tensor<f32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    let y = if true { x.relu() } else { 1.0 };
    y + x
}

fn main() {}
