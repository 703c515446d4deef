use tinyspec::prelude::*;

uop! { <M, N>
    fn of_a_product(x: &Global<f32, {M * N}>) -> Global<f32, M, N> as y {
        for i in global(M) {
            for j in global(N) { y[i, j] = x[i * N + j]; }
        }
    }

    <N, M>
    fn of_the_result(x: &Global<f32, N>) -> Global<f32, N, M> as y {
        for i in global(N) {
            for j in global(M) { y[i, j] = x[i]; }
        }
    }
}

fn main() {}
