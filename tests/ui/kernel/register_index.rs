use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>) {
        for i in global(N) {
            let mut part: Reg<f32, 4>;
            for j in serial(4) { part[j] = 1.0; }
            y[i] = part[0];
        }
    }
}

fn main() {}
