use tinyspec::uop;

uop! {
    fn none(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) { y[i] = x[i]; }
    }

    <N> fn one(x: &Global<f32, N>) -> Global<f32, N, M> as y {
        for i in global(N) { for j in global(M) { y[i, j] = x[i]; } }
    }
}

fn main() {}
