use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>) {
        let mut t: Global<f32, N>;
        for i in global(N) { y[i] = t[i]; }
    }
}

fn main() {}
