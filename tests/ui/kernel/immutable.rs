use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>) {
        for i in global(N) {
            let total = 0.0f32;
            for j in serial(4) { total += j as f32; }
            y[i] = total;
        }
    }
}

fn main() {}
