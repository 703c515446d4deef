use tinyspec::prelude::*;

#[model(functions)]
struct Dense {
    weight: Tensor<f32, 8, 4>,
}

#[function]
impl Dense {
    fn forward<B>(&self, x: &Tensor<f32, B, 8>) -> Tensor<f32, B, 4> {
        x.matmul(&self.weight)
    }
}

#[model]
struct Net {
    first: Dense,
    scale: Tensor<f32, 4>,
}

#[function]
fn called<B>(net: &Net, x: &Tensor<f32, B, 8>) -> Tensor<f32, B, 4> {
    net.first(x)
}

#[function]
fn called_tensor<B>(net: &Net, x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    net.scale(x)
}

#[function]
fn without_function<B>(net: &Net, x: &Tensor<f32, B, 8>) -> Tensor<f32, B, 4> {
    net.forward(x)
}

#[function]
fn argument<B>(net: &Net, x: &Tensor<f32, B, 8>) -> Tensor<f32, B, 4> {
    x.matmul(net.first.weight)
}

#[function]
fn operand<B>(net: &Net, x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    net.scale * x
}

#[function]
fn bound<B>(net: &Net, x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    let scale = net.scale;
    x * scale
}

#[function]
fn result<B>(net: &Net, x: &Tensor<f32, B, 4>) -> (Tensor<f32, 4>, Tensor<f32, B, 4>) {
    (net.scale, x.relu())
}

fn main() {}
