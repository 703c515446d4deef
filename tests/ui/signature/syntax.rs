use tinyspec::prelude::*;

#[function]
fn misplaced<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x @ x
}

fn main() {}
