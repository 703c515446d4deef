//! What several topics need.

use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Tensor};
use tinyspec_ir::DType;

pub fn on_each_device(check: impl Fn() -> Result<(), Error>) {
    for device in ["cpu", "interpreter"] {
        with_default_device::<_, Error>(device, &check).unwrap_or_else(|error| panic!("{device}: {error}"));
    }
}

pub fn vector(data: &[f64]) -> Tensor {
    Tensor::from_slice(data, [data.len()])
}

/// Are the elements of a float tensor within a share of 1e-12 of these.
#[track_caller]
pub fn is(tensor: &Tensor, want: &[f64]) -> Result<(), Error> {
    let got = tensor.cast(DType::F64).to_vec::<f64>()?;
    let close = |(got, want): (&f64, &f64)| {
        got == want || got.is_nan() && want.is_nan() || (got - want).abs() <= 1e-12 * want.abs().max(1.0)
    };
    assert!(got.len() == want.len() && got.iter().zip(want).all(close), "{got:?} instead of {want:?}");
    Ok(())
}
