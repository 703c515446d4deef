//! Clips gradients, lazily: before the step, in the same graph.

use crate::{Result, Tensor};
use tinyspec_ir::{DType, ErrorKind};

/// Scales all gradients by one factor so that their 2-norm, as one vector, is at most `greatest`. Returns the norm
/// before that, lazily: f64 if a gradient is, else f32.
///
/// ```
/// # use tinyspec_core::{Tensor, nn::clip_norm};
/// let mut gradients = [Tensor::from_slice(&[3f32], [1]), Tensor::from_slice(&[4f32], [1])];
/// let norm = clip_norm(&mut gradients, 1.0)?;
/// assert_eq!(norm.item::<f32>()?, 5.0);
/// assert!((gradients[1].item::<f32>()? - 0.8).abs() < 1e-5);
/// # Ok::<(), tinyspec_core::Error>(())
/// ```
///
/// # Errors
/// When `greatest` is negative or no number.
#[track_caller]
pub fn clip_norm(gradients: &mut [Tensor], greatest: f64) -> Result<Tensor> {
    if greatest.is_nan() || greatest < 0.0 {
        let message = format!("a norm of at most {greatest}");
        return Err(crate::Error::refused(ErrorKind::Value, "clip_norm", message));
    }
    let is_double = gradients.iter().any(|gradient| gradient.dtype() == DType::F64);
    let dtype = if is_double { DType::F64 } else { DType::F32 };
    let mut total: Option<Tensor> = None;
    for gradient in gradients.iter() {
        let squares = gradient.cast(gradient.dtype().accumulator()).square().sum(.., false).cast(dtype);
        total = Some(match total {
            Some(total) => total + squares,
            None => squares,
        });
    }
    let norm = total.unwrap_or_else(|| Tensor::zeros(())).sqrt();
    let factor = (greatest / (&norm + 1e-6)).minimum(1.0);
    for gradient in gradients {
        let wide = gradient.dtype().accumulator();
        *gradient = (gradient.cast(wide) * factor.cast(wide)).cast(gradient.dtype());
    }
    Ok(norm)
}

/// Clips every element of the gradients to at most `greatest` in magnitude.
///
/// # Errors
/// When `greatest` is negative or no number.
#[track_caller]
pub fn clip_value(gradients: &mut [Tensor], greatest: f64) -> Result<()> {
    if greatest.is_nan() || greatest < 0.0 {
        let message = format!("elements of at most {greatest}");
        return Err(crate::Error::refused(ErrorKind::Value, "clip_value", message));
    }
    for gradient in gradients {
        *gradient = gradient.clip(-greatest, greatest);
    }
    Ok(())
}
