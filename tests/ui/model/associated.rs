use tinyspec::prelude::*;

#[model(functions)]
struct Linear {
    weight: Tensor<f32, 3, 4>,
}

#[function]
impl Linear {
    const INPUTS: usize = 3;

    fn forward<B>(&self, x: &Tensor<f32, B, 3>) -> Tensor<f32, B, 4> {
        x.reshape([B, Self::INPUTS]).matmul(&self.weight)
    }
}

fn main() {
    println!("{}", Linear::INPUTS);
}
