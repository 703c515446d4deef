use tinyspec::prelude::*;

#[model(functions)]
struct Dense<I> {
    weight: Tensor<f32, I, 4>,
}

impl<const I: usize> Dense<I> {
    const WIDTH: usize = I;
}

#[function]
impl<I> Dense<I> {
    fn forward<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, 4> {
        x.reshape([B, Self::WIDTH]).matmul(&self.weight)
    }
}

fn main() {}
