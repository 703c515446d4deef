use tinyspec::prelude::*;

#[function]
fn root<N>(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    x / N.sqrt()
}

#[function]
fn greatest<N>(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    x.reshape([N.max(3)])
}

fn main() {}
