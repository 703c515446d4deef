//! `#[function]`: what is embedded is what a trace at run time gives, and it computes what the Rust code says.

#![allow(clippy::unnecessary_cast, reason = "macros cannot see the type of a constant: a cast says it")]
#![allow(clippy::assign_op_pattern, reason = "assignment is one of the constructs that are tried")]

/// What is embedded of functions with these names.
macro_rules! functions {
    ($($name:ident)*) => { &[$($name::FUNCTION),*] };
}

mod axis_methods;
mod calls;
mod composed_methods;
mod constructs;
mod deciding;
mod elementwise_methods;
mod gradients;
mod hygiene;
mod layer_methods;
mod linear_algebra;
mod methods;
mod neighbours;
mod numbers;
mod parts;

use tinyspec::function::EmbeddedFunction;
use tinyspec::ir::text::print;
use tinyspec::prelude::*;
use tinyspec::with_default_device;

const HIDDEN: usize = 16;

#[function]
fn mlp<B, H>(x: &Tensor<f32, B, 64>, w1: &Tensor<f32, 64, H>, w2: &Tensor<f32, H, 10>) -> Tensor<f32, B, 10> {
    x.matmul(w1).relu().matmul(w2)
}

#[function]
fn outer<B>(x: &Tensor<f32, B, HIDDEN>, w: &Tensor<f32, HIDDEN, 4>) -> Tensor<f32, { B * 4 }> {
    let y = x.matmul(w) * 2.0 + 1;
    y.reshape([B * 4])
}

#[function]
fn twice<B>(
    x: &Tensor<f32, B, HIDDEN>,
    w: &Tensor<f32, HIDDEN, 4>,
    scale: f32,
) -> (Tensor<f32, { B * 4 }>, Tensor<f32>) {
    let y = outer(x, w);
    let z = outer(&(x * scale), w);
    let mut total = y.clone();
    for i in 0..3 {
        total += &z * i;
    }
    (total, y.mean(.., false))
}

#[function]
fn convolved<N>(
    x: &Tensor<f32, N, 3, 16, 16>,
    w: &Tensor<f32, 8, 3, 3, 3>,
    b: &Tensor<f32, 8>,
) -> Tensor<f32, N, 8, 4, 4> {
    let y = x.conv2d(w, Some(b), Conv2d { stride: [2, 2], padding: [1, 1], ..default() });
    y.relu().max_pool2d([2, 2], default())
}

/// The graph in the binary is what a trace of the same code over placeholders gives at run time, node for node.
fn same_graph(function: &EmbeddedFunction) {
    let name = function.name();
    let embedded = function.get().unwrap_or_else(|error| panic!("{name}: {error}"));
    let again = function.retrace().unwrap_or_else(|error| panic!("{name}: {error}"));
    let text = |function: &Function| print(function.body().graph(), function.body().outputs());
    if embedded.body().hash() != again.body().hash() {
        panic!("{name}: embedded\n{}\ntraced\n{}", text(embedded), text(&again));
    }
}

/// What holds on the CPU holds on the interpreter.
fn on_both(check: impl Fn() -> Result<()>) -> Result<()> {
    ["cpu", "interpreter", "simt"].into_iter().try_for_each(|device| with_default_device(device, &check))
}

#[test]
fn traces_are_the_same() {
    [mlp::FUNCTION, outer::FUNCTION, twice::FUNCTION, convolved::FUNCTION].into_iter().for_each(same_graph);
}

#[test]
fn runs() -> Result<()> {
    let (x, w) = (Tensor::ones([2, 16]), Tensor::ones([16, 4]));
    assert_eq!(outer(&x, &w).to_vec::<f32>()?, [33.0; 8]);
    let (total, mean) = twice(&x, &w, 0.5);
    assert_eq!(total.to_vec::<f32>()?, [33.0 + 17.0 * 3.0; 8]);
    assert_eq!(mean.item::<f32>()?, 33.0);
    Ok(())
}

#[test]
fn a_function_is_prepared() -> Result<()> {
    let (x, w) = (Tensor::ones([2, 16]), Tensor::ones([16, 4]));
    let run = outer.prepare(&[&x, &w])?;
    let mut out = run.outputs()?;
    run.call(&mut out, &[&x, &w])?;
    assert_eq!(out[0].to_vec::<f32>()?, [33.0; 8]);
    assert!(outer.prepare(&[&x]).is_err());
    Ok(())
}
