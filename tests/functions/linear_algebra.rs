//! The methods of linear algebra, each in a `#[function]` of its own name.

use tinyspec::function::EmbeddedFunction;
use tinyspec::prelude::*;

#[function]
fn solve<B>(x: &Tensor<f32, B, 3, 3>, y: &Tensor<f32, B, 3, 2>) -> Tensor<f32, B, 3, 2> {
    x.solve(y)
}

#[function]
fn solve_triangular<B>(x: &Tensor<f32, B, 3, 3>, y: &Tensor<f32, B, 3, 2>) -> Tensor<f32, B, 3, 2> {
    x.solve_triangular(y, true, false)
}

#[function]
fn lstsq<B>(x: &Tensor<f32, B, 4, 2>, y: &Tensor<f32, B, 4, 3>) -> Tensor<f32, B, 2, 3> {
    x.lstsq(y)
}

#[function]
fn inverse<B>(x: &Tensor<f32, B, 3, 3>) -> Tensor<f32, B, 3, 3> {
    x.inverse()
}

#[function]
fn det<B>(x: &Tensor<f32, B, 3, 3>) -> Tensor<f32, B> {
    x.det()
}

#[function]
fn slogdet<B>(x: &Tensor<f32, B, 3, 3>) -> Tensor<f32, B> {
    let parts = x.slogdet();
    &parts[0] * &parts[1]
}

#[function]
fn logdet<B>(x: &Tensor<f32, B, 3, 3>) -> Tensor<f32, B> {
    x.logdet()
}

#[function]
fn matrix_power<B>(x: &Tensor<f32, B, 3, 3>) -> Tensor<f32, B, 3, 3> {
    x.matrix_power(-3)
}

#[function]
fn cholesky<B>(x: &Tensor<f32, B, 3, 3>) -> Tensor<f32, B, 3, 3> {
    x.cholesky(false)
}

#[function]
fn cholesky_solve<B>(x: &Tensor<f32, B, 3, 2>, factor: &Tensor<f32, B, 3, 3>) -> Tensor<f32, B, 3, 2> {
    x.cholesky_solve(factor, false)
}

#[function]
fn lu<B>(x: &Tensor<f32, B, 3, 3>) -> Tensor<f32, B, 3, 3> {
    let parts = x.lu();
    parts[0].matmul(&parts[1]).matmul(&parts[2])
}

#[function]
fn qr<B>(x: &Tensor<f32, B, 4, 2>) -> Tensor<f32, B, 4, 2> {
    let parts = x.qr();
    parts[0].matmul(&parts[1])
}

#[function]
fn allclose<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<bool> {
    x.allclose(y, 0.00001, 0.00000001)
}

pub const FUNCTIONS: &[&EmbeddedFunction] = functions! {
    solve solve_triangular lstsq inverse det slogdet logdet matrix_power cholesky cholesky_solve lu qr allclose
};
