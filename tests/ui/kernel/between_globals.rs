use tinyspec::uop;

uop! {
    <M, N> fn k(y: &mut Global<f32, M, N>, s: &mut Global<f32, M>) {
        for i in global(M) {
            s[i] = 0.0;
            for j in global(N) { y[i, j] = 0.0; }
        }
    }
}

fn main() {}
