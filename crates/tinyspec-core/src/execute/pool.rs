//! Memory that is kept for the next buffer of its size, so that repeated steps neither allocate nor fault pages in.

use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tinyspec_backends::Memory;

/// Kept beyond this, memory is given back.
const KEPT_BYTES: usize = 2 << 30;

/// Free memory of a device, by size class.
#[derive(Default)]
pub struct Pool(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    free: FxHashMap<usize, Vec<Arc<dyn Memory>>>,
    bytes: usize,
}

impl Pool {
    /// Sizes are rounded up to an eighth of their power of two: little is wasted, and near sizes share.
    pub fn class(bytes: usize) -> usize {
        let granule = (bytes.max(1).next_power_of_two() / 8).max(64);
        bytes.max(1).next_multiple_of(granule)
    }

    pub fn take(&self, class: usize) -> Option<Arc<dyn Memory>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = kept.free.get_mut(&class)?.pop()?;
        kept.bytes -= class;
        Some(memory)
    }

    pub fn give(&self, class: usize, memory: Arc<dyn Memory>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes + class <= KEPT_BYTES {
            kept.bytes += class;
            kept.free.entry(class).or_default().push(memory);
        }
    }
}
