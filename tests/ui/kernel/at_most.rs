use tinyspec::prelude::*;

uop! {
    <N> fn without(x: &Global<f32, N>, n: &Global<i32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            for j in serial(n[i]) { y[i] += x[i]; }
        }
    }

    <N> fn start(x: &Global<f32, N>, n: &Global<i32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            for j in serial(n[i]..N) { y[i] += x[i]; }
        }
    }

    <N> fn of_data(x: &Global<f32, N>, n: &Global<i32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            for j in serial(n[i], at most n[0]) { y[i] += x[i]; }
        }
    }

    <N> fn in_parallel(x: &Global<f32, N>, n: &Global<i32, 1>) -> Global<f32, N> as y {
        for i in global(n[0], at most N) { y[i] = x[i]; }
    }

    <N> fn unrolled(x: &Global<f32, N>, n: &Global<i32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            for j in unroll(n[i], at most 4) { y[i] += x[i]; }
        }
    }

    <N> fn too_long(x: &Global<f32, N>, n: &Global<i32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            for j in serial(n[i], at most N + 1) { y[i] += x[j]; }
        }
    }

    <N> fn from_data(x: &Global<f32, N>, n: &Global<i32, {N + 1}>) -> Global<f32, N> as y {
        for i in global(N) {
            for j in serial(n[i]..n[i + 1], at most N) { y[i] += x[j]; }
        }
    }

    <N> fn float(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            for j in serial(x[i], at most N) { y[i] += 1.0; }
        }
    }
}

fn main() {}
