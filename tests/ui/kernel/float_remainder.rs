use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>) {
        for i in global(N) { y[i] = y[i] % 2.0; }
    }
}

fn main() {}
