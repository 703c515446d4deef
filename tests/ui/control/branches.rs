use tinyspec::prelude::*;

const DEEP: bool = true;

#[function]
fn comparison<B>(x: &Tensor<f32, B, 64>, s: f32, on: bool) -> Tensor<f32, B, 64> {
    if x.max(.., false) > 0.0 { x.relu() } else { x.exp() }
}

#[function]
fn equality<B>(x: &Tensor<f32, B, 64>, s: f32, on: bool) -> Tensor<f32, B, 64> {
    if x == x { x.relu() } else { x.exp() }
}

#[function]
fn tensor<B>(x: &Tensor<f32, B, 64>, s: f32, on: bool) -> Tensor<f32, B, 64> {
    if x.gt(0.0) { x.relu() } else { x.exp() }
}

#[function]
fn scalar<B>(x: &Tensor<f32, B, 64>, s: f32, on: bool) -> Tensor<f32, B, 64> {
    if s > 0.5 { x.relu() } else { x.exp() }
}

#[function]
fn flag<B>(x: &Tensor<f32, B, 64>, s: f32, on: bool) -> Tensor<f32, B, 64> {
    if on { x.relu() } else { x.exp() }
}

#[function]
fn constant<B>(x: &Tensor<f32, B, 64>, s: f32, on: bool) -> Tensor<f32, B, 64> {
    if DEEP { x.relu() } else { x.exp() }
}

#[function]
fn dim<B>(x: &Tensor<f32, B, 64>, s: f32, on: bool) -> Tensor<f32, B, 64> {
    if B > 4 { x.relu() } else { x.exp() }
}

#[function]
fn dim_of_shape<B>(x: &Tensor<f32, B, 64>, s: f32, on: bool) -> Tensor<f32, B, 64> {
    if x.shape()[1] == 32 { x.relu() } else { x.exp() }
}

#[function]
fn and<B>(x: &Tensor<f32, B, 64>, s: f32, on: bool) -> Tensor<f32, B, 64> {
    if x.gt(0.0) && on { x.relu() } else { x.exp() }
}

#[function]
fn if_let<B>(x: &Tensor<f32, B, 64>, s: f32, on: bool) -> Tensor<f32, B, 64> {
    if let Some(y) = Some(x) { y.relu() } else { x.exp() }
}

#[function]
fn matched<B>(x: &Tensor<f32, B, 64>, s: f32, on: bool) -> Tensor<f32, B, 64> {
    match s {
        0.0 => x.relu(),
        _ => x.exp(),
    }
}

#[function]
fn let_else<B>(x: &Tensor<f32, B, 64>, s: f32, on: bool) -> Tensor<f32, B, 64> {
    let Some(y) = Some(x) else { return x.exp() };
    y.relu()
}

#[function]
fn early_return<B>(x: &Tensor<f32, B, 64>, s: f32, on: bool) -> Tensor<f32, B, 64> {
    if on {
        return x.exp();
    }
    x.relu()
}

#[function]
fn last_return<B>(x: &Tensor<f32, B, 64>, s: f32, on: bool) -> Tensor<f32, B, 64> {
    return x.relu()
}

#[function]
fn question<B>(x: &Tensor<f32, B, 64>, s: f32, on: bool) -> Tensor<f32, B, 64> {
    x.realize()?;
    x.relu()
}

#[function]
fn number_condition<B>(x: &Tensor<f32, B, 64>, s: f32, on: bool) -> Tensor<f32, B, 64> {
    if 1 { x.relu() } else { x.exp() }
}

fn main() {}
