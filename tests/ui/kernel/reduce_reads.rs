use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>, x: &Global<f32, N>) {
        let mut total = 0.0f32;
        for i in reduce(N) { total += x[i] * total; }
        y[0] = total;
    }
}

fn main() {}
