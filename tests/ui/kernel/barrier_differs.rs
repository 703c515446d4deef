use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>) {
        for block in global(N / 32) {
            for i in local(32) {
                let trips = i / 2;
                barrier();
                for j in serial(trips) { barrier(); }
                y[block * 32 + i] = 0.0;
            }
        }
    }
}

fn main() {}
