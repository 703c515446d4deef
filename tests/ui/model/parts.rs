//! Mistakes with the parts of a model: each is said once.

use tinyspec::prelude::*;

mod layers {
    use tinyspec::prelude::*;

    #[model(functions)]
    pub struct Linear<I, O> {
        pub w: Tensor<f32, I, O>,
        pub b: Tensor<f32, O>,
    }

    #[function]
    impl<I, O> Linear<I, O> {
        pub fn forward<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, O> {
            x.matmul(&self.w) + &self.b
        }
    }
}
use layers::Linear;

#[model]
struct Net {
    #[model(len = 3)]
    layers: Vec<Linear<2, 2>>,
    last: Option<Linear<2, 2>>,
}

#[function]
fn added<B>(l: &Linear<2, 3>, x: &Tensor<f32, B, 2>) -> Tensor<f32, B, 3> {
    l + x
}

#[function]
fn of_an_option<B>(net: &Net, x: &Tensor<f32, B, 2>) -> Tensor<f32, B, 2> {
    net.last.forward(x)
}

#[function]
fn unwrapped<B>(net: &Net, x: &Tensor<f32, B, 2>) -> Tensor<f32, B, 2> {
    net.last.as_ref().unwrap().forward(x)
}

#[function]
fn of_a_list<B>(net: &Net, x: &Tensor<f32, B, 2>) -> Tensor<f32, B, 2> {
    net.layers.forward(x)
}

#[function]
fn folded<B>(net: &Net, x: &Tensor<f32, B, 2>) -> Tensor<f32, B, 2> {
    net.layers.iter().fold(x.clone(), |h, l| l.forward(&h))
}

#[function]
fn beyond<B>(net: &Net, x: &Tensor<f32, B, 2>) -> Tensor<f32, B, 2> {
    net.layers[3].forward(x)
}

#[function]
fn by_value<B>(l: Linear<2, 3>, x: &Tensor<f32, B, 2>) -> Tensor<f32, B, 3> {
    l.forward(x)
}

#[function]
fn returned(l: &Linear<2, 3>) -> Linear<2, 3> {
    l
}

#[function]
fn by_path<B>(l: &Linear<2, 3>, x: &Tensor<f32, B, 2>) -> Tensor<f32, B, 3> {
    Linear::forward(l, x)
}

#[model]
struct Twice {
    w: Tensor<f32, 3>,
    w: Tensor<f32, 4>,
}

#[model]
struct Long {
    #[model(len = 2)]
    b: Tensor<f32, 3>,
}

#[model(functions)]
struct Alone {
    w: Tensor<f32, 3>,
}

fn main() {}
