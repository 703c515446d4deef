//! Sums and maxima over what every row of one operand has with every row of another: distances, tropical products, additive
//! attention.

use crate::support::{SHAPES, on_each_shape};
use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Tensor, grad};
use tinyspec_ir::DType;

/// Small integers, so that sums are exact in any order.
fn numbers(shape: &[i64], seed: i64) -> Tensor {
    let count: i64 = shape.iter().product();
    let data: Vec<f32> = (0..count).map(|i| ((i * 7 + i / 5 + seed) % 7) as f32 - 3.0).collect();
    Tensor::from_vec(data, shape.to_vec())
}

/// What is made of a term of each of two rows, and of all of them.
type Pairs = (&'static str, fn(Tensor, Tensor) -> Tensor);

const PAIRS: [Pairs; 7] = [
    ("squares", |a, b| (a - b).square().sum(2, false)),
    ("magnitudes", |a, b| (a - b).abs().sum(2, false)),
    ("greatest sum", |a, b| (a + b).max(2, false)),
    ("least sum", |a, b| (a + b).min(2, false)),
    ("rectified", |a, b| ((&a + b).relu() * (a * 0.0 + 2.0)).sum(2, false)),
    ("equal", |a, b| a.eq(b).cast(DType::I32).sum(2, false).cast(DType::F32)),
    ("in halves", |a, b| (a.cast(DType::F16) - b.cast(DType::F16)).square().sum(2, false).cast(DType::F32)),
];

/// Sizes that divide into tiles and sizes that leave rests of rows, of columns and of terms.
const SIZES: [[i64; 3]; 5] = [[64, 96, 32], [37, 67, 29], [9, 130, 7], [130, 5, 33], [16, 16, 130]];

#[test]
fn sums_and_maxima_of_every_pair_of_rows() -> Result<(), Error> {
    for (name, of) in PAIRS {
        for [rows, columns, terms] in SIZES {
            let value = || of(numbers(&[rows, 1, terms], 1), numbers(&[1, columns, terms], 4));
            let turned =
                || of(numbers(&[rows, 1, terms], 1), numbers(&[terms, columns], 4).permute([1, 0]).unsqueeze(0));
            for (turns, value) in [(false, &value as &dyn Fn() -> Tensor), (true, &turned)] {
                let expected = with_default_device::<_, Error>("interpreter", || value().to_vec::<f32>())?;
                for device in SHAPES.into_iter().chain(["cpu"]) {
                    let found = with_default_device::<_, Error>(device, || value().to_vec::<f32>())?;
                    assert_eq!(found, expected, "{name} of {rows} × {columns} × {terms}, {turns}, on {device}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn gradients_of_distances() -> Result<(), Error> {
    let gradients = |power: f64| {
        let (x, y) = (numbers(&[3, 21, 18], 1), numbers(&[3, 35, 18], 4));
        let loss = x.cdist(&y, power).square().sum(.., false);
        grad(&loss, &[&x, &y])?.iter().map(Tensor::to_vec::<f32>).collect::<Result<Vec<_>, Error>>()
    };
    for power in [1.0, 2.0] {
        let expected = with_default_device::<_, Error>("interpreter", || gradients(power))?;
        on_each_shape(|| {
            for (found, expected) in gradients(power)?.iter().zip(&expected) {
                let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-4 * b.abs().max(1.0);
                assert!(found.iter().zip(expected).all(near), "{power}");
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn magnitudes_keep_infinities_and_nans_and_lose_signs() -> Result<(), Error> {
    let values = [0.0, -0.0, 1.5, -1.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -f32::NAN, 1e-40, -1e-40];
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        let magnitudes = || {
            Tensor::from_slice(&values, [values.len()]).cast(dtype).realize()?.abs().cast(DType::F32).to_vec::<f32>()
        };
        let expected = with_default_device::<_, Error>("interpreter", magnitudes)?;
        for shape in SHAPES {
            let found = with_default_device::<_, Error>(shape, magnitudes)?;
            for (found, expected) in found.iter().zip(&expected) {
                let is_same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
                assert!(is_same && (found.is_nan() || found.is_sign_positive()), "{dtype:?} {shape}: {found}");
            }
        }
    }
    Ok(())
}
