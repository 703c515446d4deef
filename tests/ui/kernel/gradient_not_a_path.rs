use tinyspec::uop;

uop! {
    <N>
    #[gradient(1 + 2)]
    fn k(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) { y[i] = x[i]; }
    }
}

fn main() {}
