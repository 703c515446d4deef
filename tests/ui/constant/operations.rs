use tinyspec::prelude::*;

const HIDDEN: usize = 128;
const OTHER: usize = 64;
const COUNT: i64 = 32;

#[function]
fn matmul<B>(x: &Tensor<f32, B, HIDDEN>, w: &Tensor<f32, 100, 10>) -> Tensor<f32, B, 10> {
    x.matmul(w)
}

#[function]
fn sum<B>(x: &Tensor<f32, B, HIDDEN>, bias: &Tensor<f32, OTHER>) -> Tensor<f32, B, HIDDEN> {
    x + bias
}

#[function]
fn reshape<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.reshape([B, COUNT])
}

#[function]
fn result<B>(x: &Tensor<f32, B, HIDDEN>) -> Tensor<f32, B, 100> {
    x.relu()
}

#[function]
fn annotation<B>(x: &Tensor<f32, B, HIDDEN>) -> Tensor<f32, B, HIDDEN> {
    let y: Tensor<f32, B, 100> = x.relu();
    y
}

#[function]
fn argument<B>(x: &Tensor<f32, B, HIDDEN>, w: &Tensor<f32, OTHER, 10>) -> Tensor<f32, B, 10> {
    product(x, w)
}

#[function]
fn product<B, I, O>(x: &Tensor<f32, B, I>, w: &Tensor<f32, I, O>) -> Tensor<f32, B, O> {
    x.matmul(w)
}

#[function]
fn open<B>(x: &Tensor<f32, B, HIDDEN>) -> Tensor<f32, B, B> {
    x + x.reshape([HIDDEN, B])
}

#[function]
fn never<B>(x: &Tensor<f32, B, HIDDEN>) -> Tensor<f32, B, { HIDDEN + 1 }> {
    x.relu()
}

#[function]
fn expression<B>(x: &Tensor<f32, B, { HIDDEN * 2 }>, w: &Tensor<f32, 130, 10>) -> Tensor<f32, B, 10> {
    x.matmul(w)
}

#[function]
fn expressions<B>(x: &Tensor<f32, B, { HIDDEN + 1 }>, y: &Tensor<f32, { OTHER * 2 }>) -> Tensor<f32, B, { HIDDEN + 1 }> {
    x + y
}

#[function]
fn odd<B>(x: &Tensor<f32, B, { HIDDEN * 2 }>, w: &Tensor<f32, 129, 10>) -> Tensor<f32, B, 10> {
    x.matmul(w)
}

fn main() {}
