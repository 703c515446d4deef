use tinyspec::prelude::*;

uop! {
    <N> fn scaled(x: &Global<f32, N>, a: f32) -> Global<f32, N> as z {
        for i in global(N) { z[i] = a * x[i]; }
    }
}

fn main() {
    let x = Tensor::ones([4]);
    let _ = scaled(&x, "two");
    let _ = scaled(x, 2.0);
}
