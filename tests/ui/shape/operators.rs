use tinyspec::prelude::*;

#[function]
fn subtract<B>(x: &Tensor<f32, B, 64>, y: &Tensor<f32, B, 63>) -> Tensor<f32, B, 64> {
    x - y
}

#[function]
fn assigned<B>(x: &Tensor<f32, B, 64>, y: &Tensor<f32, B, 63>) -> Tensor<f32, B, 64> {
    let mut z = x.clone();
    z += y;
    z
}

#[function]
fn method<B>(x: &Tensor<f32, B, 64>, y: &Tensor<f32, B, 63>) -> Tensor<f32, B, 64> {
    x.maximum(y)
}

#[function]
fn mask<B>(x: &Tensor<f32, B, 64>, y: &Tensor<f32, B, 63>) -> Tensor<f32, B, 64> {
    x.gt(0.0).where_(x, y)
}

#[function]
fn in_a_tuple<B>(x: &Tensor<f32, B, 64>, y: &Tensor<f32, B, 63>) -> Tensor<f32, B, 64> {
    let (a, b) = (x + y, x.relu());
    a + b
}

#[function]
fn in_a_list<B>(x: &Tensor<f32, B, 64>, y: &Tensor<f32, B, 63>) -> Tensor<f32, B, 64> {
    let parts = [x * y, x.exp()];
    &parts[0] + &parts[1]
}

#[function]
fn in_a_loop<B>(x: &Tensor<f32, B, 64>, y: &Tensor<f32, B, 63>) -> Tensor<f32, B, 64> {
    let mut z = x.clone();
    for i in 0..3 {
        z = z + y * i;
    }
    z
}

#[function]
fn in_an_if<B>(x: &Tensor<f32, B, 64>, y: &Tensor<f32, B, 63>) -> Tensor<f32, B, 64> {
    if 1 < 2 { x / y } else { x.relu() }
}

#[function]
fn in_a_block<B>(x: &Tensor<f32, B, 64>, y: &Tensor<f32, B, 63>) -> Tensor<f32, B, 64> {
    let z = {
        let w = y.exp();
        x % w
    };
    z
}

#[function]
fn in_an_argument<B>(x: &Tensor<f32, B, 64>, y: &Tensor<f32, B, 63>) -> Tensor<f32, B, 64> {
    x.maximum(x.minimum(y)).relu()
}

fn main() {}
