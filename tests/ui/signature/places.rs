use tinyspec::prelude::*;

#[function]
struct Structure;

#[function]
mod module {}

#[function]
const CONSTANT: i32 = 1;

trait Layer {
    #[function]
    fn forward<B>(&self, x: &Tensor<f32, B>) -> Tensor<f32, B>;
}

#[function]
macro_rules! rules {
    () => {};
}

#[function]
fn println<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

fn main() {}
