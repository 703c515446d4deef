use tinyspec::prelude::*;

#[model]
struct Borrowed<'a> {
    weight: &'a Tensor<f32, 3, 4>,
}

#[model]
struct Named<'a, N> {
    weight: Tensor<f32, N, 4>,
    #[model(skip)]
    name: &'a str,
}

#[model]
struct Pairs {
    pair: (Tensor<f32, 3, 4>, Tensor<f32, 4>),
    other: Tensor<f32, 3>,
}

fn main() {}
