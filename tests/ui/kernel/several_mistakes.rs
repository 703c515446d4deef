use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>, x: &Global<i32, N>) {
        for i in global(N) {
            y[i, 0] = 1.0;
            y[i] = x[i];
            z[i] = 2.0;
            x[i] = 3;
        }
    }
}

fn main() {}
