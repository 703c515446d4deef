use tinyspec::prelude::*;

#[function]
fn matmul_order<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 10, 64>, b: &Tensor<f32, 11>) -> Tensor<f32, B, 10> {
    w.matmul(x)
}

#[function]
fn matmul_transposed<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 10, 64>, b: &Tensor<f32, 11>) -> Tensor<f32, B, 10> {
    x.matmul(w)
}

#[function]
fn linear_bias<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 10, 64>, b: &Tensor<f32, 11>) -> Tensor<f32, B, 10> {
    x.linear(w, b)
}

#[function]
fn einsum_letters<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 10, 64>, b: &Tensor<f32, 11>) -> Tensor<f32, B, 10> {
    Tensor::einsum("bi,ij->bj", &[x, w])
}

#[function]
fn einsum_text<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 10, 64>, b: &Tensor<f32, 11>) -> Tensor<f32, B, 10> {
    Tensor::einsum("bi,oi->b?", &[x, w])
}

#[function]
fn einsum_count<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 10, 64>, b: &Tensor<f32, 11>) -> Tensor<f32, B, 10> {
    Tensor::einsum("bi->b", &[x, w])
}

#[function]
fn dot<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 10, 64>, b: &Tensor<f32, 11>) -> Tensor<f32, B, 10> {
    x.dot(b)
}

fn main() {}
