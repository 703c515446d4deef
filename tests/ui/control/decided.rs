use tinyspec::prelude::*;

const LAYERS: usize = 3;
const MANY: usize = 1_000_000;
const WIDE: bool = true;
const NARROW: bool = false;
const AXIS: i64 = 3;

#[function]
fn grows<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    let mut y = x.clone();
    for _ in 0..LAYERS {
        y = Tensor::cat(&[&y, x], 1);
    }
    y
}

#[function]
fn counts<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    let mut power = 1.0;
    for _ in 0..LAYERS {
        power *= 2.0;
    }
    x * power
}

#[function]
fn a_flag_for_a_shape<B>(x: &Tensor<f32, B, 4>, keep: bool) -> Tensor<f32, B, 1> {
    if keep { x.sum(1, true) } else { x.sum(1, false) }
}

#[function]
fn flagged<B>(x: &Tensor<f32, B, 4>, keep: bool) -> Tensor<f32, B, 4> {
    if keep { x.relu() } else { x.clone() }
}

#[function]
fn tensor_for_a_flag<B>(x: &Tensor<f32, B, 4>, mask: &Tensor<bool>) -> Tensor<f32, B, 4> {
    flagged(x, mask)
}

fn main() {}
