use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>, x: &Global<f32, N>) {
        for block in global(N / 32) {
            let mut tile: Local<f32, 32>;
            for i in local(32) {
                tile[i] = x[block * 32 + i];
                y[block * 32 + i] = tile[31 - i];
            }
        }
    }
}

fn main() {}
