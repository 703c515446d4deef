use tinyspec::prelude::*;

// What is no Rust is reported, and so is everything else.
uop! {
    <N> fn several(x: &Global<f32, N>, p: &Global<i32, N>) -> Global<f32, N> as y {
        let a = 2.0 * ;
        let mut b = 1.0 let c = 3;
        for i in global(N) {
            let d = x[i] + ;
            y[i] = a + b + d;
            y[i + 1] = missing;
            for j in serial(3) {
                b += x[p[i]];
                b. ;
            }
        }
        if N > 1 { y[0] = 1; }
    }
}

fn main() {
    several(&Tensor::ones([4]), &Tensor::zeros([4]));
}
