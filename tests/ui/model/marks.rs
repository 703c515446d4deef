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

const WIDTH: usize = 4;

#[model(functions)]
struct Scaled {
    w: Tensor<f32, 4>,
}

#[function(grad)]
impl Scaled {
    const COUNT: usize = 1;

    fn forward(&self, x: &Tensor<f32, WIDTH>) -> Tensor<f32, 4> {
        x + &self.w
    }
}

#[function]
impl [Scaled; 2] {
    fn forward(&self) -> Tensor<f32, 4> {
        self.w.relu()
    }
}

fn main() {}
