//! What the machine can do at most: multiply-adds, products of words, exponentials, copied bytes and read bytes per second.
//!
//! `check.c` beside this file measures the same with a C compiler; the two must agree.

mod exponentials;
mod fma;
mod memory;
mod team;
mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::report::{Measure, Row};
use memory::Arrays;
pub use words::Words;

/// Samples whose median is the limit.
const SAMPLES: usize = 21;
/// A sample lasts at least this long, so that neither the clock nor the start of threads shows.
const SAMPLE_TIME: Duration = Duration::from_millis(20);
/// 16M f32: far more than the caches hold, and the size of most memory-bound benchmarks.
pub const LARGE: usize = 16 << 20;

/// What is exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// f32 multiply-adds in registers.
    Fma,
    /// Products of two numbers in a word, in registers.
    Words(Words),
    /// 2^x of f32 in the first cache, by the shortest series that rounds as the language promises.
    Exponentials,
    /// A copy of so many f32, by stores that bypass the caches or that do not, whichever is faster; bytes read and bytes
    /// written both count.
    Copy(usize),
    /// A sum of so many f32.
    Read(usize),
    /// A copy of so many rows of a table, which lie far from each other.
    Rows(usize),
}

/// f32 of a row of the table, and its rows: the embeddings of GPT-2.
pub const ROW: usize = 768;
/// Rows of the table.
pub const TABLE_ROWS: usize = 50_257;

/// The place in the table of a row that is copied.
pub fn place(row: usize) -> usize {
    row % 251 * 200 + row % 200
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

    /// The exponentials of so many threads.
    pub fn exponentials(threads: usize) -> Self {
        Self { resource: Resource::Exponentials, threads }
    }

    /// The copying of so many f32 by so many threads.
    pub fn copy(elements: usize, threads: usize) -> Self {
        Self { resource: Resource::Copy(elements), threads }
    }

    /// The reading of so many f32 by so many threads.
    pub fn read(elements: usize, threads: usize) -> Self {
        Self { resource: Resource::Read(elements), threads }
    }

    /// What one iteration does.
    pub fn measure(self) -> Measure {
        match self.resource {
            Resource::Fma => Measure::Flops(fma::flops() * self.threads as f64),
            Resource::Words(words) => Measure::Flops(words.operations() * self.threads as f64),
            Resource::Exponentials => Measure::Elements(exponentials::COUNT * self.threads as f64),
            Resource::Copy(elements) => Measure::Bytes(2.0 * memory::bytes(elements)),
            Resource::Read(elements) => Measure::Bytes(memory::bytes(elements)),
            Resource::Rows(rows) => Measure::Bytes(2.0 * memory::bytes(rows * ROW)),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = self.threads;
        let megabytes = |elements: usize| memory::bytes(elements) / 1e6;
        match self.resource {
            Resource::Fma => write!(f, "limit/fma/{threads}t"),
            Resource::Words(words) => write!(f, "limit/{}/{threads}t", words.name()),
            Resource::Exponentials => write!(f, "limit/exp/{threads}t"),
            Resource::Copy(elements) => write!(f, "limit/copy/{:.0}MB/{threads}t", megabytes(elements)),
            Resource::Read(elements) => write!(f, "limit/read/{:.0}MB/{threads}t", megabytes(elements)),
            Resource::Rows(rows) => write!(f, "limit/rows/{:.0}MB/{threads}t", megabytes(rows * ROW)),
        }
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

    /// The limits of this machine, those of memory far beyond the caches.
    pub fn limits(&self) -> Vec<Limit> {
        let words = [Words::Bytes, Words::Bf16].into_iter().filter(|words| words.are_there()).map(Resource::Words);
        [Resource::Fma, Resource::Exponentials, Resource::Copy(LARGE), Resource::Read(LARGE)]
            .into_iter()
            .chain(words)
            .flat_map(|resource| self.thread_counts().into_iter().map(move |threads| Limit { resource, threads }))
            .collect()
    }

    /// The time of so many iterations of the loop behind `limit`.
    pub fn time(&mut self, limit: Limit, iterations: u64) -> Duration {
        match limit.resource {
            Resource::Fma => fma::time(limit.threads, iterations),
            Resource::Words(words) => words::time(words, limit.threads, iterations),
            Resource::Exponentials => exponentials::time(limit.threads, iterations),
            Resource::Copy(elements) => self.arrays(elements).copy(elements, limit.threads, iterations),
            Resource::Read(elements) => self.arrays(elements).read(elements, limit.threads, iterations),
            Resource::Rows(rows) => self.arrays(ROW * TABLE_ROWS.max(rows)).rows(rows, limit.threads, iterations),
        }
    }

    /// The limit, in the unit of its [`Limit::measure`].
    pub fn rate(&mut self, limit: Limit) -> f64 {
        if let Some(rate) = self.measured.get(&limit) {
            return *rate;
        }
        let iterations = self.iterations(limit, SAMPLE_TIME);
        let mut seconds: Vec<f64> = (0..SAMPLES).map(|_| self.seconds(limit, iterations)).collect();
        seconds.sort_by(f64::total_cmp);
        let rate = limit.measure().value(seconds[SAMPLES / 2]);
        self.measured.insert(limit, rate);
        rate
    }

    /// How many iterations take at least so long.
    pub fn iterations(&mut self, limit: Limit, time: Duration) -> u64 {
        let mut iterations = 1;
        while self.time(limit, iterations) < time {
            iterations *= 2;
        }
        iterations
    }

    /// The seconds of an iteration, over so many.
    pub fn seconds(&mut self, limit: Limit, iterations: u64) -> f64 {
        self.time(limit, iterations).as_secs_f64() / iterations as f64
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

    /// Made once and kept: their pages cost more than a measurement.
    fn arrays(&mut self, elements: usize) -> &mut Arrays {
        if self.arrays.as_ref().is_none_or(|arrays| arrays.len() < elements) {
            self.arrays = None;
        }
        self.arrays.get_or_insert_with(|| Arrays::new(elements.max(LARGE)))
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}
