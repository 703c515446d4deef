use tinyspec::prelude::*;

const STRIDE: i64 = 2;

#[function]
fn misspelt<N>(x: &Tensor<f32, N, 8, 16, 16>, w: &Tensor<f32, 8, 8, 3, 3>) -> Tensor<f32, N, 8, 16, 16> {
    x.conv2d(w, None, Conv2d { strides: [1, 1], padding: [1, 1], ..default() })
}

#[function]
fn without_rest<N>(x: &Tensor<f32, N, 8, 16, 16>, w: &Tensor<f32, 8, 8, 3, 3>) -> Tensor<f32, N, 8, 16, 16> {
    x.conv2d(w, None, Conv2d { padding: [1, 1] })
}

#[function]
fn other_struct<N>(x: &Tensor<f32, N, 8, 16, 16>, w: &Tensor<f32, 8, 8, 3, 3>) -> Tensor<f32, N, 8, 16, 16> {
    x.conv2d(w, None, MaxPool2d { padding: [1, 1], ..default() })
}

#[function]
fn other_rank<N>(x: &Tensor<f32, N, 8, 16, 16>, w: &Tensor<f32, 8, 8, 3, 3>) -> Tensor<f32, N, 8, 16, 16> {
    x.conv2d(w, None, Conv1d { padding: [1], ..default() })
}

#[function]
fn count<N>(x: &Tensor<f32, N, 8, 16, 16>, w: &Tensor<f32, 8, 8, 3, 3>) -> Tensor<f32, N, 8, 16, 16> {
    x.conv2d(w, None, Conv2d { padding: [1, 1, 1], ..default() })
}

#[function]
fn kind<N>(x: &Tensor<f32, N, 8, 16, 16>, w: &Tensor<f32, 8, 8, 3, 3>) -> Tensor<f32, N, 8, 16, 16> {
    x.conv2d(w, None, Conv2d { padding: 1, ..default() })
}

#[function]
fn fraction<N>(x: &Tensor<f32, N, 8, 16, 16>, w: &Tensor<f32, 8, 8, 3, 3>) -> Tensor<f32, N, 8, 16, 16> {
    x.conv2d(w, None, Conv2d { padding: [0.5, 0.5], ..default() })
}

#[function]
fn constant<N>(x: &Tensor<f32, N, 8, 16, 16>, w: &Tensor<f32, 8, 8, 3, 3>) -> Tensor<f32, N, 8, 16, 16> {
    x.conv2d(w, None, Conv2d { stride: [STRIDE, 1], padding: [1, 1], ..default() })
}

#[function]
fn dim<N>(x: &Tensor<f32, N, 8, 16, 16>, w: &Tensor<f32, 8, 8, 3, 3>) -> Tensor<f32, N, 8, 16, 16> {
    x.conv2d(w, None, Conv2d { groups: N, padding: [1, 1], ..default() })
}

#[function]
fn rest<N>(x: &Tensor<f32, N, 8, 16, 16>, w: &Tensor<f32, 8, 8, 3, 3>) -> Tensor<f32, N, 8, 16, 16> {
    x.conv2d(w, None, Conv2d { padding: [1, 1], ..Conv2d::new() })
}

#[function]
fn tuple<N>(x: &Tensor<f32, N, 8, 16, 16>, w: &Tensor<f32, 8, 8, 3, 3>) -> Tensor<f32, N, 8, 16, 16> {
    x.conv2d(w, None, (1, 1))
}

#[function]
fn twice<N>(x: &Tensor<f32, N, 8, 16, 16>, w: &Tensor<f32, 8, 8, 3, 3>) -> Tensor<f32, N, 8, 16, 16> {
    x.conv2d(w, None, Conv2d { padding: [1, 1], padding: [1, 1], ..default() })
}

#[function]
fn pool<N>(x: &Tensor<f32, N, 8, 16, 16>, w: &Tensor<f32, 8, 8, 3, 3>) -> Tensor<f32, N, 8, 16, 16> {
    x.max_pool2d([1, 1], MaxPool2d { ceil_mode: 1, ..default() })
}

fn main() {}
