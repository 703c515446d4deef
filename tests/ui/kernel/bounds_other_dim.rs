use tinyspec::uop;

uop! {
    <M, N> fn k(y: &mut Global<f32, M, N>) {
        for i in global(M) {
            for j in global(N) { y[j, i] = 0.0; }
        }
    }
}

fn main() {}
