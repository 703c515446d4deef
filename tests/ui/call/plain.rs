use tinyspec::prelude::*;

mod other {
    use tinyspec::Tensor;

    pub fn plain(x: &Tensor) -> Tensor {
        x.relu()
    }
}

struct Layer;

impl Layer {
    fn forward(&self, x: &Tensor) -> Tensor {
        x.relu()
    }

    fn apply(x: &Tensor) -> Tensor {
        x.relu()
    }
}

fn helper(x: &Tensor) -> Tensor {
    x.relu()
}

#[function]
fn name<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    helper(x)
}

#[function]
fn path<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    other::plain(x)
}

#[function]
fn associated<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    Layer::apply(x)
}

#[function]
fn constructed<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    Layer.forward(x)
}

#[function]
fn of_the_prelude<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    drop(x)
}

fn main() {}
