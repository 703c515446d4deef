use tinyspec::prelude::*;

uop! {
    fn skewed(x: &Global<f32, 1>) -> Global<f32, 15, 4> as y {
        for i in local(8) {
            for s in serial(8) {
                for j in local(4) { y[i + s, j] = x[0]; }
            }
        }
    }
}

fn main() {}
