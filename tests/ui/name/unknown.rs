use tinyspec::prelude::*;

#[function]
fn variable<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x + y
}

#[function]
fn misspelt<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let hidden = x.relu();
    hiden * 2.0
}

#[function]
fn out_of_scope<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    {
        let inner = x.relu();
    }
    inner + x
}

#[function]
fn dim<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.reshape([B, C])
}

#[function]
fn in_shape<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.reshape([B, WIDTH])
}

#[function]
fn assigned<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    z = x.relu();
    z
}

#[function]
fn function<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    missing(x)
}

#[function]
fn path<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    layers::missing(x)
}

#[function]
fn in_type<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let y: Tensor<f32, B, WIDTH> = x.relu();
    y
}

fn main() {}
