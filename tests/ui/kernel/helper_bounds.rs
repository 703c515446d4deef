use tinyspec::prelude::*;

uop! {
    <N> fn next(x: &Global<f32, N>, i: usize) -> f32 {
        x[i + 1]
    }

    <N> fn put(y: &mut Global<f32, N>, i: usize, x: f32) -> () {
        y[i] = x;
    }

    <N> fn beyond(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            y[i] = next(x, i);
        }
    }

    <M, N> fn beyond_a_part(x: &Global<f32, M, N>) -> Global<f32, M> as y {
        for i in global(M) {
            y[i] = next(&x[i + 1, ..], 0);
        }
    }

    <N> fn races(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            put(y, 0, x[i]);
        }
    }
}

fn main() {}
