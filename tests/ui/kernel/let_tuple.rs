use tinyspec::prelude::*;

// The names are not unknown, too.
uop! {
    <N> pub fn k(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            let (u, v) = (x[i], 1.0);
            y[i] = u + v;
        }
    }
}

fn main() {}
