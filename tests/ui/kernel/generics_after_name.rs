use tinyspec::uop;

uop! {
    fn k<N>(y: &mut Global<f32, N>) {
        for i in global(N) { y[i] = 0.0; }
    }
}

fn main() {}
