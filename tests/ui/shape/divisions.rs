use tinyspec::prelude::*;

const N: usize = 13;
const K: usize = 3;

#[function]
fn number<B, E>(x: &Tensor<f32, B, E>, w: &Tensor<f32, E, E>) -> Tensor<f32, B, E> {
    x.matmul(w).reshape([B, 4, E / 4]).reshape([B, E])
}

#[function]
fn dim<B, E, H>(x: &Tensor<f32, B, E>, q: &Tensor<f32, H>) -> Tensor<f32, B, H, { E / H }> {
    x.reshape([B, H, E / H]) * q.reshape([H, 1])
}

#[function]
fn product<N, K>(x: &Tensor<f32, N>, k: &Tensor<f32, K>) -> Tensor<f32, N> {
    x.reshape([N / (2 * K), 2 * K]).reshape([N])
}

#[function]
fn inexact<B, E>(x: &Tensor<f32, B, E>) -> Tensor<f32, B, E> {
    x.reshape([B, 5, E / 4])
}

#[function]
fn difference<B, D>(x: &Tensor<f32, B, D>) -> Tensor<f32, B, { (D - K) / 2 + 1 }> {
    x.shrink([0, 0], [B, (D - K) / 2])
}

#[function]
fn constants<B>(x: &Tensor<f32, B, N>) -> Tensor<f32, B, N> {
    x.reshape([B, N / (K * 2), K * 2]).reshape([B, N])
}

#[function]
fn longer<B>(x: &Tensor<f32, B, N>) -> Tensor<f32, B, N> {
    x.reshape([B, N / (K * 2), K * 2]).reshape([B, N + 1])
}

fn main() {}
