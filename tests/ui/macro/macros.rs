use tinyspec::prelude::*;

#[function]
fn print<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    println!("{x:?}");
    x.relu()
}

#[function]
fn assertion<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    assert!(B > 1);
    x.relu()
}

#[function]
fn vector<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    Tensor::cat(&vec![x, x], 0)
}

#[function]
fn formatted<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let name = format!("{}", 1);
    x.relu()
}

#[function]
fn panicking<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    panic!("no")
}

#[function]
fn todo<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    todo!()
}

#[function]
fn debug<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    dbg!(x.relu())
}

#[function]
fn own<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    twice!(x)
}

#[function]
fn last<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.relu();
    println!("done")
}

fn main() {}
