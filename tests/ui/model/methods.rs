use tinyspec::prelude::*;

mod layers {
    use tinyspec::prelude::*;

    #[model(functions)]
    pub struct Linear<I, O> {
        pub weight: Tensor<f32, I, O>,
        pub bias: Tensor<f32, O>,
    }

    #[function]
    impl<I, O> Linear<I, O> {
        pub fn forward<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, O> {
            x.matmul(&self.weight) + &self.bias
        }

        pub fn wrong<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, I> {
            x.matmul(&self.weight)
        }
    }
}

#[model(functions)]
struct Mlp {
    first: layers::Linear<8, 4>,
    second: layers::Linear<5, 2>,
    many: [layers::Linear<4, 4>; 2],
}

#[function]
impl Mlp {
    fn shapes<B>(&self, x: &Tensor<f32, B, 8>) -> Tensor<f32, B, 2> {
        self.second.forward(&self.first.forward(x))
    }

    fn names<B>(&self, x: &Tensor<f32, B, 8>) -> Tensor<f32, B, 4> {
        self.first.forwards(x)
    }

    fn index<B>(&self, x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
        self.many[2].forward(x)
    }

    fn changes<B>(&mut self, x: &Tensor<f32, B, 8>) -> Tensor<f32, B, 4> {
        self.first.forward(x)
    }

    fn new() -> Tensor<f32> {
        Tensor::zeros(())
    }
}

impl layers::Linear<8, 4> {
    fn plain(&self, x: &Tensor) -> Tensor {
        x.clone()
    }
}

#[function]
fn without_graph<B>(mlp: &Mlp, x: &Tensor<f32, B, 8>) -> Tensor<f32, B, 8> {
    mlp.first.plain(x)
}

#[function]
fn field<B>(mlp: &Mlp, x: &Tensor<f32, B, 8>) -> Tensor<f32, B, 4> {
    mlp.frist.forward(x)
}

#[function]
fn tensor_for_model<B>(mlp: &Mlp, x: &Tensor<f32, B, 8>) -> Tensor<f32, B, 4> {
    field(x, x)
}

fn main() {}
