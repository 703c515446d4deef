use tinyspec::prelude::*;

#[function(grad = true)]
fn valued<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function(gradient)]
fn without_path<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function(bounds(B: 0..=0))]
fn of_zero<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function(bounds(B: 8..=4))]
fn backwards<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function(bounds(C: 1..=4))]
fn undeclared<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function(bounds(B: 1..=4, B: 1..=8))]
fn twice<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function(bounds(B = 4))]
fn spelling<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function(bounds)]
fn without_list<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function("grad")]
fn text<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function(grad, grad)]
fn repeated<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function(Grad)]
fn capital<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function(fast_math(contract, quick))]
fn permission<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function(fast_math)]
fn everything<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function(fast_math(contract = true))]
fn permission_valued<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function(crate)]
fn nowhere<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function(strict = true)]
fn strict_valued<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

fn main() {}
