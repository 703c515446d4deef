use tinyspec::prelude::*;

const PATCH: usize = 5;

#[model]
struct Misspelled {
    weight: Tensor<f32, PATHC>,
    other: Tensor<f32, { 2 * PATCH }>,
}

fn main() {}
