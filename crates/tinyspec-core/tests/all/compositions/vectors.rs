//! Programs whose kernels no rule of the schedules was written for: they are computed in vectors all the same.

use super::steps;
use crate::support::SHAPES;
use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Tensor, grad};
use tinyspec_ir::ops::options::{Conv2d, default};

/// Few small integers, whose sums of products are exact.
fn numbers(shape: &[i64]) -> Result<Tensor, Error> {
    let count: i64 = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|i| ((i * 37) % 101 % 3) as f32 - 1.0).collect();
    Ok(Tensor::from_slice(&values, shape).realize()?.clone())
}

/// The gradients of filters of single channels with one across them behind: the order of the channels in what is stored
/// between the two suits only one of them.
fn separable() -> Result<Vec<Tensor>, Error> {
    let [x, d, p] = [numbers(&[2, 64, 20, 20])?, numbers(&[64, 1, 3, 3])?, numbers(&[32, 64, 1, 1])?];
    let each = Conv2d { padding: [1, 1], groups: 64, ..default() };
    let y = x.conv2d(&d, None, each).conv2d(&p, None, default()).relu();
    grad(&y.square().sum(.., false), &[&x, &d])
}

#[test]
fn programs_that_no_rule_was_written_for_take_few_steps() -> Result<(), Error> {
    let products = 2 * 400 * 64 * (4 * 32 + 4 * 9);
    for device in SHAPES {
        with_default_device::<_, Error>(device, || {
            let steps = steps(&separable()?.iter().collect::<Vec<_>>())?;
            assert!(steps < 2 * products, "{steps} steps for {products} products on {device}");
            Ok(())
        })?;
    }
    let values =
        |device| with_default_device::<_, Error>(device, || separable()?.iter().map(Tensor::to_vec::<f32>).collect());
    let [want, got]: [Vec<Vec<f32>>; 2] = [values("interpreter")?, values("cpu")?];
    assert_eq!(got, want);
    Ok(())
}

/// The gradient of a convolution by its input is a sum of sums. It is computed once, not in each of its readers, and its terms are not
/// stored, however much is computed of the slopes that they are made of.
#[test]
fn two_readers_of_a_gradient_take_few_more_steps_than_one() -> Result<(), Error> {
    let [x, k] = [numbers(&[2, 16, 10, 21])?, numbers(&[32, 16, 3, 3])?];
    let slopes = || -> Result<Tensor, Error> {
        let y = x.conv2d(&k, None, Conv2d { padding: [1, 1], ..default() });
        Ok(grad(&(y * 0.01).tanh().tanh().sum(.., false), &[&x])?.remove(0))
    };
    let one = slopes()?;
    let alone = steps(&[&one])?;
    let whole = slopes()?;
    let parts = [whole.at((.., ..8)) * 2.0, whole.at((.., 8..)) * 2.0];
    let both = steps(&[&parts[0], &parts[1]])?;
    assert!(both < 2 * alone, "{both} steps for two readers, {alone} for one");
    Ok(())
}
