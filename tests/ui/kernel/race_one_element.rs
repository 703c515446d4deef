use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, 1>, x: &Global<f32, N>) {
        for i in global(N) { y[0] += x[i]; }
    }
}

fn main() {}
