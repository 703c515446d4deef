use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>, x: &Global<f32, N>) {
        for i in global(N) { y[i] = x.get([i + 1]); }
    }
}

fn main() {}
