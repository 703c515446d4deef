//! A call into a BLAS: the crate `matrixmultiply` computes one product of a program whose other ops tinyspec compiles.
//!
//! `cargo run --release --example blas` compares it with tinyspec's own product.

use std::time::Instant;
use tinyspec::prelude::*;
use tinyspec::{CustomFunction, register_function};

/// Declared in Rust, so that rustc checks its callers; the code is registered in `main`.
#[function(custom = "blas::sgemm", gradient = sgemm_gradient)]
fn sgemm<M, K, N>(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N>;

#[function]
fn sgemm_gradient<M, K, N>(
    a: &Tensor<f32, M, K>,
    b: &Tensor<f32, K, N>,
    dc: &Tensor<f32, M, N>,
) -> (Tensor<f32, M, K>, Tensor<f32, K, N>) {
    (dc.matmul(b.transpose(0, 1)), a.transpose(0, 1).matmul(dc))
}

#[function(grad)]
fn loss<M, K, N>(x: &Tensor<f32, M, K>, w: &Tensor<f32, K, N>) -> Tensor<f32> {
    sgemm(&(x * 2.0), w).relu().mean(.., false)
}

#[function]
fn own<M, K, N>(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
    a.matmul(b)
}

fn library() -> CustomFunction {
    CustomFunction::new("blas::sgemm", |arguments, _| match (&arguments[0].shape[..], &arguments[1].shape[..]) {
        ([m, k], [l, n]) if k == l => Ok(vec![Spec::new(DType::F32, [m.clone(), n.clone()])]),
        _ => Err("inner dimensions differ".into()),
    })
    .host(|mut call| {
        let (&[m, k], &[_, n]) = (call.inputs[0].shape(), call.inputs[1].shape()) else {
            return Err("takes two matrices".into());
        };
        let (a, b) = (call.inputs[0].as_slice::<f32>()?, call.inputs[1].as_slice::<f32>()?);
        let c = call.outputs[0].as_mut_slice::<f32>()?;
        let (k_stride, n_stride) = (k as isize, n as isize);
        // SAFETY: the matrices are row-major, of m × k, k × n and m × n elements.
        unsafe {
            let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
            matrixmultiply::sgemm(m, k, n, 1.0, a, k_stride, 1, b, n_stride, 1, 0.0, c, n_stride, 1);
        }
        Ok(())
    })
}

fn main() -> Result<()> {
    register_function(library())?;
    let (x, w) = (Tensor::randn([64, 128]), Tensor::randn([128, 32]));
    let [_, dw] = loss::grad(&x, &w);
    println!("the loss is {:.3}, its gradient {:?}", loss(&x, &w).item::<f32>()?, dw.sizes()?);

    let (a, b) = (Tensor::randn([512, 512]), Tensor::randn([512, 512]));
    let difference = (sgemm(&a, &b) - own(&a, &b)).abs().max(.., false).item::<f32>()?;
    println!("512 × 512 × 512: the products differ by {difference:.1e} at most");
    for (name, run) in [("matrixmultiply", sgemm.prepare(&[&a, &b])?), ("tinyspec", own.prepare(&[&a, &b])?)] {
        let mut out = run.outputs()?;
        run.call(&mut out, &[&a, &b])?;
        let start = Instant::now();
        for _ in 0..20 {
            run.call(&mut out, &[&a, &b])?;
        }
        println!("{name:>15}: {:?}", start.elapsed() / 20);
    }
    Ok(())
}
