use tinyspec::prelude::*;

uop! { <N>
    fn total(x: &Global<f32, N>) -> f32 {
        let mut sum = 0.0;
        for i in reduce(N) {
            sum += x[i];
        }
        sum
    }
}

fn main() {}
