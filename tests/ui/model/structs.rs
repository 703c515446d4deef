use tinyspec::prelude::*;

const WIDTH: usize = 8;

struct Plain;

#[model]
struct OuterConstant {
    w: Tensor<f32, WIDTH, 4>,
}

#[model]
struct NoDims {
    w: Tensor,
}

#[model]
struct Growing {
    layers: Vec<Tensor<f32, 4>>,
}

#[model]
struct Itself {
    w: Tensor<f32, 4>,
    next: Option<Box<Itself>>,
}

#[model]
struct Pair(Tensor<f32, 4>, Tensor<f32, 4>);

#[model]
struct Bounded<T: Clone> {
    w: Tensor<f32, T>,
}

#[model(methods)]
struct Options {
    #[model(init = random)]
    w: Tensor<f32, 4>,
    #[model(length = 3)]
    v: Vec<Tensor<f32, 4>>,
}

#[model]
enum Choice {
    A,
}

#[model]
struct HoldsPlain {
    plain: Plain,
}

const COUNT: usize = 3;

#[model]
struct Fields {
    count: usize,
    plain: [Tensor<f32, 4>; COUNT],
    pointer: fn(),
    #[model]
    w: Tensor<f32, 4>,
}

#[model]
struct Endless<N> {
    w: Tensor<f32, N>,
    next: Option<Endless<N>>,
}

#[model]
struct Sized<N> {
    w: Tensor<f32, N>,
}

#[model]
struct Undefined {
    part: Sized<x>,
    parts: [Sized<LENGTH>; 2],
}

fn main() {}
