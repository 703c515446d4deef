use tinyspec::prelude::*;

#[model(functions)]
struct Dense<I> {
    weight: Tensor<f32, I, 4>,
}

#[function]
impl<I> Dense<I> {
    fn forward<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, 4> {
        x.matmul(&self.weight)
    }
}

#[function]
impl<I> Dense<I> {
    fn twice<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, 4> {
        x.matmul(&self.weight) * 2.0
    }
}

fn main() {}
