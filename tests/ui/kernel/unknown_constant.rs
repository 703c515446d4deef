use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>, x: &Global<f32, WIDTH>) {
        for i in global(N) { y[i] = 0.0; }
    }
}

fn main() {}
