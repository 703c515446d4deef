use tinyspec::prelude::*;

#[model]
struct Named {
    weight: Tensor<f32, 8, 4>,
    names: Vec<String>,
    sizes: Option<Vec<usize>>,
    range: (f32, f32),
}

fn main() {}
