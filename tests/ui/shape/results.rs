use tinyspec::prelude::*;

#[function]
fn tensor_for_pair<B>(x: &Tensor<f32, B, 64>) -> (Tensor<f32, B, 64>, Tensor<f32, B>) {
    x.relu()
}

#[function]
fn pair_for_tensor<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    (x.relu(), x.exp())
}

#[function]
fn nested<B>(x: &Tensor<f32, B, 64>) -> (Tensor<f32, B, 64>, (Tensor<f32, B>, Tensor<f32, 64>)) {
    (x.relu(), (x.sum(1, false), x.sum(1, false)))
}

#[function]
fn bool_result<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.gt(0.0)
}

#[function]
fn reference<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x
}

#[function]
fn number<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32> {
    1.0
}

#[function]
fn list<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 16> {
    x.chunk(4, 1)
}

#[function]
fn transposed<I, O>(x: &Tensor<f32, I, O>) -> Tensor<f32, I, O> {
    x.transpose(0, 1)
}

#[function]
fn expression<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, { B * 32 }> {
    x.reshape([B * 64])
}

#[function]
fn no_value<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let y = x.relu();
}

#[function]
fn semicolon<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.relu();
}

#[function]
fn empty<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {}

fn main() {}
