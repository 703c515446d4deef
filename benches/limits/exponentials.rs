//! The rate of exponentials: a sum of 2^x over an array that the first cache holds.
//!
//! The series has the least degree whose error, with that of the rounding, stays below what the language promises
//! (1.5 units of the last place): 6 on [-1/2, 1/2].

use std::hint::black_box;
use std::time::Duration;

use super::team;

/// Arguments: 16 kB.
const ARGUMENTS: usize = 4096;
/// Walks over the arguments in one iteration.
const WALKS: usize = 64;
/// Exponentials of one thread in one iteration.
pub(super) const COUNT: f64 = (ARGUMENTS * WALKS) as f64;

/// Coefficients of 2^r, the highest first.
const SERIES: [f32; 7] =
    [1.534_586_4e-4, 1.339_993e-3, 9.618_489e-3, 5.550_329e-2, 0.240_226_47, std::f32::consts::LN_2, 1.0];

/// An array of arguments, aligned to what vectors are loaded by.
#[repr(C, align(64))]
struct Arguments([f32; ARGUMENTS]);

/// The time in which every one of the threads does so many iterations.
pub(super) fn time(threads: usize, iterations: u64) -> Duration {
    let arguments = Arguments(std::array::from_fn(|index| -(index as f32) / 400.0));
    team::time(vec![(); threads], |()| {
        for _ in 0..iterations * WALKS as u64 {
            black_box(architecture::sum(black_box(&arguments)));
        }
    })
}

#[cfg(target_arch = "x86_64")]
mod architecture {
    use super::{Arguments, SERIES, portable};
    use std::arch::x86_64::*;

    pub(super) fn sum(arguments: &Arguments) -> f32 {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the feature.
            unsafe { sum_avx512(arguments) }
        } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has the features.
            unsafe { sum_avx2(arguments) }
        } else {
            portable::<false>(arguments)
        }
    }

    /// Rounding and scaling are instructions here, and right for every argument.
    #[target_feature(enable = "avx512f")]
    fn sum_avx512(Arguments(arguments): &Arguments) -> f32 {
        let mut sums = [_mm512_setzero_ps(); 4];
        let (vectors, _) = arguments.as_chunks::<16>();
        for vectors in vectors.as_chunks::<4>().0 {
            for (sum, vector) in sums.iter_mut().zip(vectors) {
                // SAFETY: a vector is 16 f32 of an array that is aligned to 64 bytes.
                let x = unsafe { _mm512_load_ps(vector.as_ptr()) };
                let whole = _mm512_roundscale_ps::<0>(x);
                let rest = _mm512_sub_ps(x, whole);
                let [first, others @ ..] = SERIES;
                let step = |power, coefficient| _mm512_fmadd_ps(power, rest, _mm512_set1_ps(coefficient));
                let power = others.into_iter().fold(_mm512_set1_ps(first), step);
                *sum = _mm512_add_ps(*sum, _mm512_scalef_ps(power, whole));
            }
        }
        sums.into_iter().map(|sum| _mm512_reduce_add_ps(sum)).sum()
    }

    #[target_feature(enable = "avx2,fma")]
    fn sum_avx2(arguments: &Arguments) -> f32 {
        portable::<true>(arguments)
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod architecture {
    use super::{Arguments, portable};

    pub(super) fn sum(arguments: &Arguments) -> f32 {
        portable::<{ cfg!(target_arch = "aarch64") }>(arguments)
    }
}

/// In whatever vectors the compiler chooses, for arguments whose powers are normal numbers.
#[inline(always)]
fn portable<const FUSED: bool>(Arguments(arguments): &Arguments) -> f32 {
    const ROUNDER: f32 = 12_582_912.0 + 127.0;
    let mut sums = [0.0; 32];
    for block in arguments.as_chunks::<32>().0 {
        for (sum, x) in sums.iter_mut().zip(block) {
            let rounded = x + ROUNDER;
            let rest = x - (rounded - ROUNDER);
            let [first, others @ ..] = SERIES;
            let power = others.into_iter().fold(first, |power, coefficient| match FUSED {
                true => f32::mul_add(power, rest, coefficient),
                false => power * rest + coefficient,
            });
            *sum += power * f32::from_bits(rounded.to_bits() << 23);
        }
    }
    sums.iter().sum()
}
