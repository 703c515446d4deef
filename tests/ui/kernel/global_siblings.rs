use tinyspec::prelude::*;

uop! {
    <N, M> pub fn k(x: &Global<f32, N, M>) -> (Global<f32, N, M> as a, Global<f32, N, M> as b) {
        for i in global(N) {
            for j in global(M) {
                a[i, j] = x[i, j] * 2.0;
            }
            for j in global(M) {
                b[i, j] = a[i, M - 1 - j];
            }
        }
    }
}

fn main() {}
