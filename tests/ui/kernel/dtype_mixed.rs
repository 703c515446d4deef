use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>, x: &Global<i32, N>) {
        for i in global(N) { y[i] = y[i] * x[i]; }
    }
}

fn main() {}
