//! Caches with a limit in bytes: what was not used for the longest time is given back.

use crate::device::size_of_environment;
use crate::{Error, Result};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

const VARIABLE: &str = "TINYSPEC_PLANS";

/// Bytes of plans, programs and their machine code that a process keeps where nobody says otherwise.
const USUAL: u64 = 64 << 20;

/// As many plans of each half are kept whatever they need: a program that alternates between a few never makes one twice.
const ALWAYS: usize = 64;

/// The limit, or none before it was asked for.
static LIMIT: AtomicU64 = AtomicU64::new(UNKNOWN);
const UNKNOWN: u64 = u64::MAX;

/// The most that a process keeps of what it has compiled, about: plans, and the machine code that only they use. What was
/// not used for the longest time is given back beyond that, and made again, or read from the object cache, when it is needed.
///
/// `TINYSPEC_PLANS` sets it at the start, such as `TINYSPEC_PLANS=16MB`; else it is 64 MiB. Prepared calls keep theirs, and
/// the last 64 plans are kept whatever they need.
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
            // Somebody may have set another one meanwhile.
            let known = LIMIT.compare_exchange(UNKNOWN, limit, Ordering::Relaxed, Ordering::Relaxed);
            Ok(known.map_or_else(|set| set, |_| limit))
        }
        limit => Ok(limit),
    }
}

/// A cache of several threads, of entries that say how many bytes they keep alive.
pub(crate) struct Kept<K, V> {
    halves: Mutex<Halves<K, V>>,
    /// Which part of the limit is for it, as a divisor.
    share: u64,
    /// Of each half, as many entries are kept whatever they need.
    least: usize,
}

/// What there is room for: so many bytes, and as many entries in each half whatever they need.
#[derive(Clone, Copy)]
struct Most {
    bytes: u64,
    least: usize,
}

/// What was used since the halves were last exchanged, and what was used before. The older half is dropped when the younger
/// one is full: so an entry stays for at least as long as half of the limit takes to fill.
struct Halves<K, V> {
    young: FxHashMap<K, (V, u64)>,
    old: FxHashMap<K, (V, u64)>,
    /// Of the young ones.
    bytes: u64,
}

impl<K: Hash + Eq, V: Clone> Kept<K, V> {
    /// An empty cache of a `share`th part of the limit.
    pub fn new(share: u64) -> Kept<K, V> {
        let halves = Halves { young: FxHashMap::default(), old: FxHashMap::default(), bytes: 0 };
        Kept { halves: Mutex::new(halves), share, least: ALWAYS }
    }

    /// Keeps so few entries whatever they need.
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
        // Not under the lock: it may be much.
        drop(dropped);
        Ok(())
    }
}

impl<K: Hash + Eq, V> Halves<K, V> {
    /// Gives what is no longer kept.
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
