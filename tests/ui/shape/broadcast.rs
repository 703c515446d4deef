use tinyspec::prelude::*;

#[function]
fn add<B>(x: &Tensor<f32, B, 64>, bias: &Tensor<f32, 63>) -> Tensor<f32, B, 64> {
    x + bias
}

#[function]
fn twice<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let y = x.reshape([B, 63]);
    let z = x.sum(2, false);
    let s = x.softmax(5);
    y + z.unsqueeze(0) + s
}

fn main() {}
