use tinyspec::prelude::*;

uop! {
    <N> pub fn by_reference(x: &Global<f32, N>, scale: &f32) -> Global<f32, N> as y {
        for i in global(N) {
            y[i] = x[i] * scale;
        }
    }

    <N> pub fn halves(x: &Global<f32, N>) -> Global<f32, N / 2> as y {
        for i in global(N / 2) {
            y[i] = x[i];
        }
    }

    <N> pub fn of_halves(x: &Global<f32, N / 2>) -> Global<f32, N> as y {
        for i in global(N) {
            y[i] = 0.0;
        }
    }
}

fn main() {}
