use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>, x: &Global<f32, { N / 0 }>, z: &Global<f32, { 8 % 0 }>) {
        for i in global(N) {
            y[i] = y[i / 0];
        }
    }
}

fn main() {}
