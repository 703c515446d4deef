use tinyspec::prelude::*;

mod helpers {
    use tinyspec::prelude::*;

    pub fn activate(x: &Tensor) -> Tensor {
        x.relu()
    }

    #[function]
    pub fn traced<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
        x.relu()
    }
}

use helpers::{activate, traced as renamed};

#[function]
fn plain<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    renamed(&activate(x))
}

fn main() {}
