use tinyspec::prelude::*;

uop! { <N>
    fn copied(y: &mut Global<f32, N>, x: &Global<f32, N>) {
        let n = y.len();
        for i in global(n) {
            y[i] = x[i];
        }
    }
}

fn main() {}
