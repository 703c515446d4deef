//! A team of threads that share a job; the caller takes part.
//!
//! A job is a number of units. Members claim ever smaller shares of the remaining units (guided self-scheduling), so a
//! thread that was preempted, or that is still waking up, delays the others only by what it has claimed. Kernels follow
//! each other within microseconds, and waking a thread takes longer than many of them run: a waiting thread spins for
//! about as long as its last job took, and then sleeps. So spinning takes at most half of its time, and a sequence of
//! kernels too short to be worth waking threads for leaves the other cores idle.

use std::cell::UnsafeCell;
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// The longest time that a thread spins before it sleeps: a few times its wake-up latency.
const PATIENCE: Duration = Duration::from_micros(100);

/// Processes the units of a claim.
type Work<'a> = dyn Fn(Range<u32>) + Sync + 'a;

/// Threads that wait for jobs.
#[derive(Debug)]
pub struct Team {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Held while the team works for one caller.
    turn: Mutex<()>,
}

/// The team of this process, created on first use. The child of a `fork` has none of its parent's threads and creates a
/// team of its own.
#[derive(Debug, Default)]
pub struct TeamOfProcess(Mutex<Option<(u32, Option<Arc<Team>>)>>);

impl TeamOfProcess {
    /// No team yet.
    pub const fn new() -> TeamOfProcess {
        TeamOfProcess(Mutex::new(None))
    }

    /// The team, which is created with this many threads if there is none; `None` if the system has no more threads.
    pub fn get(&self, threads: usize) -> Option<Arc<Team>> {
        let mut slot = match self.0.try_lock() {
            Ok(slot) => slot,
            Err(TryLockError::Poisoned(slot)) => slot.into_inner(),
            // Held briefly by another thread, or forever by one that a fork has left behind.
            Err(TryLockError::WouldBlock) => return None,
        };
        let process = std::process::id();
        match &*slot {
            Some((of, team)) if *of == process => team.clone(),
            _ => {
                let team = Team::new(threads).ok().map(Arc::new);
                // The parent's team cannot be dropped, since its threads do not exist in this process and cannot be
                // joined.
                std::mem::forget(slot.replace((process, team.clone())));
                team
            }
        }
    }
}

struct Shared {
    /// The number of threads that claim units.
    members: u32,
    /// The unclaimed units of the job: the first one in the upper half, the one after the last in the lower.
    left: AtomicU64,
    /// Units that are done.
    done: AtomicU32,
    job: UnsafeCell<Option<Job>>,
    /// Workers that spin or work.
    awake: AtomicU32,
    panicked: AtomicBool,
    /// Whether the team is being dropped.
    ends: AtomicBool,
}

struct Job {
    /// It actually lives until all units are done.
    work: &'static Work<'static>,
    units: u32,
    caller: Thread,
}

// SAFETY: `job` is written only by the caller that holds `turn`, after all units of the previous job are done; others
// read it only between a claim and their addition to `done`. The work itself is `Sync`.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("members", &self.members).finish_non_exhaustive()
    }
}

impl Team {
    /// A team of this many threads, including the caller.
    ///
    /// # Errors
    /// When the system has no more threads.
    pub fn new(threads: usize) -> io::Result<Team> {
        let shared = Arc::new(Shared {
            members: threads as u32,
            left: AtomicU64::new(0),
            done: AtomicU32::new(0),
            job: UnsafeCell::new(None),
            awake: AtomicU32::new(threads.saturating_sub(1) as u32),
            panicked: AtomicBool::new(false),
            ends: AtomicBool::new(false),
        });
        let mut team = Team { shared, workers: Vec::new(), turn: Mutex::new(()) };
        for member in 1..threads {
            let shared = Arc::clone(&team.shared);
            let thread = thread::Builder::new().name(format!("tinyspec-{member}"));
            team.workers.push(thread.spawn(move || shared.serve())?);
        }
        Ok(team)
    }

    /// Whether a job would find all workers awake.
    pub fn is_awake(&self) -> bool {
        self.shared.awake.load(Ordering::Relaxed) as usize == self.workers.len()
    }

    /// Runs a job of this many units; false if the team is busy, with a job of another thread or of this one.
    ///
    /// # Panics
    /// When the work panics, once all units are done.
    pub fn run(&self, units: u32, work: &Work<'_>) -> bool {
        let _turn = match self.turn.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let shared = &*self.shared;
        // SAFETY: only the lifetime changes; nothing below unwinds or returns before all units are done.
        let lasting = unsafe { std::mem::transmute::<&Work<'_>, &'static Work<'static>>(work) };
        // SAFETY: this thread holds `turn`, and the previous job is done.
        unsafe { *shared.job.get() = Some(Job { work: lasting, units, caller: thread::current() }) };
        shared.done.store(0, Ordering::Relaxed);
        shared.left.store(u64::from(units), Ordering::Release);
        for worker in self.workers.iter().take(units.saturating_sub(1) as usize) {
            worker.thread().unpark();
        }
        shared.take_part(End::First);
        wait(PATIENCE, || shared.done.load(Ordering::Acquire) == units);
        assert!(!shared.panicked.swap(false, Ordering::Relaxed), "a thread of the team panicked");
        true
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            // It catches panics of jobs.
            let _ = worker.join();
        }
    }
}

/// The end at which a member claims: the caller at the first unit, the others at the last. So with two threads, each
/// works on about the same part of memory from job to job.
#[derive(Clone, Copy)]
enum End {
    First,
    Last,
}

impl Shared {
    /// The loop of a worker, until the team is dropped.
    fn serve(&self) {
        let mut patience = PATIENCE;
        loop {
            let ends = || self.ends.load(Ordering::Acquire);
            let is_called = || !units(self.left.load(Ordering::Relaxed)).is_empty() || ends();
            if !poll(patience, is_called) {
                self.awake.fetch_sub(1, Ordering::Relaxed);
                sleep(is_called);
                self.awake.fetch_add(1, Ordering::Relaxed);
            }
            if ends() {
                return;
            }
            let start = Instant::now();
            self.take_part(End::Last);
            patience = start.elapsed().min(PATIENCE);
        }
    }

    /// Claims and works until nothing is left.
    fn take_part(&self, end: End) {
        while let Some(claim) = self.claim(end) {
            let count = claim.len() as u32;
            // SAFETY: nobody writes the job until the claimed units are done.
            let Some(job) = (unsafe { &*self.job.get() }) else { return };
            let (work, all, caller) = (job.work, job.units, job.caller.clone());
            if catch_unwind(AssertUnwindSafe(|| work(claim))).is_err() {
                self.panicked.store(true, Ordering::Relaxed);
            }
            // From here on, the job and its work may no longer exist.
            if self.done.fetch_add(count, Ordering::Release) + count == all {
                caller.unpark();
            }
        }
    }

    /// Claims half of a member's equal share of the remaining units.
    fn claim(&self, end: End) -> Option<Range<u32>> {
        let mut left = self.left.load(Ordering::Relaxed);
        loop {
            let Range { start, end: after } = units(left);
            if start >= after {
                return None;
            }
            let count = ((after - start) / (2 * self.members)).max(1);
            let (claim, rest) = match end {
                End::First => (start..start + count, start + count..after),
                End::Last => (after - count..after, start..after - count),
            };
            let rest = u64::from(rest.start) << 32 | u64::from(rest.end);
            match self.left.compare_exchange_weak(left, rest, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(claim),
                Err(other) => left = other,
            }
        }
    }
}

/// Decodes `left`.
fn units(left: u64) -> Range<u32> {
    (left >> 32) as u32..left as u32
}

/// Waits for a condition; the thread that makes it true wakes this one.
fn wait(patience: Duration, is_so: impl Fn() -> bool) {
    if !poll(patience, &is_so) {
        sleep(is_so);
    }
}

/// Spins for a while; returns whether the condition became true.
fn poll(patience: Duration, is_so: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    loop {
        for _ in 0..64 {
            if is_so() {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() >= patience {
            return false;
        }
    }
}

fn sleep(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::park();
    }
}
