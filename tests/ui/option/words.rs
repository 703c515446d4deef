use tinyspec::prelude::*;

#[function]
fn reduction<B>(x: &Tensor<f32, B, 64>, t: &Tensor<i32, B>) -> Tensor<f32> {
    x.cross_entropy(t, "average", 0.0, -1) + x.sum(.., false)
}

#[function]
fn rounding<B>(x: &Tensor<f32, B, 64>, t: &Tensor<i32, B>) -> Tensor<f32> {
    x.idiv(2.0, "down").sum(.., false)
}

#[function]
fn pad_mode<B>(x: &Tensor<f32, B, 64>, t: &Tensor<i32, B>) -> Tensor<f32> {
    x.pad_mode([1], [1], "mirror").sum(.., false)
}

#[function]
fn interpolate<B>(x: &Tensor<f32, B, 64>, t: &Tensor<i32, B>) -> Tensor<f32> {
    x.reshape([B, 1, 64]).interpolate([128], "spline", false).sum(.., false)
}

#[function]
fn scatter_reduce<B>(x: &Tensor<f32, B, 64>, t: &Tensor<i32, B>) -> Tensor<f32> {
    x.scatter_reduce(t.unsqueeze(1), x, 1, "add", true).sum(.., false)
}

#[function]
fn not_text<B>(x: &Tensor<f32, B, 64>, t: &Tensor<i32, B>) -> Tensor<f32> {
    x.cross_entropy(t, mean, 0.0, -1)
}

fn main() {}
