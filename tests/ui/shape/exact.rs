use tinyspec::prelude::*;

const WIDTH: usize = 30;

#[function]
fn not_exact<B>(x: &Tensor<f32, B, WIDTH>) -> Tensor<f32, B, 4, { WIDTH / 4 }> {
    x.reshape([B, 4, WIDTH / 4])
}

fn main() {}
