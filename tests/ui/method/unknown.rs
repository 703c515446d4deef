use tinyspec::prelude::*;

#[function]
fn misspelt<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.softmx(1)
}

#[function]
fn numpy<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.concatenate(x)
}

#[function]
fn mm<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.mm(x)
}

#[function]
fn view<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.view([B, 64])
}

#[function]
fn length<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.len()
}

#[function]
fn dim<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.size(0)
}

#[function]
fn t<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.t()
}

#[function]
fn power<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.powf(2.0)
}

#[function]
fn ln<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.ln()
}

#[function]
fn swish<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.swish()
}

#[function]
fn sub_<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.subtract(1.0)
}

#[function]
fn indexing<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.get(0)
}

#[function]
fn associated<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    Tensor::zero([B, 64]) + x
}

#[function]
fn from_slice<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    Tensor::from_slice(&[1.0, 2.0], [2]) + x
}

#[function]
fn in_a_chain<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.relu().reluu().softmax(1).expp()
}

#[function]
fn of_result<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let y = x.missing();
    y.relu() + y.missing_too()
}

#[function]
fn as_an_iterator<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    let y = x.iter();
    x.relu()
}

trait Activation {
    fn act(&self) -> Tensor;
}

impl Activation for Tensor {
    fn act(&self) -> Tensor {
        self.relu()
    }
}

#[function]
fn of_a_trait<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x.act()
}

fn main() {}
