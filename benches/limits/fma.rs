//! The peak of f32 multiply-adds: independent chains in registers, nothing in memory.
//!
//! The chains must cover latency × throughput of the units: 4 × 2 on recent x86-64, 4 × 4 on the widest AArch64.
//! They also must fit the registers with two left for the operands, of 32 (AVX-512, NEON) or 16 (AVX2).

use std::hint::black_box;
use std::time::Duration;

use super::team;

/// Steps of every chain in one iteration: about a tenth of a millisecond.
const STEPS: u64 = 50_000;
/// Each chain goes to `TERM / (1 - FACTOR)` = 1: far from overflow and from subnormal numbers.
const FACTOR: f32 = 0.999;
const TERM: f32 = 0.001;

/// A loop of multiply-adds for one instruction set.
struct Kernel {
    instructions: &'static str,
    lanes: usize,
    chains: usize,
    run: fn(u64, f32, f32) -> f32,
}

/// `$chains` vectors of `$lanes`, each multiplied and added to once a step.
macro_rules! kernel {
    ($name:ident, $feature:literal, $lanes:literal x $chains:literal, $vector:ty, $splat:ident, |$sum:ident, $factor:ident, $term:ident| $step:expr) => {
        const $name: Kernel = Kernel {
            instructions: $feature,
            lanes: $lanes,
            chains: $chains,
            run: |steps, factor, term| {
                #[target_feature(enable = $feature)]
                fn chains(steps: u64, factor: f32, term: f32) -> f32 {
                    let ($factor, $term) = ($splat(factor), $splat(term));
                    // Different starts keep the chains from being merged into one.
                    let mut sums: [$vector; $chains] = [$term; $chains];
                    let mut start = 0.0;
                    for sum in &mut sums {
                        *sum = $splat(start);
                        start += 1.0;
                    }
                    for _ in 0..steps {
                        for sum in &mut sums {
                            let $sum = *sum;
                            *sum = $step;
                        }
                    }
                    // SAFETY: a vector is as large as its lanes, all of which are f32; every bit pattern is one.
                    let lanes: [[f32; $lanes]; $chains] = unsafe { std::mem::transmute(sums) };
                    lanes.as_flattened().iter().sum()
                }
                // SAFETY: `kernel` gives this loop only to a processor that has the feature.
                unsafe { chains(steps, factor, term) }
            },
        };
    };
}

#[cfg(target_arch = "x86_64")]
mod architecture {
    use super::Kernel;
    use std::arch::x86_64::*;

    kernel!(AVX512, "avx512f", 16 x 24, __m512, _mm512_set1_ps, |sum, factor, term| _mm512_fmadd_ps(sum, factor, term));
    kernel!(FMA, "avx,fma", 8 x 12, __m256, _mm256_set1_ps, |sum, factor, term| _mm256_fmadd_ps(sum, factor, term));

    // No fused instruction: a product and a sum.
    kernel!(SSE, "sse", 4 x 12, __m128, _mm_set1_ps, |sum, factor, term| _mm_add_ps(_mm_mul_ps(sum, factor), term));

    pub(super) fn kernel() -> Option<Kernel> {
        if is_x86_feature_detected!("avx512f") {
            Some(AVX512)
        } else if is_x86_feature_detected!("avx") && is_x86_feature_detected!("fma") {
            Some(FMA)
        } else {
            Some(SSE)
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod architecture {
    use super::Kernel;
    use std::arch::aarch64::*;

    kernel!(NEON, "neon", 4 x 24, float32x4_t, vdupq_n_f32, |sum, factor, term| vfmaq_f32(term, sum, factor));

    pub(super) fn kernel() -> Option<Kernel> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(NEON)
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod architecture {
    pub(super) fn kernel() -> Option<super::Kernel> {
        None
    }
}

/// Where no instruction is known: a product and a sum, in whatever vectors the compiler chooses.
const PORTABLE: Kernel = Kernel {
    instructions: "portable",
    lanes: 4,
    chains: 12,
    run: |steps, factor, term| {
        let mut sums: [[f32; 4]; 12] = std::array::from_fn(|chain| [chain as f32; 4]);
        for _ in 0..steps {
            for sum in sums.as_flattened_mut() {
                *sum = *sum * factor + term;
            }
        }
        sums.as_flattened().iter().sum()
    },
};

fn kernel() -> Kernel {
    architecture::kernel().unwrap_or(PORTABLE)
}

/// The instructions the peak is measured with.
pub(super) fn instructions() -> &'static str {
    kernel().instructions
}

/// Operations of one thread in one iteration.
pub(super) fn flops() -> f64 {
    let kernel = kernel();
    (2 * kernel.lanes * kernel.chains) as f64 * STEPS as f64
}

/// The time in which every one of the threads does so many iterations.
pub(super) fn time(threads: usize, iterations: u64) -> Duration {
    let run = kernel().run;
    team::time(vec![(); threads], |()| {
        black_box(run(STEPS * iterations, black_box(FACTOR), black_box(TERM)));
    })
}
