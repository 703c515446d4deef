use tinyspec::prelude::*;

#[function(grad)]
fn derived<N>(x: &Tensor<f32, N>) -> Tensor<f32, N>;

#[function(strict)]
fn exact<N>(x: &Tensor<f32, N>) -> Tensor<f32, N>;

#[function(in_place(x))]
fn not_first<N>(y: &Tensor<f32, N>, x: &Tensor<f32, N>) -> Tensor<f32, N>;

#[function(in_place(y))]
fn not_returned<N>(y: &Tensor<f32, N>, x: &Tensor<f32, N>) -> (Tensor<f32, N>, Tensor<f32>);

#[function(in_place)]
fn unlisted<N>(y: &Tensor<f32, N>) -> Tensor<f32, N>;

#[function(custom(name))]
fn unnamed<N>(y: &Tensor<f32, N>) -> Tensor<f32, N>;

#[function(custom = "double")]
fn with_a_body<N>(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    x * 2.0
}

#[function]
fn without_result<N>(x: &Tensor<f32, N>);

#[model]
struct Layer {
    w: Tensor<f32, 3>,
}

#[function]
fn of_a_model(layer: &Layer) -> Tensor<f32, 3>;

#[function]
fn double<N>(x: &Tensor<f32, N>) -> Tensor<f32, N>;

#[function]
fn caller<N>(x: &Tensor<f32, N, 2>) -> Tensor<f32, N> {
    double(x)
}

fn main() {}
