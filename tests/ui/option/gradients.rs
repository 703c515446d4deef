//! Gradients are of floats, with respect to floats.

use tinyspec::prelude::*;

#[function(grad)]
fn counted<B>(x: &Tensor<i32, B>) -> Tensor<i32> {
    x.sum(.., false)
}

#[function(grad)]
fn from_whole_numbers<B>(x: &Tensor<i32, B>) -> Tensor<f32> {
    x.cast(DType::F32).sum(.., false)
}

fn main() {}
