use tinyspec::prelude::*;

#[function]
fn loss<B>(x: &Tensor<f32, B>) -> Tensor<f32> {
    x.sum(.., false)
}

fn main() {
    let x = Tensor::ones([3]);
    let [_of_x] = loss::grad(&x);
    let [_with_a_cotangent] = loss::backward(&x, &Tensor::ones(()));
}
