use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<float, N>) {
        for i in global(N) { y[i] = 0.0; }
    }
}

fn main() {}
