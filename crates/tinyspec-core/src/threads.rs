//! The number of threads of kernels and compilers, and the compilers' thread pool.

use crate::{Error, Result};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::panic::Location;
use std::sync::{Arc, Mutex, OnceLock, TryLockError};
use std::thread::available_parallelism;
use tinyspec_backends::settings;
use tinyspec_ir::ErrorKind;

const VARIABLE: &str = "TINYSPEC_THREADS";
/// The most threads, more than a machine has processors: starting more would take minutes, and they would wait for each
/// other.
const MOST: usize = 1024;

/// Settled on first use.
static THREADS: OnceLock<Result<usize>> = OnceLock::new();

/// How many threads compute and compile: the number of [`set_threads`], of `TINYSPEC_THREADS`, or else one for each
/// processor that the process may run on. It is fixed by the first call, or the first use of the device `cpu`.
///
/// # Errors
/// When `TINYSPEC_THREADS` is not a number of threads, from 1 to 1024.
pub fn threads() -> Result<usize> {
    let from_environment = || {
        let parse = |text: &str| text.parse().ok().filter(|threads| (1..=MOST).contains(threads));
        let named = settings::read(VARIABLE, &format!("a number of threads, from 1 to {MOST}"), parse)?;
        Ok(named.unwrap_or_else(|| available_parallelism().map_or(1, usize::from)))
    };
    THREADS.get_or_init(from_environment).clone()
}

/// Sets how many threads compute and compile, overriding `TINYSPEC_THREADS`. Call it at the start of a program, before
/// its first tensor, since kernels are compiled for this number.
///
/// ```standalone_crate
/// # use tinyspec_core::{Tensor, set_threads, threads};
/// set_threads(1)?;
/// assert_eq!(threads()?, 1);
/// assert_eq!(Tensor::ones([1000, 1000]).sum(.., false).item::<f32>()?, 1e6);
/// assert!(set_threads(2).is_err());
/// # Ok::<(), tinyspec_core::Error>(())
/// ```
///
/// # Errors
/// For 0, for more than 1024, and when a different number is already settled.
#[track_caller]
pub fn set_threads(threads: usize) -> Result<()> {
    let location = Location::caller();
    let refused = |message: &str, help: &str| {
        let error = tinyspec_ir::Error::new(ErrorKind::Value, "set_threads", message).help(help);
        Err(Error::from(error.at(location)))
    };
    if threads == 0 {
        return refused("0 threads compute nothing", "1 for the calling thread alone");
    }
    if threads > MOST {
        return refused(&format!("{threads} threads"), "1024 at most; one a processor is best");
    }
    match THREADS.get_or_init(|| Ok(threads)) {
        Ok(settled) if *settled == threads => Ok(()),
        Ok(settled) => refused(
            &format!("{threads} threads, but kernels are being made for {settled} already"),
            "set it at the start of the program, before the first tensor, or by TINYSPEC_THREADS",
        ),
        Err(error) => Err(error.clone()),
    }
}

/// The threads that compile; `None` if there is only one. The child of a `fork` has none of its parent's threads and
/// makes its own.
pub(crate) fn compilers() -> Option<Arc<ThreadPool>> {
    static POOL: Mutex<Option<(u32, Option<Arc<ThreadPool>>)>> = Mutex::new(None);
    let mut slot = match POOL.try_lock() {
        Ok(slot) => slot,
        Err(TryLockError::Poisoned(slot)) => slot.into_inner(),
        // Held briefly by another thread, or forever by one that a fork has left behind.
        Err(TryLockError::WouldBlock) => return None,
    };
    let process = std::process::id();
    match &*slot {
        Some((of, pool)) if *of == process => pool.clone(),
        _ => {
            let threads = threads().unwrap_or(1);
            let name = |number| format!("tinyspec-compiler-{number}");
            let build = || ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build().ok().map(Arc::new);
            let pool = if threads > 1 { build() } else { None };
            // The parent's threads do not exist in this process, so they cannot be joined.
            std::mem::forget(slot.replace((process, pool.clone())));
            pool
        }
    }
}
