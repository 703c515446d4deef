//! The table of kernels as they run (`TINYSPEC_DEBUG=2`).

use crate::execute::size;
use crate::lower::pipeline::Step;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A row: what ran, how fast, and who asked for it.
pub(crate) fn kernel(step: &Step, time: Duration, arena_bytes: usize) {
    static HEADER: Once = Once::new();
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    HEADER.call_once(|| {
        eprintln!(
            "{:>5}  {:<32} {:<28} {:>11} {:>9} {:>8} {:>10} {:>10}  line",
            "run", "kernel", "axes", "time", "GFLOP/s", "GB/s", "touched", "arena"
        );
    });
    let seconds = time.as_secs_f64().max(1e-9);
    eprintln!(
        "{:>5}  {:<32} {:<28} {:>8.1} µs {:>9.2} {:>8.2} {:>10} {:>10}  {}",
        NUMBER.fetch_add(1, Ordering::Relaxed),
        step.kernel.name,
        step.kernel.axes,
        seconds * 1e6,
        step.kernel.work as f64 / seconds / 1e9,
        step.bytes as f64 / seconds / 1e9,
        size(step.bytes),
        size(arena_bytes as u64),
        step.location
    );
}
