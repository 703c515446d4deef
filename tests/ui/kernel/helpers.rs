use tinyspec::prelude::*;

uop! {
    fn cube(x: f32) -> f32 {
        x * y * x
    }

    <N> pub fn first(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            y[i] = cube(x[i]);
        }
    }

    <N> pub fn second(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            y[i] = cube(x[i]) + cube(2.0);
        }
    }

    <N> pub fn closure(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            let third = |v| v / 3.0;
            y[i] = third(x[i]);
        }
    }
}

uop! {
    <N> pub fn inside(x: &Global<f32, N>) -> Global<f32, N> as y {
        fn halved(x: f32) -> f32 {
            x / 2.0;
        }
        for i in global(N) {
            y[i] = halved(x[i]);
        }
    }

    fn exp(x: f32) -> f32 {
        x
    }

    fn twice(x: f32) -> f32 {
        x + x
    }

    fn twice(x: f32) -> f32 {
        2.0 * x
    }

    pub fn visible(x: f32) -> f32 {
        x
    }

    fn of_a_text(x: &str) -> f32 {
        1.0
    }

    fn to_a_text(x: f32) -> String {
        x
    }

    fn nobody_calls(x: f32) -> f32 {
        x + 1u8
    }

    <K> fn no_size(x: f32) -> f32 {
        x
    }

    <N> pub fn size(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            y[i] = no_size(x[i]);
        }
    }
}

fn main() {}
