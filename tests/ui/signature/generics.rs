use tinyspec::prelude::*;

#[function]
fn bounded<B: Clone>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn clause<B>(x: &Tensor<f32, B>) -> Tensor<f32, B>
where
    B: Clone,
{
    x * 2.0
}

#[function]
fn defaulted<B = f32>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn constant<const N: usize>(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    x * 2.0
}

#[function]
fn dtype<T, B>(x: &Tensor<T, B>) -> Tensor<T, B> {
    x * 2.0
}

#[function]
fn lifetime<'a, B>(x: &'a Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn declared_twice<B, B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn only_in_result<B, C>(x: &Tensor<f32, B>) -> Tensor<f32, B, C> {
    x * 2.0
}

#[function]
fn only_in_expression<B>(x: &Tensor<f32, { B / 2 }>) -> Tensor<f32, { B / 2 }> {
    x * 2.0
}

#[function]
const fn qualified<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
extern "C" fn foreign<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

fn main() {}
