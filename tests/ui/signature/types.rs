use tinyspec::prelude::*;

#[function]
fn by_value(x: Tensor<f32, 4>) -> Tensor<f32, 4> {
    x * 2.0
}

#[function]
fn no_dims(x: &Tensor) -> Tensor {
    x * 2.0
}

#[function]
fn unknown_dtype(x: &Tensor<f33, 4>, y: &mut Tensor<f32, 4>) -> Tensor<f32, 4> {
    x + y
}

#[function]
fn unbound<B, Q>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x + 1.0
}

#[function(bound(B: 1..=4), grads)]
fn options<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x + 1.0
}

#[function]
fn nothing<B>(x: &Tensor<f32, B>) {
    x + 1.0
}

#[function]
async unsafe fn qualified<'a, const N: usize>(x: &'a Tensor<f32, N>, (a, b): (f32, f32)) -> Result<Tensor> {
    x + 1.0
}

#[function]
struct NotAFunction;

fn main() {}
