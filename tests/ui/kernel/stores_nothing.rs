use tinyspec::uop;

uop! {
    <N> fn k(x: &Global<f32, N>) {
        for i in global(N) { let _twice = x[i] * 2.0; }
    }
}

fn main() {}
