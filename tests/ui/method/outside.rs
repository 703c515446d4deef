use tinyspec::prelude::*;

fn main() {
    let x = Tensor::ones([4]);
    let _ = x.clamp(0.0, 1.0);
}
