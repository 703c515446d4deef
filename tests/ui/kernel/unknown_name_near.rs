use tinyspec::uop;

uop! {
    <N> fn k(output: &mut Global<f32, N>, x: &Global<f32, N>) {
        for i in global(N) { outptu[i] = x[i]; }
    }
}

fn main() {}
