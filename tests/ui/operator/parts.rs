use tinyspec::prelude::*;

#[function]
fn outside<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B> {
    x.at((.., 64))
}

#[function]
fn too_many<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B> {
    x.at((.., 1, 1))
}

#[function]
fn open<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, 2, 64> {
    x.at(..2)
}

#[function]
fn size<B>(x: &Tensor<f32, 64, B>) -> Tensor<f32, B, B> {
    x.at(..B)
}

#[function]
fn masked<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B> {
    x.at(x.gt(0.0))
}

#[function]
fn values<B>(x: &Tensor<f32, B, 64>, y: &Tensor<f32, 63>) -> Tensor<f32, B, 64> {
    let mut x = x.clone();
    x.set((.., 1..), y);
    x.set((.., ..32), y);
    x
}

#[function]
fn dtype<B>(x: &Tensor<i32, B, 64>) -> Tensor<i32, B, 64> {
    let mut x = x.clone();
    x.set((.., 0), 0.5);
    x
}

#[function]
fn assigned<B>(x: &Tensor<f32, B, 64>, y: &Tensor<f32, B, 32>, z: &Tensor<i32, B, 64>) -> Tensor<f32, B, 64> {
    let mut x = x.clone();
    x.assign(y);
    x.assign(z);
    x
}

#[function]
fn parameter<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.set((.., 0), 0.0);
    x.clone()
}

#[function]
fn expression<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.relu().set((.., 0), 0.0);
    x.clone()
}

#[function]
fn list(x: &Tensor<f32, 8, 64>) -> Tensor<f32, 8> {
    x.at((.., [1, 2]))
}

fn main() {}
