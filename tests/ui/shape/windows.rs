use tinyspec::prelude::*;

#[function]
fn channels<N>(x: &Tensor<f32, N, 3, 16, 16>, w: &Tensor<f32, 8, 4, 3, 3>, b: &Tensor<f32, 9>) -> Tensor<f32, N, 8, 16, 16> {
    x.conv2d(w, None, default())
}

#[function]
fn bias<N>(x: &Tensor<f32, N, 3, 16, 16>, w: &Tensor<f32, 8, 4, 3, 3>, b: &Tensor<f32, 9>) -> Tensor<f32, N, 8, 16, 16> {
    x.conv2d(&w.narrow(1, 0, 3), Some(b), Conv2d { padding: [1, 1], ..default() })
}

#[function]
fn groups<N>(x: &Tensor<f32, N, 3, 16, 16>, w: &Tensor<f32, 8, 4, 3, 3>, b: &Tensor<f32, 9>) -> Tensor<f32, N, 8, 16, 16> {
    x.conv2d(w, None, Conv2d { groups: 2, padding: [1, 1], ..default() })
}

#[function]
fn stride<N>(x: &Tensor<f32, N, 3, 16, 16>, w: &Tensor<f32, 8, 4, 3, 3>, b: &Tensor<f32, 9>) -> Tensor<f32, N, 8, 16, 16> {
    x.conv2d(&w.narrow(1, 0, 3), None, Conv2d { stride: [0, 1], ..default() })
}

#[function]
fn too_small<N>(x: &Tensor<f32, N, 3, 16, 16>, w: &Tensor<f32, 8, 4, 3, 3>, b: &Tensor<f32, 9>) -> Tensor<f32, N, 8, 16, 16> {
    x.max_pool2d([32, 32], default())
}

#[function]
fn kernel_rank<N>(x: &Tensor<f32, N, 3, 16, 16>, w: &Tensor<f32, 8, 4, 3, 3>, b: &Tensor<f32, 9>) -> Tensor<f32, N, 8, 16, 16> {
    x.max_pool2d([2], default())
}

#[function]
fn rank<N>(x: &Tensor<f32, N, 3, 16, 16>, w: &Tensor<f32, 8, 4, 3, 3>, b: &Tensor<f32, 9>) -> Tensor<f32, N, 8, 16, 16> {
    x.conv1d(w, None, default())
}

#[function]
fn unfold<N>(x: &Tensor<f32, N, 3, 16, 16>, w: &Tensor<f32, 8, 4, 3, 3>, b: &Tensor<f32, 9>) -> Tensor<f32, N, 8, 16, 16> {
    x.unfold(3, 17, 1)
}

fn main() {}
