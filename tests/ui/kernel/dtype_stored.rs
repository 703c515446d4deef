use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<i32, N>, x: &Global<f32, N>) {
        for i in global(N) { y[i] = x[i]; }
    }
}

fn main() {}
