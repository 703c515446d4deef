//! Gradients of maxima whose terms are computed again: by another kernel, which may round sums in another way, after the
//! maximum was read, or on one of several devices.

use tinyspec::collectives::broadcast;
use tinyspec::prelude::*;
use tinyspec::{DType, grad, with_default_device};

struct Case {
    name: &'static str,
    x: [usize; 2],
    y: [usize; 2],
    /// Of two devices each has a part of `y`, as of `x`; else each has all of it.
    are_both_cut: bool,
    axis: i64,
    terms: fn(&Tensor, &Tensor) -> Tensor,
}

/// Terms that hold sums.
const CASES: [Case; 5] = [
    Case {
        name: "a product",
        x: [4, 4],
        y: [4, 4],
        are_both_cut: false,
        axis: 1,
        terms: |x, y| x.matmul(y).softsign(),
    },
    Case {
        name: "sums beside data, along rows",
        x: [256, 1000],
        y: [256, 8],
        are_both_cut: true,
        axis: 1,
        terms: |x, y| x.square().sum([1], true).sqrt().mul(y),
    },
    Case {
        name: "few long sums",
        x: [2, 5000],
        y: [2, 3],
        are_both_cut: true,
        axis: 1,
        terms: |x, y| x.square().sum([1], true).sqrt().mul(y),
    },
    Case {
        name: "sums beside data, across the parts",
        x: [32, 8],
        y: [32, 1024],
        are_both_cut: true,
        axis: 0,
        terms: |x, y| y.softmax(1).mul(x.sum([1], true)),
    },
    Case {
        name: "a normalised product",
        x: [64, 16],
        y: [16, 24],
        are_both_cut: false,
        axis: 0,
        terms: |x, y| x.matmul(y).layer_norm(1.0, 0.0, 1, 0.1),
    },
];

/// Without ties, for which rounding may decide.
fn data(shape: &[usize], dtype: DType) -> Tensor {
    let mut random = fastrand::Rng::with_seed(shape.iter().product::<usize>() as u64);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| random.f32() - 0.5).collect();
    Tensor::from_slice(&values, shape).cast(dtype)
}

fn gradient(case: &Case, x: &Tensor, y: &Tensor, is_read: bool) -> Result<Tensor> {
    let greatest = (case.terms)(x, y).max([case.axis], true);
    if is_read {
        greatest.to_bytes()?;
    }
    Ok(grad(&(&greatest * &greatest).sum(.., false), &[x])?.remove(0))
}

#[test]
fn maxima_have_gradients_however_their_terms_are_rounded() -> Result<()> {
    let _alone = crate::alone();
    for case in CASES {
        let Case { name, x, y, are_both_cut, .. } = case;
        for dtype in [DType::F32, DType::F64] {
            let inputs = || (data(&x, dtype), data(&y, dtype));
            let want = with_default_device("interpreter", || {
                let (x, y) = inputs();
                gradient(&case, &x, &y, false)?.cast(DType::F32).to_vec::<f32>()
            })?;
            for kind in ["interpreter", "cpu"] {
                let places = [format!("{kind}:0"), format!("{kind}:1")];
                for (is_read, is_cut) in [(false, false), (true, false), (false, true), (true, true)] {
                    let (x, y) = with_default_device(kind, || Ok::<_, tinyspec::Error>(inputs()))?;
                    let (x, y) = match is_cut {
                        true if are_both_cut => (x.to(&places), y.to(&places)),
                        true => (x.to(&places), broadcast(&y, &places)),
                        false => (x, y),
                    };
                    let got = gradient(&case, &x, &y, is_read)?.cast(DType::F32).to_vec::<f32>()?;
                    let is_near = |(got, want): (&f32, &f32)| (got - want).abs() <= 1e-4 * (1.0 + want.abs());
                    let wrong = got.iter().zip(&want).filter(|&pair| !is_near(pair)).count();
                    assert_eq!(wrong, 0, "{name}, {dtype} on {kind}, read: {is_read}, on two devices: {is_cut}");
                }
            }
        }
    }
    Ok(())
}

/// The loss takes the maximum from memory, the gradient recomputes an equal one.
#[test]
fn a_maximum_that_was_read_meets_its_gradient_in_one_run() -> Result<()> {
    let _alone = crate::alone();
    for kind in ["interpreter", "cpu"] {
        with_default_device(kind, || -> Result<()> {
            for shape in [[5, 22], [4, 38], [5, 62], [4, 68], [8, 12], [7, 28], [2, 60]] {
                let x = data(&shape, DType::F64);
                let greatest = x.flip([0]).cumsum(1).max([0, 1], true);
                greatest.to_bytes()?;
                let loss = (&greatest * &greatest).sum(.., false);
                let gradient = grad(&loss, &[&x])?.remove(0);
                tinyspec::realize_all(&[&loss, &gradient])?;
                // All terms of the sum that is the greatest have the same slope.
                let slope = 2.0 * loss.item::<f64>()?.sqrt();
                let nonzero = gradient.to_vec::<f64>()?.into_iter().filter(|slope| *slope != 0.0);
                let nonzero: Vec<f64> = nonzero.collect();
                assert!(!nonzero.is_empty(), "{shape:?} on {kind}");
                let is_near = |found: &&f64| (found.abs() - slope).abs() <= 1e-9 * slope;
                assert_eq!(nonzero.iter().filter(is_near).count(), nonzero.len(), "{shape:?} on {kind}");
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// The terms hold a sum that several kernels of one program could compute for themselves.
#[test]
fn second_order_gradients_of_maxima_find_the_greatest_term() -> Result<()> {
    let _alone = crate::alone();
    let data = |number: usize, seed: usize| -> Vec<f64> {
        (0..36).map(|place| ((place * 37 + number * 101 + seed * 1009) as f64 * 1.2345).sin()).collect()
    };
    for seed in 0..8 {
        let (x, y) = (Tensor::from_vec(data(0, seed), [6, 6]), Tensor::from_vec(data(1, seed), [6, 6]));
        let slope = |is_read: bool| -> Result<Vec<f64>> {
            let product = x.matmul(&y);
            let mean = (&product * &y).mean(.., false);
            if is_read {
                mean.realize()?;
            }
            let loss =
                (&product / &mean).max(1, true).square().mean(.., false) + (&product * 0.7).tanh().mean(.., false);
            let gradient = grad(&loss, &[&x])?.remove(0);
            grad(&(gradient * 0.1).tanh().square().mean(.., false), &[&x])?[0].to_vec()
        };
        let (unread, read) = (slope(false)?, slope(true)?);
        let greatest = read.iter().fold(0.0f64, |greatest, slope| greatest.max(slope.abs()));
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-6 * greatest;
        assert!(unread.iter().zip(&read).all(is_near), "{seed}: {unread:?} instead of {read:?}");
    }
    Ok(())
}

/// The same where the program compares: each row has its least and its greatest element, and none beyond.
#[test]
fn comparisons_with_maxima_and_minima_find_these() -> Result<()> {
    type Comparison = (&'static str, f64, fn(&Tensor) -> Tensor);
    let comparisons: [Comparison; 6] = [
        ("equal to the greatest", 1.0, |y| y.eq(y.max(1, true))),
        ("equal to the least", 1.0, |y| y.eq(y.min(1, true))),
        ("at no distance from the greatest", 1.0, |y| (y - y.max(1, true)).eq(0.0)),
        ("not less than the greatest", 1.0, |y| y.ge(y.max(1, true))),
        ("greater than the greatest", 0.0, |y| y.gt(y.max(1, true))),
        ("less than the least", 0.0, |y| y.lt(y.min(1, true))),
    ];
    let _alone = crate::alone();
    for (size, dtype) in [(6, DType::F64), (10, DType::F64), (16, DType::F32), (33, DType::F32)] {
        for seed in 0..6 {
            let data = |number: usize| {
                let value = |place: usize| ((place * 37 + number * 101 + seed * 1009) as f64 * 1.2345).sin();
                Tensor::from_vec((0..size * size).map(value).collect::<Vec<f64>>(), [size, size])
                    .cast(dtype)
                    .realize()
                    .cloned()
            };
            let (t, u) = (data(0)?, data(1)?);
            for (name, expected, compare) in comparisons {
                let y = &t / (&t * &u).mean(.., false);
                let found = compare(&y).cast(DType::F64).sum(1, false).to_vec::<f64>()?;
                assert_eq!(found, vec![expected; size], "{name}, {size}, {dtype:?}, {seed}");
            }
        }
    }
    Ok(())
}
