use tinyspec::prelude::*;

uop! { <N> fn total(x: &Global<f64, N>) -> Global<f64, 1> as y {
    for i in global(1) {
        let mut s = 0.0;
        for j in reduce(N) { s += x[j]; }
        y[i] = s;
    }
} }

fn main() {}
