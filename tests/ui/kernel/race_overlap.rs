use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, { 4 * N }>) {
        for i in global(N) {
            for j in global(5) {
                if 4 * i + j < 4 * N { y[4 * i + j] = 1.0; }
            }
        }
    }
}

fn main() {}
