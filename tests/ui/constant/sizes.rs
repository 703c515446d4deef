use tinyspec::prelude::*;

const SMALL: usize = 3;
const ZERO: usize = 0;
const BIG: usize = 1 << 40;

#[function]
fn negative<B>(x: &Tensor<f32, B, { SMALL - 7 }>) -> Tensor<f32, B, 2> {
    x.sum(1, true).expand([B, 2])
}

#[function]
fn by_a_constant_of_zero<B>(x: &Tensor<f32, B, { SMALL / ZERO }>) -> Tensor<f32, B> {
    x.sum(1, false)
}

#[function]
fn by_zero<B>(x: &Tensor<f32, B, { SMALL / 0 }>) -> Tensor<f32, B> {
    x.sum(1, false)
}

#[function]
fn too_large<B>(x: &Tensor<f32, B, { BIG * BIG }>) -> Tensor<f32, B> {
    x.sum(1, false)
}

#[function]
fn dim_by_zero<B>(x: &Tensor<f32, { ZERO * (SMALL - 7) + B }>) -> Tensor<f32, { B / ZERO }> {
    x.sum(.., false).expand([B / ZERO])
}

#[model(functions)]
struct Linear<I> {
    weight: Tensor<f32, I, { SMALL - 4 }>,
    bias: Tensor<f32, I, 3>,
}

#[function]
impl<I> Linear<I> {
    fn forward<B>(&self, x: &Tensor<f32, B, { SMALL - 5 }, I>) -> Tensor<f32, I, 3> {
        &self.bias + x.sum(.., false)
    }
}

#[function]
fn in_a_body<B>(x: &Tensor<f32, B>) -> Tensor<f32> {
    x.sum(.., false) + Tensor::zeros([SMALL - 7]).sum(.., false) + Tensor::zeros([B / 0]).sum(.., false)
}

#[function]
fn constants_in_a_body<B>(x: &Tensor<f32, B>) -> Tensor<f32> {
    let y = if SMALL > 7 { Tensor::zeros([SMALL - 7]) } else { Tensor::zeros([SMALL / ZERO]) };
    x.sum(.., false) + y.sum(.., false)
}

fn main() {}
