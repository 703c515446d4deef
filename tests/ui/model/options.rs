use tinyspec::prelude::*;

#[model(functions)]
struct Scaled {
    w: Tensor<f32, 4>,
}

#[function]
impl Scaled {
    #[function(grads)]
    fn unknown(&self, x: &Tensor<f32, 4>) -> Tensor<f32, 4> {
        x + &self.w
    }

    #[function = "grad"]
    fn valued(&self, x: &Tensor<f32, 4>) -> Tensor<f32, 4> {
        x + &self.w
    }

    #[function(crate = tinyspec)]
    fn path(&self, x: &Tensor<f32, 4>) -> Tensor<f32, 4> {
        x + &self.w
    }

    #[function(gradient = of_inputs)]
    fn own(&self, x: &Tensor<f32, 4>) -> Tensor<f32, 4> {
        x + &self.w
    }

    #[function(bounds(B: 1..=4))]
    fn undeclared(&self, x: &Tensor<f32, 4>) -> Tensor<f32, 4> {
        x + &self.w
    }
}

#[function]
fn of_inputs(scaled: &Scaled, x: &Tensor<f32, 4>, dy: &Tensor<f32, 4>) -> Tensor<f32, 4> {
    dy * x + &scaled.w
}

fn main() {}
