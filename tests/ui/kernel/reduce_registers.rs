use tinyspec::prelude::*;

uop! {
    <N> fn another(x: &Global<f32, N>) -> Global<f32, 2> as y {
        for g in global(1) {
            let mut most: Reg<f32, 2>;
            for i in reduce(N) { most[0] = max(most[1], x[i]); }
            for u in unroll(2) { y[u] = most[u]; }
        }
    }

    <N> fn outside(x: &Global<f32, N>) -> Global<f32, 2> as y {
        for g in global(1) {
            let mut most: Reg<f32, 2>;
            for i in reduce(N) { most[0] = max(most[2], x[i]); }
            for u in unroll(2) { y[u] = most[u]; }
        }
    }

    <N> fn two_ways(x: &Global<f32, N>) -> Global<f32, 2> as y {
        for g in global(1) {
            let mut most: Reg<f32, 2>;
            for i in reduce(N) {
                for u in unroll(2) { most[u] = max(most[u], x[i]); }
                most[1] += x[i];
            }
            for u in unroll(2) { y[u] = most[u]; }
        }
    }
}

fn main() {}
