use tinyspec::prelude::*;

#[function]
fn too_great<B>(x: &Tensor<u8, B>) -> Tensor<bool, B> {
    x.lt(300)
}

#[function]
fn negative<B>(x: &Tensor<u8, B>) -> Tensor<u8, B> {
    x + -1
}

#[function]
fn too_great_for_a_half<B>(x: &Tensor<f16, B>) -> Tensor<f16, B> {
    x * 1e6
}

fn main() {}
