//! `atomic_add` on every dtype of memory: what all iterations add to one element, and one rounding for each addition.

use crate::*;
use tinyspec::prelude::*;

macro_rules! sums {
    ($($all:ident $each:ident $dtype:ident)*) => { $(
        uop! { <N, K>
            fn $all(keys: &Global<i32, N>, values: &Global<$dtype, N>, sums: &mut Global<$dtype, K>) {
                for i in global(N) {
                    let key = keys[i];
                    if key >= 0 && key < K as i32 { atomic_add(&mut sums[key], values[i]); }
                }
            }

            <N>
            fn $each(values: &Global<$dtype, N>, sums: &mut Global<$dtype, N>) {
                for i in global(N) { atomic_add(&mut sums[i], values[i]); }
            }
        }
    )* };
}

sums! {
    all_i8 each_i8 i8
    all_u8 each_u8 u8
    all_i16 each_i16 i16
    all_u16 each_u16 u16
    all_i32 each_i32 i32
    all_u32 each_u32 u32
    all_i64 each_i64 i64
    all_u64 each_u64 u64
    all_f16 each_f16 f16
    all_bf16 each_bf16 bf16
    all_f8e4m3 each_f8e4m3 f8e4m3
    all_f8e5m2 each_f8e5m2 f8e5m2
    all_f32 each_f32 f32
    all_f64 each_f64 f64
}

/// Calls a macro with both kernels of every dtype.
macro_rules! each_dtype {
    ($callback:ident) => {
        $callback! {
            all_i8 each_i8 I8, all_u8 each_u8 U8, all_i16 each_i16 I16, all_u16 each_u16 U16, all_i32 each_i32 I32,
            all_u32 each_u32 U32, all_i64 each_i64 I64, all_u64 each_u64 U64, all_f16 each_f16 F16,
            all_bf16 each_bf16 BF16, all_f8e4m3 each_f8e4m3 F8E4M3, all_f8e5m2 each_f8e5m2 F8E5M2, all_f32 each_f32 F32,
            all_f64 each_f64 F64
        }
    };
}

/// `red.add.f32` takes subnormal numbers for 0 (docs/accuracy.md).
fn takes_subnormals_for_0() -> bool {
    tinyspec::default_device().is_ok_and(|device| device.name().starts_with("ptxsim"))
}

#[test]
fn every_dtype_is_added_to_from_all_iterations() -> Result<()> {
    // At most 8 in all: every dtype holds such numbers.
    let keys: Vec<i32> = (0..4000).map(|i| if i % 500 == 3 { i / 500 % 2 } else { -1 }).collect();
    on_both(|| {
        let keys = Tensor::from_slice(&keys, [4000]);
        macro_rules! check {
            ($($all:ident $each:ident $dtype:ident),*) => { $(
                let mut sums = Tensor::from_slice(&[1i32, 0, 3], [3]).cast(DType::$dtype);
                $all(&keys, &Tensor::ones([4000]).cast(DType::$dtype), &mut sums);
                assert_eq!(sums.cast(DType::F64).to_vec::<f64>()?, [5.0, 4.0, 3.0], "{}", DType::$dtype);
            )* };
        }
        each_dtype!(check);
        Ok(())
    })
}

#[test]
fn an_atomic_addition_rounds_as_an_addition_does() -> Result<()> {
    // Subnormals, ties, overflow and something that is not a number.
    let mut numbers: Vec<f32> = (-40..40).flat_map(|e| [1.0f32, -1.25, 1.375, 1.5].map(|m| m * 2f32.powi(e))).collect();
    numbers.extend([0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 448.0, 57344.0, 65504.0, f32::MAX]);
    let others: Vec<f32> = (0..numbers.len()).map(|i| numbers[(i * 37 + 11) % numbers.len()]).collect();
    let near: Vec<f32> = numbers.iter().enumerate().map(|(i, x)| x * [0.5, -0.75, 0.0625, 1.0][i % 4]).collect();
    on_both(|| {
        let of = |values: &[f32]| Tensor::from_slice(values, [values.len()]);
        for others in [&others, &near] {
            macro_rules! check {
                ($($all:ident $each:ident $dtype:ident),*) => { $('dtype: {
                    let (x, y) = (of(&numbers).cast(DType::$dtype), of(others).cast(DType::$dtype));
                    if DType::$dtype == DType::F32 && takes_subnormals_for_0() {
                        break 'dtype;
                    }
                    let mut sums = x.contiguous();
                    $each(&y, &mut sums);
                    let expected = (x + y).cast(DType::F64).to_vec::<f64>()?;
                    let found = sums.cast(DType::F64).to_vec::<f64>()?;
                    for (position, (found, expected)) in found.iter().zip(&expected).enumerate() {
                        let same = found == expected && found.is_sign_negative() == expected.is_sign_negative();
                        assert!(same || found.is_nan() && expected.is_nan(), "{}, {position}: {found} is not {expected}", DType::$dtype);
                    }
                })* };
            }
            each_dtype!(check);
        }
        Ok(())
    })
}
