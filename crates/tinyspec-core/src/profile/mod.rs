//! Shows what the compiler and the devices do: `TINYSPEC_DEBUG=2` prints a table of kernels, `=3` the schedule of each
//! and the reasons for it, `=4` their code, `=5` the UOps of every stage. Also counters for programs.

mod facts;
mod table;

pub(crate) use facts::{Facts, axes, touched};
pub(crate) use table::{Launched, kernel};

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tinyspec_backends::settings::{self, UnknownSetting};
use tinyspec_ir::{Graph, NodeId};

/// The output of `TINYSPEC_DEBUG`, each kind with the lowest value that shows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Level {
    Kernels = 2,
    Schedules = 3,
    Code = 4,
    Stages = 5,
}

/// Whether this is shown.
pub(crate) fn shows(level: Level) -> bool {
    static LEVEL: OnceLock<u32> = OnceLock::new();
    *LEVEL.get_or_init(|| chosen_level().unwrap_or(0)) >= level as u32
}

/// The value of `TINYSPEC_DEBUG`.
///
/// # Errors
/// When it is not a number.
fn chosen_level() -> Result<u32, UnknownSetting> {
    let expected = "a number: 2 for kernels, 3 for schedules, 4 for code, 5 for all stages";
    Ok(settings::read("TINYSPEC_DEBUG", expected, |text| text.parse().ok())?.unwrap_or(0))
}

/// Checks the environment variables that are read where no error can be returned.
///
/// # Errors
/// When one has an unknown value.
pub(crate) fn check_environment() -> Result<(), UnknownSetting> {
    settings::warn_of_unknown();
    chosen_level()?;
    for switch in [settings::VERIFY, settings::VALIDATE, settings::STRICT, settings::FALLBACK, settings::PERF_MAP] {
        switch.read()?;
    }
    Ok(())
}

/// `TINYSPEC_VERIFY=1` asks for the verifiers in release builds too.
pub(crate) fn verifies() -> bool {
    static VERIFIES: OnceLock<bool> = OnceLock::new();
    *VERIFIES.get_or_init(|| settings::VERIFY.is_on())
}

/// Prints the UOps of a stage.
pub(crate) fn stage(name: &str, graph: &Graph, roots: &[NodeId]) {
    tinyspec_backends::tell!("── {name}\n{}", tinyspec_ir::text::print(graph, roots));
}

static PLANS: AtomicU64 = AtomicU64::new(0);
static KERNELS: AtomicU64 = AtomicU64::new(0);
static COMPILING: AtomicU64 = AtomicU64::new(0);
static LOWERING: AtomicU64 = AtomicU64::new(0);
static GENERATING: AtomicU64 = AtomicU64::new(0);
static LOADING: AtomicU64 = AtomicU64::new(0);

/// Counts and times of compilation since the program started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Plans made; cached plans do not count.
    pub plans: u64,
    /// Distinct kernels lowered.
    pub kernels: u64,
    /// Time that callers waited for plans.
    pub compiling: Duration,
    /// Time in the stages of single kernels, over all threads.
    pub lowering: Duration,
    /// Time in code generators, over all threads.
    pub generating: Duration,
    /// Time to find code in the object cache and to load it, over all threads.
    pub loading: Duration,
}

/// The counters of this process.
pub fn counters() -> Counters {
    let time = |counter: &AtomicU64| Duration::from_nanos(counter.load(Ordering::Relaxed));
    Counters {
        plans: PLANS.load(Ordering::Relaxed),
        kernels: KERNELS.load(Ordering::Relaxed),
        compiling: time(&COMPILING),
        lowering: time(&LOWERING),
        generating: time(&GENERATING),
        loading: time(&LOADING),
    }
}

/// Seconds that the program has waited for plans and kernels to be compiled.
pub fn compile_seconds() -> f64 {
    counters().compiling.as_secs_f64()
}

/// Adds its lifetime to a counter.
pub(crate) struct Timer(Instant, &'static AtomicU64);

impl Drop for Timer {
    fn drop(&mut self) {
        self.1.fetch_add(self.0.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }
}

static PASSES: Mutex<BTreeMap<&'static str, Duration>> = Mutex::new(BTreeMap::new());

/// Time spent in each pass over kernels, by name and summed over all threads; see `lower::passes`.
pub fn passes() -> BTreeMap<&'static str, Duration> {
    PASSES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Adds its lifetime to the time of a pass.
pub(crate) struct PassTimer(Instant, &'static str);

impl Drop for PassTimer {
    fn drop(&mut self) {
        *PASSES.lock().unwrap_or_else(PoisonError::into_inner).entry(self.1).or_default() += self.0.elapsed();
    }
}

/// Times a pass until it is dropped.
pub(crate) fn pass_timer(name: &'static str) -> PassTimer {
    PassTimer(Instant::now(), name)
}

/// While a plan is made.
pub(crate) fn plan_timer() -> Timer {
    PLANS.fetch_add(1, Ordering::Relaxed);
    Timer(Instant::now(), &COMPILING)
}

/// While a kernel goes through the stages.
pub(crate) fn lowering_timer() -> LoweringTimer {
    KERNELS.fetch_add(1, Ordering::Relaxed);
    LoweringTimer(Timer(Instant::now(), &LOWERING))
}

/// Also records the time of each kernel.
pub(crate) struct LoweringTimer(Timer);

impl LoweringTimer {
    /// The kernel has left the stages.
    pub(crate) fn stop(self, kernel: &str) {
        let took = self.0.0.elapsed();
        let mut lowered = LOWERED.lock().unwrap_or_else(PoisonError::into_inner);
        if lowered.len() < MOST_LOWERED {
            lowered.push((kernel.into(), took));
        }
    }
}

/// The most kernels to record if [`take_lowered`] is not called.
const MOST_LOWERED: usize = 1 << 14;

static LOWERED: Mutex<Vec<(Box<str>, Duration)>> = Mutex::new(Vec::new());

/// The kernels lowered since the last call, by name, and how long each took.
pub fn take_lowered() -> Vec<(Box<str>, Duration)> {
    std::mem::take(&mut LOWERED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// While a code generator works.
pub(crate) fn generating_timer() -> Timer {
    Timer(Instant::now(), &GENERATING)
}

/// While code is read from the object cache, or loaded.
pub(crate) fn loading_timer() -> Timer {
    Timer(Instant::now(), &LOADING)
}
