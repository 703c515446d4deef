//! What several topics need.

use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Tensor};
use tinyspec_ir::DType;

pub fn on_each_device(check: impl Fn() -> Result<(), Error>) {
    for device in ["cpu", "interpreter"] {
        with_default_device::<_, Error>(device, &check).unwrap_or_else(|error| panic!("{device}: {error}"));
    }
}

/// What is lowered for processors of other shapes than this machine, on the interpreter.
pub const SHAPES: [&str; 3] = ["interpreter/x86-64-v3", "interpreter/x86-64-v4", "interpreter/neoverse-v2"];

/// Are they all tried where some would do?
pub fn takes_all_shapes() -> bool {
    std::env::var("TINYSPEC_SHAPES").is_ok_and(|text| text == "all")
}

pub fn on_each_shape(check: impl Fn() -> Result<(), Error>) -> Result<(), Error> {
    SHAPES.into_iter().try_for_each(|device| with_default_device(device, &check))
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
