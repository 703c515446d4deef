//! 8-bit floats on every device: each code, and values all over the range of f32.

use tinyspec_core::Tensor;
use tinyspec_core::execute::with_default_device;
use tinyspec_ir::{DType, float};

#[test]
fn eight_bit_floats_convert_as_the_language_says() {
    let codes: Vec<u8> = (0..=255).collect();
    // Every exponent, with mantissas around each tie of the formats, and the specials.
    let mut values: Vec<f32> = (0..=255u32)
        .flat_map(|exponent| (0..64u32).map(move |mantissa| f32::from_bits(exponent << 23 | mantissa << 17)))
        .chain([f32::MIN_POSITIVE, f32::MAX, 448.0, 464.0, 464.1, 480.0, 57344.0, 61440.0, 61439.9])
        .collect();
    values.extend(values.clone().iter().map(|value| -value));
    for device in ["cpu", "interpreter"] {
        for dtype in [DType::F8E4M3, DType::F8E5M2] {
            with_default_device::<_, tinyspec_core::Error>(device, || {
                let decoded = Tensor::from_bytes(dtype, &codes, &[256]).cast(DType::F32).to_vec::<f32>()?;
                for (code, got) in codes.iter().zip(decoded) {
                    let want = float::from_bits(dtype, u64::from(*code)) as f32;
                    assert!(got == want || got.is_nan() && want.is_nan(), "{device} {dtype} {code:#x}: {got} {want}");
                }
                let encoded = Tensor::from_slice(&values, [values.len()]).cast(dtype).bitcast(DType::U8);
                for (value, got) in values.iter().zip(encoded.to_vec::<u8>()?) {
                    let want = float::to_bits(dtype, f64::from(*value)) as u8;
                    let nan = |code: u8| float::from_bits(dtype, u64::from(code)).is_nan();
                    assert!(got == want || nan(got) && nan(want), "{device} {dtype} {value:?}: {got:#x} {want:#x}");
                }
                Ok(())
            })
            .unwrap();
        }
    }
}
