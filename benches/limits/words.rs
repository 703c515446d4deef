//! The peak of instructions that multiply words: of four bytes into i32, and of two bf16 into f32.

use std::hint::black_box;
use std::time::Duration;

use super::team;

/// Steps of every chain in one iteration.
const STEPS: u64 = 50_000;
/// Enough to cover the latency; they fit the registers beside the operands.
const CHAINS: usize = 24;
/// Words of a vector.
const LANES: usize = 16;

/// What the words are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Words {
    /// Products of bytes, summed in i32.
    Bytes,
    /// Products of bf16, summed in f32.
    Bf16,
}

#[cfg(target_arch = "x86_64")]
mod architecture {
    use super::{CHAINS, Words};
    use std::arch::x86_64::*;

    macro_rules! kernel {
        ($name:ident, $features:literal, $sum:ty, $words:ty, |$total:ident, $a:ident, $b:ident| $step:expr) => {
            #[target_feature(enable = $features)]
            #[allow(clippy::useless_transmute, reason = "of one of the two the vectors are of integers already")]
            fn $name(steps: u64, word: i32) -> i32 {
                // SAFETY: the vectors are equally large, and every bit pattern is one of each.
                let $a: $words = unsafe { std::mem::transmute(_mm512_set1_epi32(word)) };
                let $b = $a;
                let mut sums: [$sum; CHAINS] = std::array::from_fn(|chain| {
                    // SAFETY: as above.
                    unsafe { std::mem::transmute(_mm512_set1_epi32(chain as i32)) }
                });
                for _ in 0..steps {
                    for sum in &mut sums {
                        let $total = *sum;
                        *sum = $step;
                    }
                }
                // SAFETY: as above.
                let lanes: [[i32; 16]; CHAINS] = unsafe { std::mem::transmute(sums) };
                lanes.as_flattened().iter().fold(0, |all, lane| all ^ lane)
            }
        };
    }

    kernel!(byte_words, "avx512f,avx512vnni", __m512i, __m512i, |sum, a, b| _mm512_dpbusd_epi32(sum, a, b));
    kernel!(bf16_words, "avx512f,avx512bf16", __m512, __m512bh, |sum, a, b| _mm512_dpbf16_ps(sum, a, b));

    pub(super) fn run(words: Words) -> Option<fn(u64, i32) -> i32> {
        let avx512 = is_x86_feature_detected!("avx512f");
        match words {
            // SAFETY: this processor has the features.
            Words::Bytes if avx512 && is_x86_feature_detected!("avx512vnni") => {
                Some(|steps, word| unsafe { byte_words(steps, word) })
            }
            // SAFETY: as above.
            Words::Bf16 if avx512 && is_x86_feature_detected!("avx512bf16") => {
                Some(|steps, word| unsafe { bf16_words(steps, word) })
            }
            _ => None,
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod architecture {
    pub(super) fn run(_: super::Words) -> Option<fn(u64, i32) -> i32> {
        None
    }
}

impl Words {
    /// Does this processor have the instruction?
    pub fn are_there(self) -> bool {
        architecture::run(self).is_some()
    }

    /// Multiplications and additions that one thread performs in an iteration.
    pub(super) fn operations(self) -> f64 {
        let numbers = match self {
            Self::Bytes => 4,
            Self::Bf16 => 2,
        };
        (2 * numbers * LANES * CHAINS) as f64 * STEPS as f64
    }

    /// The name in that of its limit.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "i8",
            Self::Bf16 => "bf16",
        }
    }
}

/// The time in which every one of the threads does so many iterations.
pub(super) fn time(words: Words, threads: usize, iterations: u64) -> Duration {
    let Some(run) = architecture::run(words) else { return Duration::from_secs(1) };
    // Two numbers that are 0.5 as bf16.
    team::time(vec![(); threads], |()| {
        black_box(run(STEPS * iterations, black_box(0x3f00_3f00)));
    })
}
