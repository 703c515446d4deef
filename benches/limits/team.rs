//! The same work on several threads, timed from a common start to the last finish.

use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Runs `work` on every part, each on its own thread; the caller's thread takes the first.
pub(super) fn time<P: Send>(parts: Vec<P>, work: impl Fn(P) + Sync) -> Duration {
    let barrier = Barrier::new(parts.len());
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else { return Duration::ZERO };
    std::thread::scope(|scope| {
        for part in parts {
            scope.spawn(|| {
                let part = part;
                barrier.wait();
                work(part);
                barrier.wait();
            });
        }
        barrier.wait();
        let start = Instant::now();
        work(first);
        barrier.wait();
        start.elapsed()
    })
}
