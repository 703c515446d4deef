use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>, x: &Global<f32, N>) {
        for i in global(N) {
            let mut total = 0.0f32;
            for j in reduce(i) { total += x[j]; }
            y[i] = total;
        }
    }
}

fn main() {}
