use tinyspec::prelude::*;

#[function]
fn in_place(x: &mut Tensor<f32, 4>) {
    *x = x.relu();
}

fn main() {}
