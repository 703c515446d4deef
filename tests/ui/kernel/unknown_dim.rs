use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>, x: &Global<f32, M>) {
        for i in global(N) { y[i] = x[i]; }
    }

    <N> fn result(x: &Global<f32, N>) -> Global<f32, K> as y {
        for i in global(N) { y[i] = x[i]; }
    }
}

fn main() {}
