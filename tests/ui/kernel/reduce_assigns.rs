use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, 1>, x: &Global<f32, N>) {
        let mut last = 0.0f32;
        for i in reduce(N) { last = x[i]; }
        y[0] = last;
    }
}

fn main() {}
