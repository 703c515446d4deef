//! Throughput and bandwidth of a core, as the cost model uses them.

use tinyspec_backends::{Rates, Target};

/// The target's [`Rates`], per cycle.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::lower::optimize) struct Core {
    /// Cycles per nanosecond.
    pub clock: f64,
    /// Vector arithmetic.
    pub arithmetic: f64,
    /// Multiply-adds of vectors.
    pub multiply_adds: f64,
    /// Vector loads.
    pub loads: f64,
    /// Loads of one element.
    pub scalar_loads: f64,
    /// Vector stores.
    pub stores: f64,
    /// Instructions of all kinds.
    pub instructions: f64,
    /// Bytes from the second-level cache, the last-level cache, and memory.
    pub bytes: [f64; 3],
    /// Cycles from a multiply-add to one that needs its result.
    pub latency: f64,
    /// Bytes of the first-, second- and last-level data cache.
    pub caches: [f64; 3],
}

impl Core {
    pub fn of(target: &Target) -> Core {
        let Rates {
            megahertz,
            arithmetic,
            multiply_adds,
            latency,
            loads,
            scalar_loads,
            stores,
            instructions,
            bandwidths,
        } = target.rates;
        let per_cycle = |count: u32| f64::from(count) / 100.0;
        Core {
            clock: f64::from(megahertz) / 1e3,
            arithmetic: per_cycle(arithmetic),
            multiply_adds: per_cycle(multiply_adds),
            loads: per_cycle(loads),
            scalar_loads: per_cycle(scalar_loads),
            stores: per_cycle(stores),
            instructions: per_cycle(instructions),
            bytes: bandwidths.map(|bandwidth| f64::from(bandwidth) / f64::from(megahertz)),
            latency: latency.into(),
            caches: target.cache_bytes.map(|bytes| bytes as f64),
        }
    }

    /// Cycles for bytes that miss the second-level cache, of which `missed_by_last` miss the last-level cache, too.
    pub fn beyond_second_level(&self, missed: f64, missed_by_last: f64) -> f64 {
        let from_memory = if self.caches[2] == 0.0 { missed } else { missed_by_last.min(missed) };
        (missed - from_memory) / self.bytes[1] + from_memory / self.bytes[2]
    }
}
