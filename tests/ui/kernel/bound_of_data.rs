use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>, counts: &Global<i32, N>) {
        for i in global(N) {
            let mut total = 0.0f32;
            for j in reduce(counts[i]) { total += j as f32; }
            y[i] = total;
        }
    }
}

fn main() {}
