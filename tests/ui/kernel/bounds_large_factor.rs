use tinyspec::uop;

uop! {
    <N> fn divided(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            for j in serial(4) {
                y[i] = x[(i * 4611686018427387904 + j) / 4611686018427387904];
            }
        }
    }
}

fn main() {}
