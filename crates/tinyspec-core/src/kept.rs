//! Caches with a limit in bytes, which evict what was least recently used.

use crate::device::size_of_environment;
use crate::{Error, Result};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

const VARIABLE: &str = "TINYSPEC_PLANS";

/// The default limit, in bytes of plans, programs and their machine code.
const USUAL: u64 = 64 << 20;

/// The number of plans in each half that are kept whatever their size: a program that alternates between a few never
/// compiles one twice.
const ALWAYS: usize = 64;

/// The limit, or [`UNKNOWN`] before its first use.
static LIMIT: AtomicU64 = AtomicU64::new(UNKNOWN);
const UNKNOWN: u64 = u64::MAX;

/// The approximate limit on what a process keeps of its compiled programs: plans, and the machine code that only they
/// use. Beyond it, the least recently used are freed, and compiled again or read from the object cache when needed.
///
/// `TINYSPEC_PLANS` sets it at the start, such as `TINYSPEC_PLANS=16MB`; the default is 64 MiB. Prepared calls keep
/// theirs, and the last 64 plans are kept whatever their size.
///
/// ```
/// tinyspec_core::execute::limit_plans(16 << 20);
/// ```
pub fn limit_plans(bytes: u64) {
    LIMIT.store(bytes.min(UNKNOWN - 1), Ordering::Relaxed);
}

/// The limit in bytes.
///
/// # Errors
/// When `TINYSPEC_PLANS` is not a size.
fn limit() -> Result<u64> {
    match LIMIT.load(Ordering::Relaxed) {
        UNKNOWN => {
            let limit = size_of_environment(VARIABLE)?.unwrap_or(USUAL);
            // Another thread may have set it in the meantime.
            let known = LIMIT.compare_exchange(UNKNOWN, limit, Ordering::Relaxed, Ordering::Relaxed);
            Ok(known.map_or_else(|set| set, |_| limit))
        }
        limit => Ok(limit),
    }
}

/// A thread-safe cache of entries with known sizes.
pub(crate) struct Kept<K, V> {
    halves: Mutex<Halves<K, V>>,
    /// Its share of the limit, as a divisor.
    share: u64,
    /// The number of entries in each half that are kept whatever their size.
    least: usize,
}

/// The capacity: so many bytes, and a number of entries in each half whatever their size.
#[derive(Clone, Copy)]
struct Most {
    bytes: u64,
    least: usize,
}

/// Entries used since the halves were last exchanged, and those used before. When the younger half is full, the older
/// one is dropped, so an entry stays at least until half of the limit has been filled.
struct Halves<K, V> {
    young: FxHashMap<K, (V, u64)>,
    old: FxHashMap<K, (V, u64)>,
    /// The size of the young ones.
    bytes: u64,
}

impl<K: Hash + Eq, V: Clone> Kept<K, V> {
    /// An empty cache of a `share`th part of the limit.
    pub fn new(share: u64) -> Kept<K, V> {
        let halves = Halves { young: FxHashMap::default(), old: FxHashMap::default(), bytes: 0 };
        Kept { halves: Mutex::new(halves), share, least: ALWAYS }
    }

    /// Sets the number of entries that are kept whatever their size.
    pub fn with_at_least(self, least: usize) -> Kept<K, V> {
        Kept { least, ..self }
    }

    pub fn get(&self, key: &K) -> Option<V> {
        let mut dropped = FxHashMap::default();
        let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((value, _)) = halves.young.get(key) {
            return Some(value.clone());
        }
        let (key, (value, bytes)) = halves.old.remove_entry(key)?;
        if let Ok(limit) = limit() {
            dropped = halves.insert(key, value.clone(), bytes, self.share_of(limit));
        }
        drop(halves);
        drop(dropped);
        Some(value)
    }

    fn share_of(&self, limit: u64) -> Most {
        Most { bytes: limit / self.share, least: self.least }
    }

    /// Keeps a value that needs so many bytes.
    ///
    /// # Errors
    /// When `TINYSPEC_PLANS` is not a size.
    pub fn insert(&self, key: K, value: V, bytes: u64) -> Result<(), Error> {
        let most = self.share_of(limit()?);
        let dropped = self.halves.lock().unwrap_or_else(PoisonError::into_inner).insert(key, value, bytes, most);
        // Dropped outside the lock, since it may take long.
        drop(dropped);
        Ok(())
    }
}

impl<K: Hash + Eq, V> Halves<K, V> {
    /// Returns the evicted entries.
    fn insert(&mut self, key: K, value: V, bytes: u64, most: Most) -> FxHashMap<K, (V, u64)> {
        self.bytes += bytes;
        if let Some((_, before)) = self.young.insert(key, (value, bytes)) {
            self.bytes -= before;
        }
        if self.bytes <= most.bytes / 2 || self.young.len() < most.least {
            return FxHashMap::default();
        }
        self.bytes = 0;
        std::mem::replace(&mut self.old, std::mem::take(&mut self.young))
    }
}
