use tinyspec::prelude::*;

const WIDTH: usize = 32;
const HEADS: usize = 4;
const HEAD: usize = WIDTH / HEADS;
const PAIRS: usize = 3;
const LARGEST: usize = usize::MAX;

#[function]
fn second_differs(
    x: &Tensor<f32, WIDTH, HEADS>,
    y: &Tensor<f32, { HEADS * HEAD }, { 2 * PAIRS }>,
) -> Tensor<f32, WIDTH, HEADS> {
    x + y
}

#[function]
fn largest(x: &Tensor<f32, LARGEST>) -> Tensor<f32, 3> {
    x.relu()
}

fn main() {}
