use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>) {
        for block in global(N / 32) {
            for i in local(32) {
                let mut tile: Local<f32, 32>;
                tile[i] = 0.0;
                y[block * 32 + i] = tile[i];
            }
        }
    }
}

fn main() {}
