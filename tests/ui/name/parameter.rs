use tinyspec::prelude::*;

#[function]
fn in_braces<B>(x: &Tensor<f32, B>) -> Tensor<f32, { x }> {
    x.relu()
}

#[function]
fn bare<B>(x: &Tensor<f32, B>) -> Tensor<f32, x> {
    x.relu()
}

fn main() {}
