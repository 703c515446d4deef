use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N, N>) {
        for i in global(N) {
            for j in local(i) { y[i, j] = 0.0; }
        }
    }
}

fn main() {}
