use tinyspec::uop;

uop! {
    <N> fn k(y: Global<f32, N>) {
        for i in global(N) { y[i] = 0.0; }
    }
}

fn main() {}
