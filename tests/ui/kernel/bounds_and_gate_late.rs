use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>, x: &Global<f32, N>) {
        for i in global(N) {
            let next = x[i + 1];
            if i + 1 < N { y[i] = next; }
        }
    }
}

fn main() {}
