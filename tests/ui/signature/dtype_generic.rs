use tinyspec::prelude::*;

#[function]
fn bounded<T: Float>(x: Tensor<T, 4>) -> Tensor<T, 4> {
    x.relu()
}

#[function]
fn clause<T>(x: &Tensor<T, 4>) -> Tensor<T, 4>
where
    T: Copy,
{
    x.relu()
}

fn main() {}
