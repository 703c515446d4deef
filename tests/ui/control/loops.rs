use tinyspec::prelude::*;

const ROUNDS: usize = 3;

#[function]
fn while_sum<B>(x: &Tensor<f32, B, 64>, n: i32) -> Tensor<f32, B, 64> {
    let mut y = x.relu();
    while y.sum(.., false) > 1.0 {
        y = y * 0.5;
    }
    y
}

#[function]
fn endless<B>(x: &Tensor<f32, B, 64>, n: i32) -> Tensor<f32, B, 64> {
    let mut y = x.relu();
    loop {
        y = y * 0.5;
        break;
    }
    y
}

#[function]
fn over_scalar<B>(x: &Tensor<f32, B, 64>, n: i32) -> Tensor<f32, B, 64> {
    let mut y = x.relu();
    for _ in 0..n {
        y = y * 0.5;
    }
    y
}

#[function]
fn over_dim<B>(x: &Tensor<f32, B, 64>, n: i32) -> Tensor<f32, B, 64> {
    let mut y = x.relu();
    for _ in 0..B {
        y = y * 0.5;
    }
    y
}

#[function]
fn over_constant<B>(x: &Tensor<f32, B, 64>, n: i32) -> Tensor<f32, B, 64> {
    let mut y = x.relu();
    for _ in 0..ROUNDS {
        y = y * 0.5;
    }
    y
}

#[function]
fn over_tensor<B>(x: &Tensor<f32, B, 64>, n: i32) -> Tensor<f32, B, 64> {
    let mut y = x.relu();
    for row in x {
        y = y + row;
    }
    y
}

#[function]
fn over_number<B>(x: &Tensor<f32, B, 64>, n: i32) -> Tensor<f32, B, 64> {
    let mut y = x.relu();
    for _ in 3 {
        y = y * 0.5;
    }
    y
}

#[function]
fn open_range<B>(x: &Tensor<f32, B, 64>, n: i32) -> Tensor<f32, B, 64> {
    let mut y = x.relu();
    for _ in 0.. {
        y = y * 0.5;
    }
    y
}

#[function]
fn too_many<B>(x: &Tensor<f32, B, 64>, n: i32) -> Tensor<f32, B, 64> {
    let mut y = x.relu();
    for _ in 0..1000000 {
        y = y * 0.5;
    }
    y
}

#[function]
fn mapped<B>(x: &Tensor<f32, B, 64>, n: i32) -> Tensor<f32, B, 64> {
    let parts = x.chunk(2, 1).iter().map(|part| part.relu()).collect::<Vec<_>>();
    Tensor::cat(&parts, 1)
}

#[function]
fn folded<B>(x: &Tensor<f32, B, 64>, n: i32) -> Tensor<f32, B, 64> {
    x.chunk(64, 1).iter().fold(x.clone(), |sum, part| sum + part)
}

#[function]
fn summed<B>(x: &Tensor<f32, B, 64>, n: i32) -> Tensor<f32, B, 64> {
    x.chunk(2, 1).iter().sum()
}

#[function]
fn closure<B>(x: &Tensor<f32, B, 64>, n: i32) -> Tensor<f32, B, 64> {
    let double = |t: &Tensor| t * 2.0;
    double(x)
}

#[function]
fn continued<B>(x: &Tensor<f32, B, 64>, n: i32) -> Tensor<f32, B, 64> {
    let mut y = x.relu();
    for i in 0..4 {
        if i == 2 {
            continue;
        }
        y = y * i;
    }
    y
}

#[function]
fn labelled<B>(x: &Tensor<f32, B, 64>, n: i32) -> Tensor<f32, B, 64> {
    let mut y = x.relu();
    'outer: for i in 0..4 {
        break 'outer;
    }
    y
}

fn main() {}
