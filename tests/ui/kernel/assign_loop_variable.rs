use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>) {
        for i in global(N) {
            i += 1;
            y[i] = 0.0;
        }
    }
}

fn main() {}
