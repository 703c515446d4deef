use tinyspec::uop;

uop! {
    <N> fn k(x: &Global<f32, N>) -> Global<f32, N> {
        for i in global(N) { y[i] = x[i]; }
    }
}

fn main() {}
