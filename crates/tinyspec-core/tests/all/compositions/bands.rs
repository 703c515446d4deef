//! Masks of neighbours: some steps an element, however near is written.

use super::{SPECIAL, is_linear, ramp, same, steps};
use crate::support::{SHAPES, on_each_shape};
use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Tensor, grad};
use tinyspec_ir::DType;

/// A mask of rows i and columns j, which it compares, and whether they are near.
type Near = (&'static str, fn(&Tensor, &Tensor) -> Tensor, fn(i64, i64) -> bool);

const NEAR: [Near; 11] = [
    ("a distance of at most 1", |i, j| (i - j).abs().le(1), |i, j| (i - j).abs() <= 1),
    ("a distance below 3", |i, j| (i - j).abs().lt(3), |i, j| (i - j).abs() < 3),
    ("turned", |i, j| (j - i).abs().le(2), |i, j| (i - j).abs() <= 2),
    ("neighbours", |i, j| (i - j).abs().eq(1), |i, j| (i - j).abs() == 1),
    ("neighbours, two apart", |i, j| (i - j).eq(2) | (j - i).eq(2), |i, j| (i - j).abs() == 2),
    ("the last three", |i, j| j.le(i) & j.gt(i - 3), |i, j| j <= i && j > i - 3),
    ("the next two", |i, j| (j - i).ge(0) & (j - i).lt(2), |i, j| (0..2).contains(&(j - i))),
    ("of i64", |i, j| (i.cast(DType::I64) - j).abs().le(1), |i, j| (i - j).abs() <= 1),
    ("moved", |i, j| (i + 5 - j).abs().le(1), |i, j| (i + 5 - j).abs() <= 1),
    ("two masks", |i, j| i.sub(j).lt(2) & j.sub(i).lt(2), |i, j| (i - j).abs() < 2),
    ("far no more", |i, j| (i - j).abs().gt(1).not(), |i, j| (i - j).abs() <= 1),
];

fn mask(n: i64, near: fn(&Tensor, &Tensor) -> Tensor) -> Tensor {
    near(&ramp(n).reshape([n, 1]), &ramp(n).reshape([1, n]))
}

/// Sums, products, maxima and their gradients.
#[test]
fn every_mask_of_neighbours_takes_some_steps_an_element() -> Result<(), Error> {
    on_each_shape(|| {
        let n = 4000i64;
        let (x, rows) =
            (ramp(n).cast(DType::F32).contiguous(), ramp(n * 4).cast(DType::F32).reshape([n, 4]).contiguous());
        let whole = ramp(n).contiguous();
        for data in [&x, &rows, &whole] {
            data.realize()?;
        }
        for (name, near, _) in NEAR {
            let mask = || mask(n, near);
            let results = [
                mask().where_(x.reshape([1, n]), 0.0).sum(1, false),
                (mask().cast(DType::F32) * x.reshape([1, n])).sum(1, false),
                mask().cast(DType::F32).matmul(&x),
                mask().cast(DType::F32).matmul(&rows),
                mask().cast(DType::I32).matmul(&whole),
                mask().where_(x.reshape([1, n]), f32::NEG_INFINITY).max(1, false),
                mask().cast(DType::F32).sum(1, false),
            ];
            // A product with a float is a sum of what is chosen where comparisons of positions say so.
            let is_compared = ["the last three", "the next two", "two masks"].contains(&name);
            let is_product = |number: usize| (1..4).contains(&number);
            for (number, result) in results.iter().enumerate().filter(|(number, _)| is_compared || !is_product(*number))
            {
                is_linear(&[result], 8 * n, &format!("{name}, {number}"))?;
            }
            let slopes = [(0, &x), (2, &x), (3, &rows)];
            for (number, data) in slopes.into_iter().filter(|(number, _)| is_compared || !is_product(*number)) {
                let slopes = grad(&results[number].square().sum(.., false), &[data])?;
                is_linear(&[&slopes[0]], 8 * n, &format!("gradient of {name}, {number}"))?;
            }
        }
        Ok(())
    })
}

/// Rows shorter than a vector of 16 lanes are no reason to compute one element at a time.
#[test]
fn wider_vectors_take_no_more_steps() -> Result<(), Error> {
    let n = 400i64;
    for width in [2i64, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 20] {
        let counts = SHAPES.map(|device| {
            with_default_device::<_, Error>(device, || {
                let rows = ramp(n * width).cast(DType::F32).reshape([n, width]).contiguous();
                let long = ramp(n * 32).cast(DType::F32).reshape([n, 32]).contiguous();
                let short = ramp(32 * width).cast(DType::F32).reshape([32, width]).contiguous();
                for data in [&rows, &long, &short] {
                    data.realize()?;
                }
                let near = mask(n, |i, j| j.le(i) & j.gt(i - 3)).cast(DType::F32).matmul(&rows);
                let results = [
                    rows.sum(0, false),
                    rows.max(0, false),
                    rows.square().sum(1, false),
                    &rows - rows.mean(0, true),
                    rows.softmax(1),
                    grad(&near.square().sum(.., false), &[&rows])?[0].clone(),
                    near,
                    long.matmul(&short),
                    long.transpose(0, 1).matmul(&rows),
                    rows.transpose(0, 1).matmul(&rows),
                ];
                results.iter().map(|result| steps(&[result])).collect::<Result<Vec<i64>, Error>>()
            })
        });
        let [v3, v4, _] = counts;
        for (number, (v3, v4)) in v3?.into_iter().zip(v4?).enumerate() {
            assert!(2 * v4 <= 3 * v3, "{number} of rows of {width}: {v4} steps with 16 lanes, {v3} with 8");
        }
    }
    Ok(())
}

/// At both ends there are fewer neighbours; what is not finite is seen by all that multiply it.
#[test]
fn sums_of_neighbours_are_those_of_their_terms() -> Result<(), Error> {
    for n in [1i64, 2, 7, 40] {
        for device in ["cpu", "interpreter"] {
            for special in SPECIAL {
                let mut numbers: Vec<f32> = (0..n).map(|k| (k * 3 % 7) as f32 - 3.0).collect();
                numbers[n as usize / 2] = special;
                for (name, near, is_near) in NEAR {
                    let (chosen, product, greatest) = with_default_device::<_, Error>(device, || {
                        let x = Tensor::from_slice(&numbers, [n]);
                        let mask = mask(n, near);
                        let chosen = mask.where_(x.reshape([1, n]), 0.0).sum(1, false);
                        let greatest = mask.where_(x.reshape([1, n]), -9.0).max(1, false);
                        let product = mask.cast(DType::F32).matmul(&x);
                        Ok((chosen.to_vec::<f32>()?, product.to_vec::<f32>()?, greatest.to_vec::<f32>()?))
                    })?;
                    let terms = |i: i64| (0..n).filter(move |&j| is_near(i, j)).map(|j| numbers[j as usize]);
                    let sums: Vec<f32> = (0..n).map(|i| terms(i).sum::<f32>() + 0.0).collect();
                    assert!(same(&chosen, &sums), "{name}, {n}, {special}: {chosen:?} instead of {sums:?}");
                    let factor = |i, j| f32::from(u8::from(is_near(i, j)));
                    let product_of = |i: i64| (0..n).map(|j| factor(i, j) * numbers[j as usize]).sum::<f32>() + 0.0;
                    let products: Vec<f32> = (0..n).map(product_of).collect();
                    assert!(same(&product, &products), "{name}, {n}, {special}: {product:?} instead of {products:?}");
                    if !special.is_nan() {
                        let of = |i, j| if is_near(i, j) { numbers[j as usize] } else { -9.0 };
                        let most_of = |i: i64| (0..n).map(|j| of(i, j)).fold(f32::NEG_INFINITY, f32::max);
                        let most: Vec<f32> = (0..n).map(most_of).collect();
                        assert!(same(&greatest, &most), "{name}, {n}, {special}: {greatest:?} instead of {most:?}");
                    }
                }
            }
        }
    }
    Ok(())
}
