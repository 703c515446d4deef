use tinyspec::prelude::*;

#[function]
fn ping<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    pong(&(x + 1.0))
}

#[function]
fn pong<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    ping(&(x * 2.0))
}

fn main() {}
