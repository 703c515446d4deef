use tinyspec::prelude::*;

#[function]
fn float_and_double<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, d: &Tensor<f64, B, 64>, m: &Tensor<bool, B, 64>) -> Tensor<f32, B, 64> {
    x * d
}

#[function]
fn bits<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, d: &Tensor<f64, B, 64>, m: &Tensor<bool, B, 64>) -> Tensor<f32, B, 64> {
    x & x
}

#[function]
fn shift<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, d: &Tensor<f64, B, 64>, m: &Tensor<bool, B, 64>) -> Tensor<f32, B, 64> {
    x << 1
}

#[function]
fn negated_bool<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, d: &Tensor<f64, B, 64>, m: &Tensor<bool, B, 64>) -> Tensor<f32, B, 64> {
    -m
}

#[function]
fn not_of_float<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, d: &Tensor<f64, B, 64>, m: &Tensor<bool, B, 64>) -> Tensor<f32, B, 64> {
    !x
}

#[function]
fn condition<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, d: &Tensor<f64, B, 64>, m: &Tensor<bool, B, 64>) -> Tensor<f32, B, 64> {
    x.where_(x, x)
}

#[function]
fn index<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, d: &Tensor<f64, B, 64>, m: &Tensor<bool, B, 64>) -> Tensor<f32, B, 64> {
    x.gather(x, 1)
}

#[function]
fn result<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, d: &Tensor<f64, B, 64>, m: &Tensor<bool, B, 64>) -> Tensor<f32, B, 64> {
    i.relu()
}

#[function]
fn argmax_result<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, d: &Tensor<f64, B, 64>, m: &Tensor<bool, B, 64>) -> Tensor<f32, B, 64> {
    x.argmax(1)
}

#[function]
fn bitcast<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, d: &Tensor<f64, B, 64>, m: &Tensor<bool, B, 64>) -> Tensor<f32, B, 64> {
    x.bitcast(DType::F64)
}

#[function]
fn mean_of_int<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, d: &Tensor<f64, B, 64>, m: &Tensor<bool, B, 64>) -> Tensor<f32, B, 64> {
    i.mean(1, true)
}

#[function]
fn cat<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, d: &Tensor<f64, B, 64>, m: &Tensor<bool, B, 64>) -> Tensor<f32, B, 64> {
    Tensor::cat(&[x, i], 0)
}

#[function]
fn unknown<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, d: &Tensor<f64, B, 64>, m: &Tensor<bool, B, 64>) -> Tensor<f32, B, 64> {
    x.cast(DType::F33)
}

#[function]
fn type_as_dtype<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, d: &Tensor<f64, B, 64>, m: &Tensor<bool, B, 64>) -> Tensor<f32, B, 64> {
    x.cast(f32)
}

#[function]
fn as_keyword<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, d: &Tensor<f64, B, 64>, m: &Tensor<bool, B, 64>) -> Tensor<f32, B, 64> {
    i as f32
}

#[function]
fn one_hot<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, d: &Tensor<f64, B, 64>, m: &Tensor<bool, B, 64>) -> Tensor<f32, B, 64> {
    x.one_hot(10)
}

#[function]
fn convolution<B>(x: &Tensor<f32, B, 64>, i: &Tensor<i32, B, 64>, d: &Tensor<f64, B, 64>, m: &Tensor<bool, B, 64>) -> Tensor<f32, B, 64> {
    x.reshape([1, B, 64]).conv1d(i.reshape([1, B, 64]), None, default()).reshape([B, 64])
}

#[function]
fn cast_to_no_dtype<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x.cast::<int>().cast::<f32>()
}

#[function]
fn cast_to_nothing<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x.cast()
}

fn main() {}
