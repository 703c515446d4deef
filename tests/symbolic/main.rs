//! Functions whose dims have bounds: one set of kernels computes what kernels of each size do.

mod agreement;
mod calls;
mod empty;
mod kernels;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Kernels are counted for the whole process, so one test compiles at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
