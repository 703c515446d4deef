use tinyspec::prelude::*;

uop! { <N>
    pub fn both(y: &mut Global<f32, N>, x: &Global<f32, N>) {
        for i in global(N) {
            y[i] = x[i];
        }
        for i in tinyspec::global(N) {
            y[i] = 2.0 * x[i];
        }
    }
}

uop! { <N>
    pub fn large(y: &mut Global<f32, N>) {
        for i in global(N) {
            y[i + 9223372036854775807usize * 2] = 1.0;
        }
    }
}

fn main() {}
