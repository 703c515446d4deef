use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>, a: f32) {
        for i in global(N) { y[i] = a[i]; }
    }
}

fn main() {}
