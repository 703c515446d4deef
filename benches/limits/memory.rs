//! The rates of memory: a copy whose stores bypass the caches, and a sum that only reads.

use std::hint::black_box;
use std::time::Duration;

use super::team;

/// 16M f32 an array: far more than the caches hold, and the size the elementwise benchmarks have.
const ELEMENTS: usize = 16 << 20;
/// Bytes of one array.
pub(super) const BYTES: f64 = (ELEMENTS * size_of::<f32>()) as f64;

/// Vectors summed side by side, so that no addition waits for the one before it.
const CHAINS: usize = 8;

/// A cache line, aligned as aligned vector loads and streaming stores ask.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; 16]);

/// What is copied, and where to.
pub(super) struct Arrays {
    source: Vec<Line>,
    target: Vec<Line>,
}

impl Arrays {
    /// Two arrays whose pages are all present.
    pub(super) fn new() -> Self {
        let filled = |value| vec![Line([value; 16]); ELEMENTS / 16];
        Self { source: filled(1.0), target: filled(2.0) }
    }

    /// Copies the source so many times, each thread its own part of it.
    pub(super) fn copy(&mut self, threads: usize, iterations: u64) -> Duration {
        let part = self.source.len().div_ceil(threads);
        let parts = self.source.chunks(part).zip(self.target.chunks_mut(part)).collect();
        team::time(parts, |(source, target): (&[Line], &mut [Line])| {
            for _ in 0..iterations {
                architecture::copy(black_box(source), black_box(&mut *target));
            }
        })
    }

    /// Sums the source so many times, each thread its own part of it.
    pub(super) fn read(&mut self, threads: usize, iterations: u64) -> Duration {
        let parts = self.source.chunks(self.source.len().div_ceil(threads)).collect();
        team::time(parts, |source: &[Line]| {
            for _ in 0..iterations {
                black_box(architecture::sum(black_box(source)));
            }
        })
    }
}

#[cfg(target_arch = "x86_64")]
mod architecture {
    use super::{CHAINS, Line, portable};
    use std::arch::x86_64::*;

    pub(super) fn copy(source: &[Line], target: &mut [Line]) {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the feature.
            unsafe { copy_avx512(source, target) }
        } else if is_x86_feature_detected!("avx") {
            // SAFETY: the processor has the feature.
            unsafe { copy_avx(source, target) }
        } else {
            copy_sse(source, target);
        }
        // SAFETY: every x86-64 has SSE. Streaming stores are ordered with nothing until a fence.
        unsafe { _mm_sfence() }
    }

    #[target_feature(enable = "avx512f")]
    fn copy_avx512(source: &[Line], target: &mut [Line]) {
        for (Line(source), Line(target)) in source.iter().zip(target) {
            // SAFETY: both are 16 f32, aligned to 64 bytes.
            unsafe { _mm512_stream_ps(target.as_mut_ptr(), _mm512_load_ps(source.as_ptr())) }
        }
    }

    #[target_feature(enable = "avx")]
    fn copy_avx(source: &[Line], target: &mut [Line]) {
        for (Line(source), Line(target)) in source.iter().zip(target) {
            for (source, target) in source.chunks_exact(8).zip(target.chunks_exact_mut(8)) {
                // SAFETY: both are 8 f32, halves of a line, hence aligned to 32 bytes.
                unsafe { _mm256_stream_ps(target.as_mut_ptr(), _mm256_load_ps(source.as_ptr())) }
            }
        }
    }

    fn copy_sse(source: &[Line], target: &mut [Line]) {
        for (Line(source), Line(target)) in source.iter().zip(target) {
            for (source, target) in source.chunks_exact(4).zip(target.chunks_exact_mut(4)) {
                // SAFETY: both are 4 f32, quarters of a line, hence aligned to 16 bytes; every x86-64 has SSE.
                unsafe { _mm_stream_ps(target.as_mut_ptr(), _mm_load_ps(source.as_ptr())) }
            }
        }
    }

    pub(super) fn sum(source: &[Line]) -> f32 {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the feature.
            unsafe { sum_avx512(source) }
        } else if is_x86_feature_detected!("avx") {
            // SAFETY: the processor has the feature.
            unsafe { sum_avx(source) }
        } else {
            portable::sum(source)
        }
    }

    #[target_feature(enable = "avx512f")]
    fn sum_avx512(source: &[Line]) -> f32 {
        let mut sums = [_mm512_setzero_ps(); CHAINS];
        for lines in source.chunks_exact(CHAINS) {
            for (sum, Line(line)) in sums.iter_mut().zip(lines) {
                // SAFETY: a line is 16 f32, aligned to 64 bytes.
                *sum = _mm512_add_ps(*sum, unsafe { _mm512_load_ps(line.as_ptr()) });
            }
        }
        sums.into_iter().map(|sum| _mm512_reduce_add_ps(sum)).sum()
    }

    #[target_feature(enable = "avx")]
    fn sum_avx(source: &[Line]) -> f32 {
        let mut sums = [_mm256_setzero_ps(); CHAINS];
        for lines in source.chunks_exact(CHAINS / 2) {
            let halves = lines.iter().flat_map(|Line(line)| [&line[..8], &line[8..]]);
            for (sum, half) in sums.iter_mut().zip(halves) {
                // SAFETY: half a line is 8 f32, aligned to 32 bytes.
                *sum = _mm256_add_ps(*sum, unsafe { _mm256_load_ps(half.as_ptr()) });
            }
        }
        // SAFETY: a vector is as large as its lanes, all of which are f32; every bit pattern is one.
        let lanes: [[f32; 8]; CHAINS] = unsafe { std::mem::transmute(sums) };
        lanes.as_flattened().iter().sum()
    }
}

/// Elsewhere the cores see a stream of stores by themselves and do not fetch the lines.
#[cfg(not(target_arch = "x86_64"))]
mod architecture {
    use super::Line;
    pub(super) use super::portable::sum;

    pub(super) fn copy(source: &[Line], target: &mut [Line]) {
        target.copy_from_slice(source);
    }
}

mod portable {
    use super::{CHAINS, Line};

    /// In whatever vectors the compiler chooses.
    pub(super) fn sum(source: &[Line]) -> f32 {
        let mut sums = [[0.0_f32; 4]; CHAINS];
        for lines in source.chunks_exact(CHAINS / 4) {
            let quarters = lines.iter().flat_map(|Line(line)| line.as_chunks::<4>().0);
            for (sum, quarter) in sums.iter_mut().zip(quarters) {
                for (sum, value) in sum.iter_mut().zip(quarter) {
                    *sum += value;
                }
            }
        }
        sums.as_flattened().iter().sum()
    }
}
