use tinyspec::prelude::*;

uop! {
    <N> fn doubled(y: &mut Global<f32, N>) {
        for i in global(N) { y[i] *= 2.0; }
    }
}

#[function]
fn f<N>(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    let y = doubled(x);
    y + x
}

fn main() {}
