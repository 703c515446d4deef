use tinyspec::prelude::*;

const LAYERS: usize = 3;
const WIDTHS: [usize; 3] = [1, 3, 5];

#[model(functions)]
struct Linear {
    weight: Tensor<f32, 4, 4>,
}

#[function]
impl Linear {
    fn forward<B>(&self, x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
        x.matmul(&self.weight)
    }
}

#[model(functions)]
struct Stack {
    layers: [Linear; 3],
}

#[function]
impl Stack {
    fn by_number<B>(&self, x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
        let mut y = x.clone();
        for i in 0..LAYERS {
            y = self.layers[i].forward(&y);
        }
        y
    }
}

#[function]
fn backwards<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    let mut y = x.clone();
    for _ in (0..LAYERS).rev() {
        y = y.relu();
    }
    y
}

#[function]
fn widths<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    let mut y = x.clone();
    for width in WIDTHS {
        y = y + width as f32;
    }
    y
}

#[function]
fn ranges<B>(x: &Tensor<f32, B, LAYERS>) -> Tensor<f32, B, 1> {
    let mut y = x.at((.., 0..1));
    for i in 0..LAYERS {
        y = y + x.at((.., i..i + 1));
    }
    y
}

fn main() {}
