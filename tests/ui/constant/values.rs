use tinyspec::prelude::*;

const WIDTH: usize = 128;
const SMALL: i32 = -1;
const FRACTION: f32 = 1.5;
static SIZE: usize = 4;

mod layers {
    use tinyspec::prelude::*;

    pub const HEIGHT: usize = 32;

    #[function]
    pub fn tall<N>(x: &Tensor<f32, N, HEIGHT>) -> Tensor<f32, N, HEIGHT> {
        x.relu()
    }
}

#[function]
fn literal<B>(x: &Tensor<f32, B, 100>) -> Tensor<f32, B, 100> {
    layers::tall(x)
}

#[function]
fn other_constant<B>(x: &Tensor<f32, B, WIDTH>) -> Tensor<f32, B, WIDTH> {
    layers::tall(x)
}

#[function]
fn named_dim<B, C>(x: &Tensor<f32, B, C>) -> Tensor<f32, B, C> {
    layers::tall(x)
}

fn main() {}
