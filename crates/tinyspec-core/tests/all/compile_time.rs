//! Compile time grows with the size of the program, not faster.

use std::time::{Duration, Instant};
use tinyspec_core::{Error, Tensor};
use tinyspec_ir::DType;

fn time(program: impl Fn() -> Tensor) -> Result<(f64, Vec<f32>), Error> {
    let start = Instant::now();
    let values = program().to_vec::<f32>()?;
    Ok((start.elapsed().max(Duration::from_millis(20)).as_secs_f64(), values))
}

/// Constants that no other run has: what the caches on disk know must not help.
fn fresh() -> f64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    f64::from(now.subsec_nanos()) * 1e-9
}

#[test]
fn chains_compile_in_linear_time() -> Result<(), Error> {
    let x = Tensor::from_slice(&(0..300).map(|i| i as f32 * 0.01).collect::<Vec<_>>(), [300]);
    type Step = fn(Tensor, f64) -> Tensor;
    let steps: [(&str, Step); 4] = [
        ("sin", |a, i| (a * 0.999 + i).sin()),
        ("pow", |a, i| (a.abs() * 0.1 + (i + 2.0)).pow_const(0.3)),
        ("exp2", |a, i| (a * -0.5 - i).exp2()),
        ("idiv", |a, i| (a.cast(DType::I32) * 7).idiv(3, "floor").cast(DType::F32) + i),
    ];
    for (name, step) in steps {
        let chain = |length: usize| {
            let seed = fresh();
            time(|| (0..length).fold(x.clone(), |a, i| step(a, i as f64 * 0.01 + seed))).map(|(time, _)| time)
        };
        let mut ratios = Vec::new();
        // Other work on the machine may disturb one measurement.
        while ratios.len() < 3 && ratios.iter().all(|&ratio| ratio > 15.0) {
            let short = chain(60)?;
            ratios.push(chain(300)? / short);
        }
        assert!(
            ratios.iter().any(|&ratio| ratio <= 15.0),
            "{name}: five times as long takes {ratios:?} times the time"
        );
    }
    Ok(())
}

/// One kernel gets as many inputs.
#[test]
fn writing_many_tensors_into_one_compiles_in_linear_time() -> Result<(), Error> {
    let written = |count: usize| {
        let seed = fresh();
        let rows: Vec<Tensor> = (0..count).map(|i| Tensor::from_slice(&[i as f32; 8], [8])).collect();
        time(|| {
            let mut x = Tensor::zeros([count, 8]);
            rows.iter().enumerate().for_each(|(i, row)| x.set(i, row + seed));
            x
        })
        .map(|(time, _)| time)
    };
    let mut ratios = Vec::new();
    while ratios.len() < 3 && ratios.iter().all(|&ratio| ratio > 12.0) {
        let short = written(200)?;
        ratios.push(written(1200)? / short);
    }
    assert!(ratios.iter().any(|&ratio| ratio <= 12.0), "six times as many take {ratios:?} times the time");
    Ok(())
}

#[test]
fn a_chain_that_is_cut_keeps_its_values() -> Result<(), Error> {
    let x: Vec<f32> = (0..40).map(|i| i as f32 * 0.1).collect();
    let found = (0..60).fold(Tensor::from_slice(&x, [40]), |a, i| (a * 0.9 + i as f64).sin()).to_vec::<f32>()?;
    for (&x, found) in x.iter().zip(found) {
        let expected = (0..60).fold(f64::from(x), |a, i| (a * 0.9 + f64::from(i)).sin());
        assert!((f64::from(found) - expected).abs() < 1e-4, "{found} instead of {expected}");
    }
    Ok(())
}
