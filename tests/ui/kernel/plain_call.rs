use tinyspec::uop;

fn scale(x: f32) -> f32 {
    2.0 * x
}

uop! {
    <N> fn k(y: &mut Global<f32, N>) {
        for i in global(N) { y[i] = scale(y[i]); }
    }
}

fn main() {
    let _ = scale(1.0);
}
