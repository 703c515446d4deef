//! Gradients of maxima whose terms are computed again: by another kernel, which may round sums in another way, after the
//! maximum was read, or on one of several devices.

use tinyspec::collectives::broadcast;
use tinyspec::prelude::*;
use tinyspec::{DType, grad, with_default_device};

type Terms = fn(&Tensor, &Tensor) -> Tensor;

/// Terms that hold sums: the shapes of what they are made of, whether both are cut along their first axis where there are
/// two devices, and the axis of the maxima.
const TERMS: [(&str, [usize; 2], [usize; 2], bool, i64, Terms); 5] = [
    ("a product", [4, 4], [4, 4], false, 1, |x, y| x.matmul(y).softsign()),
    ("sums beside data, along rows", [256, 1000], [256, 8], true, 1, |x, y| x.square().sum([1], true).sqrt().mul(y)),
    ("few long sums", [2, 5000], [2, 3], true, 1, |x, y| x.square().sum([1], true).sqrt().mul(y)),
    ("sums beside data, across the parts", [32, 8], [32, 1024], true, 0, |x, y| y.softmax(1).mul(x.sum([1], true))),
    ("a normalised product", [64, 16], [16, 24], false, 0, |x, y| x.matmul(y).layer_norm(1.0, 0.0, 1, 0.1)),
];

/// Without ties, for which rounding may decide.
fn data(shape: &[usize], dtype: DType) -> Tensor {
    let mut random = fastrand::Rng::with_seed(shape.iter().product::<usize>() as u64);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| random.f32() - 0.5).collect();
    Tensor::from_slice(&values, shape).cast(dtype)
}

fn gradient(terms: Terms, x: &Tensor, y: &Tensor, axis: i64, is_read: bool) -> Result<Tensor> {
    let greatest = terms(x, y).max([axis], true);
    if is_read {
        greatest.to_bytes()?;
    }
    Ok(grad(&(&greatest * &greatest).sum(.., false), &[x])?.remove(0))
}

#[test]
fn maxima_have_gradients_however_their_terms_are_rounded() -> Result<()> {
    for (name, left, right, are_both_cut, axis, terms) in TERMS {
        for dtype in [DType::F32, DType::F64] {
            let inputs = || (data(&left, dtype), data(&right, dtype));
            let want = with_default_device("interpreter", || {
                let (x, y) = inputs();
                gradient(terms, &x, &y, axis, false)?.cast(DType::F32).to_vec::<f32>()
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
                    let got = gradient(terms, &x, &y, axis, is_read)?.cast(DType::F32).to_vec::<f32>()?;
                    let is_near = |(got, want): (&f32, &f32)| (got - want).abs() <= 1e-4 * (1.0 + want.abs());
                    let wrong = got.iter().zip(&want).filter(|&pair| !is_near(pair)).count();
                    assert_eq!(wrong, 0, "{name}, {dtype} on {kind}, read: {is_read}, on two devices: {is_cut}");
                }
            }
        }
    }
    Ok(())
}
