use tinyspec::prelude::*;

uop! {
    <N> fn sum(x: &Global<f32, N>, y: &Global<f32, N>) -> Global<f32, N> as z {
        for i in global(N) { z[i] = x[i] + y[i]; }
    }
}

#[function]
fn f<M>(x: &Tensor<f32, M, 4>) -> Tensor<f32, M, 4> {
    sum(x, x)
}

fn main() {}
