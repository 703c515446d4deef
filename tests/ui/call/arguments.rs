use tinyspec::prelude::*;

mod layers {
    use tinyspec::prelude::*;

    pub const WIDTH: usize = 128;

    #[function]
    pub fn dense<N, I, O>(x: &Tensor<f32, N, I>, w: &Tensor<f32, I, O>) -> Tensor<f32, N, O> {
        x.matmul(w)
    }

    #[function]
    pub fn wide<N>(x: &Tensor<f32, N, WIDTH>, scale: f32) -> Tensor<f32, N, WIDTH> {
        x * scale
    }
}

fn helper(x: &Tensor) -> Tensor {
    x.relu()
}

#[function]
fn wrong<B>(x: &Tensor<f32, B, 784>, w: &Tensor<f32, 700, 128>, y: &Tensor<i32, B>) -> Tensor<f32, B, 128> {
    let a = layers::dense(x, w);
    let b = layers::dense(y, w);
    let c = layers::dense(x);
    let d = layers::wide(&x.narrow(1, 0, 100), 2.0);
    let e = layers::wide(&x.narrow(1, 0, 128), "2.0");
    a + b + c + d + e
}

#[function]
fn plain<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    helper(x)
}

#[function]
fn recursive<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    recursive(&(x + 1.0))
}

#[function]
fn concat<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x + 1.0
}

fn main() {}
