use tinyspec::uop;

uop! {
    <M> fn late(x: &Global<f32, M>) -> Global<f32, 10> as y {
        for i in global(10) { y[i] = x[i % (M - 1)] + x[2 * i / (M + 3)] + x[i % 4 - 3]; }
    }
}

fn main() {}
