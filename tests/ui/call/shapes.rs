use tinyspec::prelude::*;

mod layers {
    use tinyspec::prelude::*;

    #[function]
    pub fn dense<N, I, O>(x: &Tensor<f32, N, I>, w: &Tensor<f32, I, O>, scale: f32) -> Tensor<f32, N, O> {
        x.matmul(w) * scale
    }

    #[function]
    pub fn fixed<N>(x: &Tensor<f32, N, 64>) -> (Tensor<f32, N>, Tensor<f32, { N * 2 }>) {
        (x.mean(1, false), x.narrow(1, 0, 2).reshape([N * 2]))
    }
}

#[function]
fn order<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 64, 10>) -> Tensor<f32, B, 10> {
    layers::dense(w, x, 1.0)
}

#[function]
fn rank<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 64>) -> Tensor<f32, B, 10> {
    layers::dense(x, w, 1.0)
}

#[function]
fn in_a_chain<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 64, 10>) -> Tensor<f32, B, 10> {
    layers::dense(&layers::dense(x, w, 1.0).relu(), w, 1.0)
}

#[function]
fn in_a_loop<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 64, 10>) -> Tensor<f32, B, 10> {
    let mut y = x.clone();
    for _ in 0..3 {
        y = layers::dense(&y, w, 1.0);
    }
    y
}

#[function]
fn literal<B>(x: &Tensor<f32, B, 32>) -> Tensor<f32, B> {
    layers::fixed(x).0
}

#[function]
fn result<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B> {
    layers::fixed(x).1
}

#[function]
fn tensor_for_scalar<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 64, 10>) -> Tensor<f32, B, 10> {
    layers::dense(x, w, x)
}

#[function]
fn scalar_of_other_dtype<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 64, 10>, n: i32) -> Tensor<f32, B, 10> {
    layers::dense(x, w, n)
}

#[function]
fn annotation<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 64, 10>) -> Tensor<f32, B, 10> {
    let y: Tensor<f32, B, 64> = layers::dense(x, w, 1.0);
    y
}

fn main() {}
