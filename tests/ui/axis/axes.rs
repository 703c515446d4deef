use tinyspec::prelude::*;

#[function]
fn sum<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.sum(2, true)
}

#[function]
fn negative<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.mean(-3, true)
}

#[function]
fn several<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.max([0, 2], true)
}

#[function]
fn twice<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.sum([1, 1], true)
}

#[function]
fn softmax<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.softmax(2)
}

#[function]
fn argmax<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.argmax(-4)
}

#[function]
fn cumsum<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.cumsum(3)
}

#[function]
fn flip<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.flip([2])
}

#[function]
fn transpose<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.transpose(0, 2)
}

#[function]
fn narrow<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.narrow(2, 0, 1)
}

#[function]
fn unsqueeze<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.unsqueeze(4)
}

#[function]
fn cat<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    Tensor::cat(&[x, x], 2)
}

#[function]
fn stack<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    Tensor::stack(&[x, x], 3)
}

#[function]
fn split<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.split(2, 2)[0].clone()
}

#[function]
fn sort<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.sort(2, false)[0].clone()
}

#[function]
fn unknown_name<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.sum(axis, true)
}

#[function]
fn dim_as_axis<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.sum(B, true)
}

#[function]
fn number_with_point<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.sum(1.0, true)
}

#[function]
fn tensor_as_axis<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.sum(x, true)
}

fn main() {}
