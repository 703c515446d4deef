//! Numbers and sizes that constants say, where they are not among what was looked at, or no constant could say them.

use tinyspec::prelude::*;

const MANY: usize = 50;
const PATCH: usize = 5;

#[function]
fn greatest<B>(x: &Tensor<f32, B, 100>) -> Tensor<f32, B, 50> {
    let [values, _] = x.topk(MANY, -1, true);
    values
}

#[function]
fn patches<B>(x: &Tensor<f32, B, 32>) -> Tensor<f32, B, { 32 / PATCH }, PATCH> {
    x.reshape([B, 32 / PATCH, PATCH])
}

#[function]
fn depthwise<B, C, H, W>(x: &Tensor<f32, B, C, H, W>, w: &Tensor<f32, C, 1, 3, 3>) -> Tensor<f32, B, C, H, W> {
    x.conv2d(w, None, Conv2d { groups: C, padding: [1, 1], ..default() })
}

#[function]
fn encoded<B, C>(labels: &Tensor<i32, B>, x: &Tensor<f32, C>) -> Tensor<f32, B, C> {
    labels.one_hot(C).cast(DType::F32) * x
}

#[function]
fn gathered<B, C>(x: &Tensor<f32, B, C>, labels: &Tensor<i32, B, 1>) -> Tensor<f32, B, 1> {
    x.gather(1, labels)
}

#[model(functions)]
struct Attention<D, H> {
    weight: Tensor<f32, D, D>,
}

#[function]
impl<D, H> Attention<D, H> {
    #[function(where(D % H == 0))]
    fn heads<B>(&self, x: &Tensor<f32, B, D>) -> Tensor<f32, B, H, { D / H }> {
        x.matmul(&self.weight).reshape([B, H, D / H])
    }
}

fn main() {}
