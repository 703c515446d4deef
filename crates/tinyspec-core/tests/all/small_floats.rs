//! 8-bit floats on every device: each code, and values all over the range of f32.

use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Tensor};
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
            with_default_device::<_, Error>(device, || {
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

#[test]
fn doubles_are_rounded_to_eight_bits_once() {
    for dtype in [DType::F8E4M3, DType::F8E5M2] {
        // Beside each code and each tie between two, by less than an f32 can tell; and what no f32 reaches.
        let value = |code: u64| float::from_bits(dtype, code);
        let ties = (0..127).map(|code| (value(code) + value(code + 1)) / 2.0);
        let places: Vec<f64> = (0..127).map(value).chain(ties).filter(|value| value.is_finite()).collect();
        let mut values: Vec<f64> =
            places.iter().flat_map(|&value| [1.0, 1.0 + 1e-12, 1.0 - 1e-12].map(|factor| value * factor)).collect();
        values.extend([1e-300, 1e300, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE]);
        values.extend(values.clone().iter().map(|value| -value));
        for device in ["cpu", "interpreter", "simt"] {
            with_default_device::<_, Error>(device, || {
                let encoded = Tensor::from_slice(&values, [values.len()]).cast(dtype).bitcast(DType::U8);
                for (value, got) in values.iter().zip(encoded.to_vec::<u8>()?) {
                    let want = float::to_bits(dtype, *value) as u8;
                    let nan = |code: u8| float::from_bits(dtype, u64::from(code)).is_nan();
                    assert!(got == want || nan(got) && nan(want), "{device} {dtype} {value:?}: {got:#x} {want:#x}");
                }
                Ok(())
            })
            .unwrap();
        }
    }
}

/// Products are not rounded before they are summed, and do not wrap.
#[test]
fn products_of_small_numbers_are_summed_in_what_accumulates() -> Result<(), Error> {
    let (a, b) = (Tensor::from_slice(&[100i8, 100, -100], [1, 3]), Tensor::from_slice(&[100i8, 50, 100], [3, 1]));
    assert_eq!(a.matmul(&b).to_vec::<i32>()?, [5000]);
    assert_eq!(Tensor::einsum("ij,jk->ik", &[&a, &b]).to_vec::<i32>()?, [5000]);
    // (1 + 2⁻⁷)² - (1 + 2⁻⁶) is 2⁻¹⁴, which a product rounded to bf16 loses.
    let (a, b) =
        (Tensor::from_slice(&[1.0078125f32, 1.0], [1, 2]), Tensor::from_slice(&[1.0078125f32, -1.015625], [2, 1]));
    let (a, b) = (a.cast(DType::BF16), b.cast(DType::BF16));
    assert_eq!(a.matmul(&b).cast(DType::F32).to_vec::<f32>()?, [2f32.powi(-14)]);
    assert_eq!(Tensor::einsum("ij,jk->ik", &[&a, &b]).dtype(), DType::BF16);
    assert_eq!(Tensor::einsum("ij,jk->ik", &[&a, &b]).cast(DType::F32).to_vec::<f32>()?, [2f32.powi(-14)]);
    Ok(())
}
