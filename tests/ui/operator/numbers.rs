use tinyspec::prelude::*;

const SCALE: f32 = 0.5;
const COUNT: i64 = 3;
const WIDTH: usize = 64;

#[function]
fn division_by_zero<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    x * (1 / 0)
}

#[function]
fn overflow<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    i + 3000000000
}

#[function]
fn constant_beside_int<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    i * COUNT
}

#[function]
fn constant_of_other_kind<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    i * SCALE
}

#[function]
fn constant_as_axis<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    x.softmax(COUNT)
}

#[function]
fn constant_as_float<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    x.leaky_relu(SCALE)
}

#[function]
fn constant_as_dim<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    x.reshape([B, COUNT])
}

#[function]
fn dim_as_float<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    x / B as f32
}

#[function]
fn size_as_float<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    x / x.shape()[0] as f32
}

#[function]
fn dim_root<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    x / B.sqrt()
}

#[function]
fn char<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    x + 'a'
}

#[function]
fn dim_and_float<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    x * (B * 0.5)
}

#[function]
fn range<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    x + (0..4)
}

#[function]
fn comparison<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    x < 1.0
}

#[function]
fn less<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    (x <= s) & x.gt(0.0)
}

#[function]
fn not_equal<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    x != x
}

#[function]
fn and<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    x.gt(0.0) && x.lt(1.0)
}

#[function]
fn or<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    x.gt(0.0) || true
}

#[function]
fn power<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, s: f32) -> Tensor<f32, B, 64> {
    x ^ 2
}

fn main() {}
