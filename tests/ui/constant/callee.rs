use tinyspec::prelude::*;

const WIDTH: usize = 5;

mod layers {
    use tinyspec::prelude::*;

    pub const WIDTH: usize = 3;
    pub const HEIGHT: usize = 4;

    #[function]
    pub fn rows<B>(x: &Tensor<f32, { B * WIDTH }>) -> Tensor<f32, { B * WIDTH }> {
        x * 2.0
    }

    #[function]
    pub fn picture(x: &Tensor<f32, { WIDTH * HEIGHT }>) -> Tensor<f32, { WIDTH * HEIGHT }> {
        x + 1.0
    }
}

#[function]
fn no_multiple(x: &Tensor<f32, 10>) -> Tensor<f32, 10> {
    layers::rows(x)
}

#[function]
fn any_size<N>(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    layers::rows(x)
}

#[function]
fn another_width<N>(x: &Tensor<f32, { N * WIDTH }>) -> Tensor<f32, { N * WIDTH }> {
    layers::rows(x)
}

#[function]
fn other_product(x: &Tensor<f32, 11>) -> Tensor<f32, 11> {
    layers::picture(x)
}

#[function]
fn any_product<N>(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    layers::picture(x)
}

fn main() {}
