//! The rates of memory: a copy whose stores bypass the caches, and a sum that only reads.

use std::hint::black_box;
use std::time::Duration;

use super::team;

/// Bytes of one array.
pub(super) fn bytes(elements: usize) -> f64 {
    (elements * size_of::<f32>()) as f64
}

/// Vectors summed side by side, so that no addition waits for the one before it.
const CHAINS: usize = 8;

/// A cache line, aligned as aligned vector loads and streaming stores ask.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; 16]);

/// What is copied, and where to.
pub(super) struct Arrays {
    source: Pages,
    target: Pages,
}

impl Arrays {
    /// Two arrays whose pages are all present.
    pub(super) fn new(elements: usize) -> Self {
        let lines = elements.div_ceil(16).next_multiple_of(CHAINS);
        Self { source: Pages::new(lines, 1.0), target: Pages::new(lines, 2.0) }
    }

    /// Elements of each.
    pub(super) fn len(&self) -> usize {
        self.source.lines * 16
    }

    /// Copies so many elements so many times, each thread its own part of them; the faster of two ways.
    pub(super) fn copy(&mut self, elements: usize, threads: usize, iterations: u64) -> Duration {
        let (lines, part) = cut(elements, threads);
        let Self { source, target } = self;
        let mut time = |copy: fn(&[Line], &mut [Line])| {
            let targets = target.lines_mut()[..lines].chunks_mut(part);
            let parts = source.lines_mut()[..lines].chunks(part).zip(targets).collect();
            team::time(parts, |(source, target): (&[Line], &mut [Line])| {
                for _ in 0..iterations {
                    copy(black_box(source), black_box(&mut *target));
                    architecture::fence();
                }
            })
        };
        let around = time(architecture::copy);
        let through = time(architecture::copy_through);
        around.min(through)
    }

    /// Copies so many rows of a table from places far from each other, so many times; the faster of two ways.
    pub(super) fn rows(&mut self, count: usize, threads: usize, iterations: u64) -> Duration {
        const LINES: usize = super::ROW / 16;
        let Self { source, target } = self;
        let table = &source.lines_mut()[..super::TABLE_ROWS * LINES];
        let part = count.div_ceil(threads);
        let mut time = |copy: fn(&[Line], &mut [Line])| {
            let targets = target.lines_mut()[..count * LINES].chunks_mut(part * LINES).enumerate().collect();
            team::time(targets, |(number, target): (usize, &mut [Line])| {
                for _ in 0..iterations {
                    for (row, target) in black_box(&mut *target).chunks_mut(LINES).enumerate() {
                        let place = super::place(number * part + row) * LINES;
                        copy(&table[place..place + LINES], target);
                    }
                    architecture::fence();
                }
            })
        };
        let around = time(architecture::copy);
        let through = time(architecture::copy_through);
        around.min(through)
    }

    /// Sums so many elements so many times, each thread its own part of them; the faster of two ways.
    pub(super) fn read(&mut self, elements: usize, threads: usize, iterations: u64) -> Duration {
        let (lines, part) = cut(elements, threads);
        let source = &self.source.lines_mut()[..lines];
        let time = |sum: fn(&[Line]) -> f32| {
            team::time(source.chunks(part).collect(), |source: &[Line]| {
                for _ in 0..iterations {
                    black_box(sum(black_box(source)));
                }
            })
        };
        time(architecture::sum).min(time(architecture::sum_of_quarters))
    }
}

/// The lines of so many elements, and of a thread's part of them.
fn cut(elements: usize, threads: usize) -> (usize, usize) {
    let lines = elements.div_ceil(16).next_multiple_of(CHAINS);
    (lines, lines.div_ceil(threads).next_multiple_of(CHAINS))
}

/// Lines in pages as large as the system has: with small ones the walks through their tables would be measured too.
struct Pages {
    memory: memmap2::MmapMut,
    start: usize,
    lines: usize,
}

impl Pages {
    const HUGE: usize = 2 << 20;

    fn new(lines: usize, value: f32) -> Self {
        let bytes = lines * size_of::<Line>();
        let memory = memmap2::MmapMut::map_anon(bytes + Self::HUGE).expect("memory for the measurement of memory");
        #[cfg(target_os = "linux")]
        // Where the system has none, the small ones remain.
        let _ = memory.advise(memmap2::Advice::HugePage);
        let start = memory.as_ptr().align_offset(Self::HUGE);
        let mut pages = Self { memory, start, lines };
        pages.lines_mut().fill(Line([value; 16]));
        pages
    }

    fn lines_mut(&mut self) -> &mut [Line] {
        let memory = &mut self.memory[self.start..][..self.lines * size_of::<Line>()];
        // SAFETY: every bit pattern is a line of f32; the start is aligned to more than a line.
        let (before, lines, after) = unsafe { memory.align_to_mut() };
        debug_assert!(before.is_empty() && after.is_empty());
        lines
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
    }

    pub(super) fn fence() {
        // SAFETY: every x86-64 has SSE. Streaming stores are ordered with nothing until a fence.
        unsafe { _mm_sfence() }
    }

    /// By stores that fetch each line into the caches first.
    pub(super) fn copy_through(source: &[Line], target: &mut [Line]) {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the feature.
            unsafe { copy_through_avx512(source, target) }
        } else {
            // The library decides by the size.
            target.copy_from_slice(source);
        }
    }

    #[target_feature(enable = "avx512f")]
    fn copy_through_avx512(source: &[Line], target: &mut [Line]) {
        for (Line(source), Line(target)) in source.iter().zip(target) {
            // SAFETY: both are 16 f32, aligned to 64 bytes. Volatile, lest the loop becomes a call of the library's.
            unsafe { target.as_mut_ptr().cast::<__m512>().write_volatile(_mm512_load_ps(source.as_ptr())) }
        }
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

    /// Four places at once: as many streams that the processor reads ahead of.
    pub(super) fn sum_of_quarters(source: &[Line]) -> f32 {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the feature.
            unsafe { sum_of_quarters_avx512(source) }
        } else {
            sum(source)
        }
    }

    #[target_feature(enable = "avx512f")]
    fn sum_of_quarters_avx512(source: &[Line]) -> f32 {
        let mut sums = [_mm512_setzero_ps(); CHAINS];
        let pairs = source.as_chunks::<2>().0;
        let (left, right) = pairs.split_at(pairs.len() / 2);
        let ((a, b), (c, d)) = (left.split_at(left.len() / 2), right.split_at(right.len() / 2));
        for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d) {
            // Written out: an iterator that flattens the four would keep its place in memory, which costs a sixth of the rate.
            let lines = [&a[0], &b[0], &c[0], &d[0], &a[1], &b[1], &c[1], &d[1]];
            for (sum, Line(line)) in sums.iter_mut().zip(lines) {
                // SAFETY: a line is 16 f32, aligned to 64 bytes.
                *sum = _mm512_add_ps(*sum, unsafe { _mm512_load_ps(line.as_ptr()) });
            }
        }
        sums.into_iter().map(|sum| _mm512_reduce_add_ps(sum)).sum()
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
    pub(super) use super::portable::{sum, sum as sum_of_quarters};

    pub(super) fn copy(source: &[Line], target: &mut [Line]) {
        target.copy_from_slice(source);
    }

    pub(super) fn copy_through(source: &[Line], target: &mut [Line]) {
        copy(source, target);
    }

    pub(super) fn fence() {}
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
