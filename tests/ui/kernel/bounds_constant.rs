use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>) {
        let mut tile: Local<f32, 32>;
        for i in local(33) { tile[i] = 0.0; }
        for i in global(N) { y[i] = 1.0; }
    }
}

fn main() {}
