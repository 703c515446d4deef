use tinyspec::prelude::*;

const SHAPE: [usize; 2] = [2, 3];

#[function]
fn array(x: &Tensor<f32, { SHAPE }>) -> Tensor<f32, 2, 3> {
    x.reshape([2, 3])
}

#[function]
fn array_in_result(x: &Tensor<f32, 2, 3>) -> Tensor<f32, SHAPE> {
    x.relu()
}

fn main() {}
