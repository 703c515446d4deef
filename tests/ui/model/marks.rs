use tinyspec::prelude::*;

#[model]
struct Unmarked {
    w: Tensor<f32, 4>,
}

#[function]
impl Unmarked {
    fn forward(&self) -> Tensor<f32, 4> {
        self.w.relu()
    }
}

trait Layer {
    fn apply(&self, x: &Tensor) -> Tensor;
}

#[function]
impl Layer for Unmarked {
    fn apply(&self, x: &Tensor<f32, 4>) -> Tensor<f32, 4> {
        x + &self.w
    }
}

fn main() {}
