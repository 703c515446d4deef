//! Sums, products and maxima of what came so far, however they are written, and their gradients.

use super::{is_linear, prefix_sum, products, ramp, same, windows};
use crate::support::on_each_shape;
use tinyspec_core::{Error, Tensor, grad};
use tinyspec_ir::DType;

/// However a running sum is written.
#[test]
fn every_running_sum_takes_a_step_an_element() -> Result<(), Error> {
    on_each_shape(|| {
        let n = 4000i64;
        let x = ramp(n).cast(DType::F32).contiguous();
        x.realize()?;
        let (row, column) = (ramp(n).reshape([1, n]), ramp(n).reshape([n, 1]));
        let sums = [
            prefix_sum(&x),
            x.cumsum(0),
            Tensor::ones([n]).cumsum(0) + &x,
            (Tensor::ones([n, n]).tril(0) * x.reshape([1, n])).sum(1, false),
            Tensor::ones([n, n]).tril(0).matmul(&x),
            x.matmul(Tensor::ones([n, n]).triu(0)),
            (column.ge(&row).cast(DType::F32) * x.reshape([1, n])).sum(1, false),
            (column.cast(DType::F32).ge(row.cast(DType::F32)).cast(DType::F32) * x.reshape([1, n])).sum(1, false),
            (row.cast(DType::F32).le(column.cast(DType::F32)).cast(DType::F32) * x.reshape([1, n])).sum(1, false),
            ((1.0 - column.lt(&row).cast(DType::F32)) * x.reshape([1, n])).sum(1, false),
            column.ge(&row).where_(x.reshape([1, n]), 0.0).sum(1, false),
        ];
        for (number, sum) in sums.iter().enumerate() {
            is_linear(&[sum], n, &format!("running sum {number}"))?;
            let slopes = grad(&sum.square().sum(.., false), &[&x])?;
            is_linear(&[&slopes[0]], n, &format!("gradient of running sum {number}"))?;
        }
        Ok(())
    })
}

/// Also along the long axis of a table of few columns: a loop over the rows carries nothing if it is shared among threads, or if
/// another loop is nested in it.
#[test]
fn running_sums_of_tall_tables_take_some_steps_an_element() -> Result<(), Error> {
    on_each_shape(|| {
        for columns in [1i64, 2, 3, 5] {
            let n = 30_000;
            let x = ramp(n * columns).cast(DType::F32).reshape([n, columns]).contiguous();
            x.realize()?;
            is_linear(&[&x.cumsum(0)], n * columns, &format!("running sum of {columns} columns"))?;
            is_linear(&[&x.cummax(0)], n * columns, &format!("running maximum of {columns} columns"))?;
        }
        Ok(())
    })
}

/// Each element is in the sums from its own on, and so it is if the windows between are asked for.
#[test]
fn gradients_of_prefix_sums_add_what_follows() -> Result<(), Error> {
    for n in [1i64, 2, 5, 40] {
        let x = Tensor::from_vec((0..n).map(|k| k as f32 - 3.0).collect(), [n]);
        let weights: Vec<f32> = (0..n).map(|k| (k % 7) as f32 - 2.0).collect();
        let follow = |k: usize| weights[k..].iter().sum::<f32>();
        let expected: Vec<f32> = (0..n as usize).map(follow).collect();
        let weights = Tensor::from_slice(&weights, [n]);
        let windows = windows(&x);
        let loss = (windows.sum(1, false) * &weights).sum(.., false);
        assert_eq!(grad(&loss, &[&x])?[0].to_vec::<f32>()?, expected, "{n}");
        let both = grad(&loss, &[&x, &windows])?;
        assert_eq!(both[0].to_vec::<f32>()?, expected, "{n}");
        let rows = weights.reshape([n, 1]).expand([n, n]).to_vec::<f32>()?;
        assert_eq!(both[1].to_vec::<f32>()?, rows, "{n}");
    }
    Ok(())
}

/// Running products and maxima that are moved on before they are used, as gradients do, are carried all the same.
#[test]
fn slopes_of_running_reduces_take_some_steps_an_element() -> Result<(), Error> {
    on_each_shape(|| {
        let n = 4000i64;
        let x = (ramp(n).cast(DType::F32) * 1e-3 + 0.1).sin().contiguous();
        x.realize()?;
        let reduces = [
            ("prod", x.prod(.., false)),
            ("cumprod", x.cumprod(0)),
            ("cummax", x.cummax(0)),
            ("cummin", x.cummin(0)),
            ("logcumsumexp", x.logcumsumexp(0)),
        ];
        for (name, reduced) in reduces {
            let slopes = grad(&reduced.square().sum(.., false), &[&x])?;
            is_linear(&[&slopes[0]], 4 * n, &format!("gradient of {name}"))?;
            let again = grad(&slopes[0].square().sum(.., false), &[&x])?;
            is_linear(&[&again[0]], 16 * n, &format!("second gradient of {name}"))?;
        }
        let moved = x.cumprod(0).narrow(0, 0, n - 1).pad([1], [n], 1.0) * x.flip([0]).cumprod(0).flip([0]);
        is_linear(&[&moved], n, "products of those before and after")
    })
}

/// An infinity or a nan among what a running sum leaves out is one times 0.
#[test]
fn running_sums_by_masks_are_those_of_products() -> Result<(), Error> {
    let n = 50usize;
    for (place, special) in [(0, f32::NAN), (20, f32::INFINITY), (49, f32::NEG_INFINITY), (49, 1.0)] {
        let mut numbers: Vec<f32> = (0..n).map(|k| (k % 5) as f32 - 2.0).collect();
        numbers[place] = special;
        let x = Tensor::from_slice(&numbers, [n]);
        let found = Tensor::ones([n, n]).tril(0).matmul(&x).to_vec::<f32>()?;
        let expected: Vec<f32> = (0..n).map(|row| products((0..n).map(|k| k <= row), &numbers)).collect();
        assert!(same(&found, &expected), "{special} at {place}: {found:?} instead of {expected:?}");
    }
    Ok(())
}
