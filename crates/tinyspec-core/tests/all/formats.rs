//! Data of other crates and programs.

use half::{bf16, f16};
use tinyspec_core::{Error, Tensor};
use tinyspec_ir::DType;

#[test]
fn half_floats_are_elements() -> Result<(), Error> {
    let data = [0.1, -2.5, 65504.0].map(f16::from_f32);
    let x = Tensor::from_slice(&data, [3]);
    assert_eq!((x.dtype(), x.to_vec::<f16>()?), (DType::F16, data.to_vec()));
    let x = x.cast(DType::BF16);
    assert_eq!(x.to_vec::<bf16>()?[1], bf16::from_f32(-2.5));
    assert!(x.to_vec::<f16>().is_err());
    Ok(())
}
