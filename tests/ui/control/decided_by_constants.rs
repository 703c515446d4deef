use tinyspec::prelude::*;

const MANY: usize = 1_000_000;
const WIDE: bool = true;
const NARROW: bool = false;
const AXIS: i64 = 3;

#[function]
fn too_often<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    let mut y = x.clone();
    for _ in 0..MANY {
        y = y.relu();
    }
    y
}

#[function]
fn taken<B>(x: &Tensor<f32, B, 4>, w: &Tensor<f32, 5, 5>) -> Tensor<f32, B, 4> {
    if WIDE { x.matmul(w) } else { x.relu() }
}

#[function]
fn not_taken<B>(x: &Tensor<f32, B, 4>, w: &Tensor<f32, 5, 5>) -> Tensor<f32, B, 4> {
    if NARROW { x.matmul(w) } else { x.relu() }
}

#[function]
fn axis<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B> {
    x.sum(AXIS, false)
}

fn main() {
    let _ = not_taken(&Tensor::ones([1, 4]), &Tensor::ones([5, 5]));
}
