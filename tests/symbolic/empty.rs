//! Dims of 0: a call gives what the run time makes of the body.

use tinyspec::prelude::*;
use tinyspec::{ErrorKind, function::Prepare};

#[function(grad)]
fn dense<N, O>(x: &Tensor<f32, N, 3>, w: &Tensor<f32, 3, O>) -> Tensor<f32> {
    x.matmul(w).relu().sum(.., false)
}

#[function]
fn several<N>(x: &Tensor<f32, N, 4>, bias: f32) -> (Tensor<f32, N, 4>, Tensor<f32, 4>, Tensor<f32, N>, Tensor<i64>) {
    let shifted = x.softmax(0) + bias;
    (shifted.clone(), shifted.sum(0, false), x.cumsum(1).sum(1, false), Tensor::arange(N + 2).sum(0, false))
}

#[function]
fn calls<N>(x: &Tensor<f32, N, 4>) -> Tensor<f32, 4> {
    let (_, sums, _, _) = several(x, 1.0);
    sums + x.cumsum(0).sum(0, false)
}

#[function]
fn greatest<N>(x: &Tensor<f32, N, 4>) -> Tensor<f32, 4> {
    x.max(0, false)
}

#[function]
fn first<N>(x: &Tensor<f32, N, 4>) -> Tensor<f32, 4> {
    x.at(0) * 2.0
}

#[function]
fn joined<N, M>(x: &Tensor<f32, N>, y: &Tensor<f32, M>) -> Tensor<f32, { N + M }> {
    Tensor::cat(&[x, y], 0)
}

#[function(bounds(T: 0..=8))]
fn attend<T>(q: &Tensor<f32, 1, 4>, keys: &Tensor<f32, T, 4>) -> Tensor<f32, 1, 4> {
    q.matmul(keys.transpose(0, 1)).softmax(-1).matmul(keys) + q
}

#[function(bounds(T: 1..=8))]
fn not_empty<T>(x: &Tensor<f32, T>) -> Tensor<f32, T> {
    x * 2.0
}

#[function]
fn doubled<N>(x: &Tensor<f32, N>, slope: &Tensor<f32, N>) -> Tensor<f32, N> {
    x * slope * 2.0
}

#[function(gradient = doubled)]
fn own<N>(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    x * 3.0
}

fn none(shape: [i64; 2]) -> Tensor {
    Tensor::zeros(shape)
}

#[test]
fn nothing_has_a_sum_of_0() -> Result<()> {
    let _alone = crate::alone();
    let w = Tensor::ones([3, 5]);
    assert_eq!(dense(&none([0, 3]), &w).item::<f32>()?, 0.0);
    assert_eq!(dense(&Tensor::ones([2, 3]), &none([3, 0])).item::<f32>()?, 0.0);
    let (shifted, sums, rows, count) = several(&none([0, 4]), 0.5);
    assert_eq!((shifted.sizes()?, rows.sizes()?), (vec![0, 4], vec![0]));
    assert!(shifted.to_vec::<f32>()?.is_empty() && rows.to_vec::<f32>()?.is_empty());
    assert_eq!((sums.to_vec::<f32>()?, count.item::<i64>()?), (vec![0.0; 4], 1));
    assert_eq!(calls(&none([0, 4])).to_vec::<f32>()?, [0.0; 4]);
    let y = Tensor::from_slice(&[1f32, 2.0], [2]);
    assert_eq!(joined(&Tensor::zeros([0]), &y).to_vec::<f32>()?, [1.0, 2.0]);
    // The same call with elements is the embedded one.
    assert_eq!(calls(&Tensor::ones([2, 4])).to_vec::<f32>()?, [6.0; 4]);
    Ok(())
}

#[test]
fn gradients_of_nothing_are_zeros() -> Result<()> {
    let _alone = crate::alone();
    let (x, w) = (none([0, 3]), Tensor::ones([3, 5]));
    let [dx, dw] = dense::grad(&x, &w);
    assert_eq!((dx.sizes()?, dx.to_vec::<f32>()?.len()), (vec![0, 3], 0));
    assert_eq!(dw.to_vec::<f32>()?, [0.0; 15]);
    let loss = dense(&x, &w) + (&w * 2.0).sum(.., false);
    assert_eq!(grad(&loss, &[&w])?[0].to_vec::<f32>()?, [2.0; 15]);
    Ok(())
}

#[test]
fn what_nothing_has_is_as_at_run_time() -> Result<()> {
    let _alone = crate::alone();
    let x = none([0, 4]);
    assert_eq!(greatest(&x).to_vec::<f32>()?, x.max(0, false).to_vec::<f32>()?);
    let error = first(&x).to_vec::<f32>().expect_err("no first row");
    let plain = x.at(0).to_vec::<f32>().expect_err("no first row");
    assert_eq!(error.kind(), plain.kind());
    let message = |error: &tinyspec::Error| error.to_string().lines().next().unwrap_or_default().to_string();
    assert_eq!(message(&error), message(&plain));
    assert!(error.location().is_some_and(|location| location.file.ends_with("empty.rs")), "{error}");
    Ok(())
}

#[test]
fn a_cache_may_begin_empty() -> Result<()> {
    let _alone = crate::alone();
    let (q, cache) = (Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [1, 4]), Tensor::ones([8, 4]));
    for length in 0..=8i64 {
        let found = attend(&q, &cache.at(..length)).to_vec::<f32>()?;
        let seen = if length == 0 { 0.0 } else { 1.0 };
        assert!(found.iter().zip(1..).all(|(value, want)| (value - want as f32 - seen).abs() < 1e-6), "{found:?}");
    }
    let run = attend::FUNCTION.prepare(&[&q, &none([0, 4])])?;
    let mut out = run.outputs()?;
    run.call(&mut out, &[&q, &none([0, 4])])?;
    assert_eq!(out[0].to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    let run = calls.prepare(&[&none([0, 4])])?;
    let mut out = run.outputs()?;
    run.call(&mut out, &[&none([0, 4])])?;
    assert_eq!(out[0].to_vec::<f32>()?, [0.0; 4]);
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused_all_the_same() -> Result<()> {
    let _alone = crate::alone();
    let refused = |result: Tensor, part: &str| {
        let error = result.to_vec::<f32>().expect_err("does not fit");
        assert_eq!(error.kind(), Some(ErrorKind::Shape));
        assert!(error.to_string().contains(part), "`{part}` is not in: {error}");
    };
    refused(not_empty(&Tensor::zeros([0])), "dim `T` goes from 1 to 8");
    refused(attend(&Tensor::ones([1, 4]), &none([0, 5])), "axis 1 of `keys` must be 4, here it is 5");
    refused(doubled(&Tensor::zeros([0]), &Tensor::ones([2])), "dim `N` is 0 from `x`, but axis 0 of `slope` is 2");
    // The user's gradient is of sizes from 1 on.
    refused(own(&Tensor::zeros([0])), "axis 0 of `x` is 0, and what is traced for dim `N` takes no 0");
    let failed = Tensor::ones([2]).matmul(Tensor::ones([3]));
    let error = doubled(&Tensor::zeros([0]), &failed).to_vec::<f32>().expect_err("an argument failed");
    assert!(error.to_string().starts_with("matmul"), "{error}");
    assert_eq!(own(&Tensor::ones([2])).to_vec::<f32>()?, [3.0; 2]);
    Ok(())
}
