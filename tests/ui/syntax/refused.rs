use tinyspec::prelude::*;

struct Pair {
    a: i32,
}

#[function]
fn structure<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let pair = Pair { a: 1 };
    x * pair.a
}

#[function]
fn inner_function<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    fn helper(x: &Tensor) -> Tensor {
        x.relu()
    }
    x.relu()
}

#[function]
fn inner_struct<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    struct Inner;
    x.relu()
}

#[function]
fn unsafe_block<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    unsafe { x.relu() }
}

#[function]
fn async_block<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    async { x.relu() }.await
}

#[function]
fn pattern<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let Pair { a } = 1;
    x * a
}

#[function]
fn labelled<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    'a: {
        x.relu()
    }
}

#[function]
fn boxed<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let y = Box::new(x.relu());
    *y
}

#[function]
fn array_repeat<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let parts = [x.relu(); 2];
    parts[0].clone()
}

#[function]
fn type_path<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    <Tensor as Clone>::clone(x)
}

#[function]
fn call_of_value<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    (x)(1)
}

#[function]
fn called_method<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    (x.relu)(1)
}

#[function]
fn static_item<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    static Y: i32 = 1;
    x * Y
}

#[function]
fn borrowed_mutably<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let y = &mut x.relu();
    y.exp()
}

#[function]
fn as_type<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x as Tensor
}

#[function]
fn infinite_shape<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.expand([B, 9223372036854775807])
}

fn main() {}
