//! Wmma: a packed dot product, which multiplies the numbers in two words and adds them to a sum. The dtypes of the
//! first word and of the sum determine those of the numbers.

use super::ternary;
use crate::{DType, words::numbers};

pub(super) fn lanes(word: DType, sum: DType, sources: &[&[u64]], result: &mut [u64]) -> bool {
    match numbers(word, sum) {
        Some(DType::U8) => ternary(sources, result, |a, b, sum| {
            let product = |part: u32| ((a >> (8 * part)) as u8 as i32) * ((b >> (8 * part)) as i8 as i32);
            (0..4).fold(sum as i32, |sum, part| sum.wrapping_add(product(part))) as i64 as u64
        }),
        Some(DType::I16) => ternary(sources, result, |a, b, sum| {
            let product = |half| integer(a, half).wrapping_mul(integer(b, half));
            (sum as i32).wrapping_add(product(0)).wrapping_add(product(1)) as i64 as u64
        }),
        Some(DType::BF16) => ternary(sources, result, |a, b, sum| {
            let add = |sum: f32, half| flush(bfloat(a, half).mul_add(bfloat(b, half), sum));
            let sum = add(add(flush(f64::from_bits(sum) as f32), 1), 0);
            (sum as f64).to_bits()
        }),
        _ => false,
    }
}

/// The lower or upper i16.
fn integer(word: u64, half: u32) -> i32 {
    (word >> (16 * half)) as i16 as i32
}

/// The lower or upper bf16.
fn bfloat(word: u64, half: u32) -> f32 {
    flush(f32::from_bits(((word >> (16 * half)) as u16 as u32) << 16))
}

/// The instruction flushes subnormal numbers to 0, keeping the sign.
fn flush(value: f32) -> f32 {
    if value.is_subnormal() { 0.0f32.copysign(value) } else { value }
}
