use tinyspec::prelude::*;

#[function]
fn undeclared<B, T, D, H>(x: &Tensor<f32, B, T, D>, h: &Tensor<f32, H>) -> Tensor<f32, B, T, H, { D / H }> {
    x.reshape([B, T, H, D / H])
}

#[function]
fn inferred<B, T, D>(x: &Tensor<f32, B, T, D>) -> Tensor<f32, B, T, 4, { D / 4 }> {
    x.reshape([B, T, 4, -1])
}

#[function]
fn twice_inferred<B>(x: &Tensor<f32, B, 8>) -> Tensor<f32, B, 8> {
    x.reshape([-1, -1])
}

#[function(where(D % H == 0))]
fn heads<B, D, H>(x: &Tensor<f32, B, D>, h: &Tensor<f32, H>) -> Tensor<f32, B, H, { D / H }> {
    x.reshape([B, H, D / H])
}

#[function]
fn without_the_fact<B, D, H>(x: &Tensor<f32, B, D>, h: &Tensor<f32, H>) -> Tensor<f32, B, H, { D / H }> {
    heads(x, h)
}

#[function]
fn wrong_sizes<B>(x: &Tensor<f32, B, 10>, h: &Tensor<f32, 4>) -> Tensor<f32, B, 10> {
    heads(x, h).reshape([B, 10])
}

#[function(where(D == 4))]
fn no_fact<D>(x: &Tensor<f32, D>) -> Tensor<f32, D> {
    x * 2.0
}

#[function(where(K % 4 == 0))]
fn no_dim<D>(x: &Tensor<f32, D>) -> Tensor<f32, D> {
    x * 2.0
}

#[function(where(D % H == 0))]
fn nothing_binds<D, H>(x: &Tensor<f32, D>) -> Tensor<f32, D> {
    x * 2.0
}

fn main() {}
