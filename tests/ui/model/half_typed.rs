//! What is being typed is complained about once, and what is around it stays.

use tinyspec::prelude::*;

#[function(grad)]
fn loss<B>(x: &Tensor<f32, B>) -> Tensor<f32> {
    let y = x * 2.0  y.sum(.., false)
}

#[function]
fn calls<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    let y = loss(x);
    x. + y
}

#[function]
fn ends<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x + calls(x)
    x.
}

#[model(functions)]
struct Layer {
    w: Tensor<f32, 4>,
    b:
}

#[function]
impl Layer {
    fn typed(&self) -> Tensor<f32, 4> {
        self.
    }

    fn whole(&self) -> Tensor<f32, 4> {
        self.typed() * &self.w
    }
}

#[function]
fn of_layer(layer: &Layer) -> Tensor<f32, 4> {
    layer.whole() + layer.typed()
}

fn main() {
    let [_] = loss::grad(&Tensor::ones([2]));
    let layer = Layer::init();
    let _ = (layer.whole(), of_layer(&layer));
}
