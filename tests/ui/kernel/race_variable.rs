use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, 1>, x: &Global<f32, N>) {
        let mut total = 0.0f32;
        for i in global(N) { total += x[i]; }
        y[0] = total;
    }
}

fn main() {}
