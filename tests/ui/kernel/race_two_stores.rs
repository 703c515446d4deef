use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, { N + 1 }>) {
        for i in global(N) {
            y[i] = 1.0;
            y[i + 1] = 2.0;
        }
    }
}

fn main() {}
