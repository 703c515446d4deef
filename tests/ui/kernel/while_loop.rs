use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>) {
        for i in global(N) {
            while y[i] < 1.0 { y[i] += 0.5; }
        }
    }
}

fn main() {}
