use tinyspec::prelude::*;

#[model(functions)]
struct Linear<I, O> {
    weight: Tensor<f32, I, O>,
    #[model(skip)]
    scale: f32,
}

#[function]
impl<I, O> Linear<I, O> {
    fn skipped<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, O> {
        x.matmul(&self.weight) * self.scale
    }

    fn field<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, O> {
        x.matmul(&self.wieght)
    }

    fn no_field<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, O> {
        x.matmul(&self.weight) + &self.offsets
    }

    fn method<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, O> {
        self.skiped(x)
    }

    fn changes<B>(&mut self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, O> {
        self.weight = self.weight * 2.0;
        self.weight *= 2.0;
        x.matmul(&self.weight)
    }
}

#[function]
fn assigned<B>(linear: &Linear<4, 2>, x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 2> {
    linear.weight = linear.weight * 2.0;
    x.matmul(&linear.weight)
}

fn main() {}
