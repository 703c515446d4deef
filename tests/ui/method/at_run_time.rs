use tinyspec::prelude::*;

#[function]
fn to_vec<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.to_vec::<f32>().unwrap()
}

#[function]
fn item<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.sum(.., false).item::<f32>().unwrap() * x
}

#[function]
fn realize<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.realize().unwrap();
    x.relu()
}

#[function]
fn assign<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.assign(x.relu());
    x.clone()
}

#[function]
fn sizes<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let n = x.sizes();
    x.relu()
}

#[function]
fn backward<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.sum(.., false).backward();
    x.relu()
}

#[function]
fn display<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let text = format!("{x}");
    x.relu()
}

#[function]
fn device<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.to("cpu")
}

#[function]
fn gradient<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    grad(&x.sum(.., false), &[x])
}

fn main() {}
