use tinyspec::prelude::*;

const SCALE: f32 = 0.5;

uop! { <N>
    fn scaled(y: &mut Global<f32, N>, x: &Global<f32, N>) {
        for i in global(N) {
            y[i] = x[i] * SCALE;
        }
    }

    <N> fn filled(y: &mut Global<f32, N>) {
        for i in global(N) {
            y[i] = SCALE;
        }
    }
}

fn main() {}
