use tinyspec::prelude::*;

#[function]
fn total<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B> {
    x.sum(0, false)
}

#[function]
fn pair<B>(x: &Tensor<f32, B, 64>) -> (Tensor<f32, B>, Tensor<i32, 64>) {
    let y: Tensor<f32, B, 65> = x * 2.0;
    (y.sum(1, false), x.argmax(1))
}

fn main() {}
