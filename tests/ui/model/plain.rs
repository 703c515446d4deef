use tinyspec::prelude::*;

#[derive(Clone)]
struct Config {
    heads: usize,
}

#[model]
struct Holds {
    w: Tensor<f32, 3, 4>,
    config: Config,
}

#[function]
fn takes<B>(config: &Config, x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x.relu()
}

#[model]
struct Unmarked {
    w: Tensor<f32, 3, 4>,
}

#[function]
impl Unmarked {
    fn forward<B>(&self, x: &Tensor<f32, B, 3>) -> Tensor<f32, B, 4> {
        x.matmul(&self.w)
    }
}

struct Plain {
    w: Tensor,
}

#[function]
impl Plain {
    fn apply<B>(&self, x: &Tensor<f32, B, 3>) -> Tensor<f32, B, 4> {
        x.matmul(&self.w)
    }
}

#[model(functions)]
struct Failed {
    w: Tensor<f32, 3, 3>,
    name: String,
}

#[function]
impl Failed {
    fn update<B>(&mut self, x: &Tensor<f32, B, 3>) -> Tensor<f32, B, 3> {
        self.w = &self.w * 2.0;
        x.matmul(&self.w)
    }
}

fn main() {
    let net = Unmarked { w: Tensor::zeros([3, 4]) };
    net.forward(&Tensor::zeros([2, 3]));
}
