use tinyspec::prelude::*;

uop! { <N>
    fn centred(y: &mut Global<f32, N>, x: &Global<f32, N>) {
        for i in global(N) {
            y[i] = x[i] - maen(x[i]);
        }
    }
}

fn main() {}
