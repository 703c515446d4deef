use tinyspec::prelude::*;

#[function]
fn pair<B>(x: &Tensor<f32, B>, scale: f32) -> (Tensor<f32, B>, Tensor<f32, B>) {
    (x * scale, x.relu())
}

fn caller() {
    let x = Tensor::ones([4]);
    let y: Tensor = pair(&x, 1.0);
    pair(x, 1.0);
    pair(&x);
    pair(&x, 1);
    pair!(&x, 1.0);
    pair::missing();
}

fn main() {}
