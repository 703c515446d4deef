use tinyspec::prelude::*;

#[function]
fn relu<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    x.rleu()
}

#[function]
fn mean<B>(x: &Tensor<f32, B>) -> Tensor<f32> {
    x.maen(0, false)
}

uop! {
    <N> fn exp(y: &mut Global<f32, N>) {
        for i in global(N) { y[i] = epx(y[i]); }
    }
    <N> fn tanh(y: &mut Global<f32, N>) {
        for i in global(N) { y[i] = y[i].tahn(); }
    }
}

fn main() {}
