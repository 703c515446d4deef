use tinyspec::prelude::*;

#[function]
fn mlp<B, H>(x: &Tensor<f32, B, 64>, w1: &Tensor<f32, 64, H>, w2: &Tensor<f32, H, 10>) -> Tensor<f32, B, 10> {
    let hidden = x.matmul(w1).relu();
    x.matmul(w2) + hidden.sum(-1, true)
}

fn main() {}
