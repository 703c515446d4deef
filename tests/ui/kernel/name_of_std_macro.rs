use tinyspec::uop;

uop! {
    <N> fn vec(y: &mut Global<f32, N>) {
        for i in global(N) { y[i] = 0.0; }
    }
}

fn main() {}
