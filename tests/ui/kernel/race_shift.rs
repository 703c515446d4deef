use tinyspec::uop;

uop! {
    <N> fn k(x: &mut Global<f32, N>) {
        for i in global(1..N) { x[i] = x[i - 1]; }
    }
}

fn main() {}
