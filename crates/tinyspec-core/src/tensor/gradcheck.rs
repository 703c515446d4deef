//! Checks gradients against finite differences.

use super::{Tensor, grad_or_zeros};
use crate::{Error, Result};
use std::panic::Location;
use tinyspec_ir::{DType, ErrorKind};

/// The precision of [`gradcheck`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GradcheckOptions {
    /// The step of the central differences.
    pub step: f64,
    /// The difference that is allowed, whatever the size of a derivative.
    pub absolute: f64,
    /// The difference that is allowed, as a share of the derivative.
    pub relative: f64,
}

impl Default for GradcheckOptions {
    fn default() -> GradcheckOptions {
        GradcheckOptions { step: 1e-5, absolute: 1e-6, relative: 1e-4 }
    }
}

/// Compares the gradient of `function` for each of `inputs` with central differences, in f64: the loss is a weighted
/// sum of all elements of the result. The function must be smooth at the inputs.
///
/// ```
/// # use tinyspec_core::{GradcheckOptions, Tensor, gradcheck};
/// let x = Tensor::from_slice(&[0.3f64, -1.2, 2.0], [3]);
/// gradcheck(|x| x[0].tanh() * &x[0], &[&x], GradcheckOptions::default())?;
/// # Ok::<(), tinyspec_core::Error>(())
/// ```
///
/// # Errors
/// When a derivative differs, with the input, the element and both values; when the inputs are not f64; or the error of
/// the function or its gradient.
#[track_caller]
pub fn gradcheck(function: impl Fn(&[Tensor]) -> Tensor, inputs: &[&Tensor], options: GradcheckOptions) -> Result<()> {
    let location = Location::caller();
    let refuse = |message: String| Err(Error::refused(ErrorKind::Gradient, "gradcheck", message).at(location));
    let mut data = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        if input.node()?.props.dtype != DType::F64 {
            let message = format!("input {number} is {}: differences need f64", input.dtype());
            return refuse(message);
        }
        data.push((input.to_vec::<f64>()?, input.sizes()?));
    }
    let tensors: Vec<Tensor> = data.iter().map(|(data, sizes)| Tensor::from_slice(data, sizes)).collect();
    let loss_of = |tensors: &[Tensor]| -> Result<Tensor> {
        let result = function(tensors).cast(DType::F64);
        let sizes = result.sizes()?;
        let count: usize = sizes.iter().product();
        // All weights differ, and none is a round number.
        let weights: Vec<f64> = (0..count).map(|position| 0.5 + (position as f64 * 0.618_033_988_75).fract()).collect();
        Ok((result * Tensor::from_vec(weights, &sizes)).sum(.., false))
    };
    let wanted: Vec<&Tensor> = tensors.iter().collect();
    let gradients = grad_or_zeros(&loss_of(&tensors)?, &wanted)?;
    for (number, gradient) in gradients.iter().enumerate() {
        let found = gradient.to_vec::<f64>()?;
        let (values, sizes) = &data[number];
        for (position, &found) in found.iter().enumerate() {
            let moved = |by: f64| -> Result<f64> {
                let mut values = values.clone();
                values[position] += by;
                let mut tensors = tensors.clone();
                tensors[number] = Tensor::from_vec(values, sizes);
                loss_of(&tensors)?.item::<f64>()
            };
            let difference = (moved(options.step)? - moved(-options.step)?) / (2.0 * options.step);
            let allowed = options.absolute + options.relative * difference.abs();
            let apart = (found - difference).abs();
            if apart.is_nan() || apart > allowed {
                let message = format!(
                    "input {number}, element {position}: the gradient is {found}, differences say {difference}"
                );
                return refuse(message);
            }
        }
    }
    Ok(())
}
