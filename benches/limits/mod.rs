//! What the machine can do at most: multiply-adds, copied bytes and read bytes per second.
//!
//! `check.c` beside this file measures the same with a C compiler; the two must agree.

mod fma;
mod memory;
mod team;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::report::{Measure, Row};
use memory::Arrays;

/// Samples whose median is the limit.
const SAMPLES: usize = 21;
/// A sample lasts at least this long, so that neither the clock nor the start of threads shows.
const SAMPLE_TIME: Duration = Duration::from_millis(20);

/// What is exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// f32 multiply-adds in registers.
    Fma,
    /// A copy of 16M f32 with stores that bypass the caches; bytes read and bytes written both count.
    Copy,
    /// A sum of 16M f32.
    Read,
}

/// A resource exhausted by a number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Limit {
    /// What is exhausted.
    pub resource: Resource,
    /// By how many threads.
    pub threads: usize,
}

impl Limit {
    /// The multiply-adds of so many threads.
    pub fn fma(threads: usize) -> Self {
        Self { resource: Resource::Fma, threads }
    }

    /// The copying of so many threads.
    pub fn copy(threads: usize) -> Self {
        Self { resource: Resource::Copy, threads }
    }

    /// The reading of so many threads.
    pub fn read(threads: usize) -> Self {
        Self { resource: Resource::Read, threads }
    }

    /// What one iteration does.
    pub fn measure(self) -> Measure {
        match self.resource {
            Resource::Fma => Measure::Flops(fma::flops() * self.threads as f64),
            Resource::Copy => Measure::Bytes(2.0 * memory::BYTES),
            Resource::Read => Measure::Bytes(memory::BYTES),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = match self.resource {
            Resource::Fma => "fma",
            Resource::Copy => "copy",
            Resource::Read => "read",
        };
        write!(f, "limit/{resource}/{}t", self.threads)
    }
}

/// The machine the benchmarks run on; every limit is measured at most once, when first asked for.
pub struct Machine {
    threads: usize,
    arrays: Option<Arrays>,
    measured: BTreeMap<Limit, f64>,
}

impl Machine {
    /// This machine, nothing measured yet.
    pub fn new() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { threads, arrays: None, measured: BTreeMap::new() }
    }

    /// The thread counts worth a row: one, and all there are.
    pub fn thread_counts(&self) -> Vec<usize> {
        if self.threads == 1 { vec![1] } else { vec![1, self.threads] }
    }

    /// Every limit of this machine.
    pub fn limits(&self) -> Vec<Limit> {
        [Resource::Fma, Resource::Copy, Resource::Read]
            .into_iter()
            .flat_map(|resource| self.thread_counts().into_iter().map(move |threads| Limit { resource, threads }))
            .collect()
    }

    /// The time of so many iterations of the loop behind `limit`.
    pub fn time(&mut self, limit: Limit, iterations: u64) -> Duration {
        match limit.resource {
            Resource::Fma => fma::time(limit.threads, iterations),
            Resource::Copy => self.arrays().copy(limit.threads, iterations),
            Resource::Read => self.arrays().read(limit.threads, iterations),
        }
    }

    /// The limit, in the unit of its [`Limit::measure`].
    pub fn rate(&mut self, limit: Limit) -> f64 {
        if let Some(rate) = self.measured.get(&limit) {
            return *rate;
        }
        let mut iterations = 1;
        while self.time(limit, iterations) < SAMPLE_TIME {
            iterations *= 2;
        }
        let mut seconds: Vec<f64> =
            (0..SAMPLES).map(|_| self.time(limit, iterations).as_secs_f64() / iterations as f64).collect();
        seconds.sort_by(f64::total_cmp);
        let rate = limit.measure().value(seconds[SAMPLES / 2]);
        self.measured.insert(limit, rate);
        rate
    }

    /// Keeps a rate measured elsewhere with [`Machine::time`].
    pub fn keep(&mut self, limit: Limit, rate: f64) {
        self.measured.insert(limit, rate);
    }

    /// A row for every limit measured so far.
    pub fn rows(&self) -> Vec<Row> {
        self.measured
            .iter()
            .map(|(limit, rate)| Row::new(&limit.to_string(), limit.measure(), *rate).with_limit(*rate))
            .collect()
    }

    /// The vector instructions the multiply-adds were measured with.
    pub fn instructions(&self) -> &'static str {
        fma::instructions()
    }

    /// Made once: at 16M elements each, their pages cost more than a measurement.
    fn arrays(&mut self) -> &mut Arrays {
        self.arrays.get_or_insert_with(Arrays::new)
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}
