use tinyspec::prelude::*;

uop! {
    fn cube(x: f32) -> f32 {
        x * x * x
    }

    <N> pub fn outside(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            y[i] = cube(x[i]);
        }
    }
}

uop! {
    <N> pub fn inside(x: &Global<f32, N>) -> Global<f32, N> as y {
        fn halved(x: f32) -> f32 {
            x / 2.0
        }
        for i in global(N) {
            y[i] = halved(x[i]);
        }
    }

    <N> pub fn closure(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            let third = |v| v / 3.0;
            y[i] = third(x[i]);
        }
    }
}

fn main() {}
