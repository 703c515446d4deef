//! Mistakes with what a function returns: each is said once.

use tinyspec::prelude::*;

#[function]
fn dense<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    x * 2.0
}

#[function]
fn two<B>(x: &Tensor<f32, B, 4>) -> (Tensor<f32, B, 4>, Tensor<f32, B>) {
    (x * 2.0, x.sum(1, false))
}

#[function]
fn word<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    let h = dense(x);
    h.sum("a", false)
}

#[function]
fn condition<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    if dense(x) { x * 1.0 } else { x * 2.0 }
}

#[function]
fn element<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    let h = dense(x)[0];
    h
}

#[function]
fn comparison<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    dense(x) == x
}

#[function]
fn question<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    dense(x)?.relu()
}

#[function]
fn looped<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    for t in dense(x) {}
    x * 1.0
}

#[function]
fn cast<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    dense(x).cast(f32)
}

#[function]
fn of_a_tuple<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    two(x).relu()
}

#[function]
fn misspelt<B>(x: &Tensor<f32, B, 4, 4, 4>) -> Tensor<f32, B, 4> {
    let y = dense(&x.sum([2, 3], false));
    y.conv2d(x, None, Conv2d { strid: [1, 1], ..default() })
}

#[function]
fn read<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    dense(x).to_vec::<f32>()
}

#[function]
fn converted<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    let h = dense(x);
    h as f64
}

#[function]
fn called<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    let h = dense(x);
    h(x)
}

#[function]
fn item<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    x * dense(x).item()
}

#[function]
fn and<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    dense(x) && x
}

#[function]
fn narrowed<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    dense(x).narrow(0, 0, B)
}

#[function]
fn field<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    two(x).2
}

#[function]
fn typed<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    dense(x) + Tensor::<f32, B, 4>::zeros([B, 4])
}

#[function]
fn of_a_number<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    dense(x) * f32::sqrt(2.0)
}

fn main() {}
