//! The long mode: as many programs as `TINYSPEC_LONG` says, of all families in turn, over all threads.

use crate::check::{self, describe, guarded};
use crate::program::{Family, Program};
use crate::reduce::{kind, reduce};
use crate::stages;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Program `number` of a seed.
fn program(seed: u64, number: u64) -> Program {
    let mut random = fastrand::Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
    let family = match number % 16 {
        0..=4 => Family::Exact,
        5..=8 => Family::Special,
        9..=14 => Family::Smooth,
        _ => Family::Attention,
    };
    let mut genes = |count: usize| (0..count).map(|_| std::array::from_fn(|_| random.u16(..))).collect();
    let (inputs, steps) = (1 + number as usize / 16 % 3, 1 + number as usize / 48 % 9);
    Program { family, inputs: genes(inputs), steps: genes(steps) }
}

/// Every program runs on every device; each seventeenth, so of every family, also after every stage, which takes as long
/// as ten others.
fn check(program: &Program, number: u64) -> Result<(), String> {
    check::check(program)?;
    match program.family {
        Family::Attention => Ok(()),
        _ if check::named().is_some() => Ok(()),
        _ if number.is_multiple_of(17) => guarded(|| stages::check(program)),
        _ => Ok(()),
    }
}

#[test]
fn long_mode() {
    let Some(programs) = variable("TINYSPEC_LONG") else { return };
    let seed = variable("TINYSPEC_SEED").unwrap_or(1);
    // A panic is a failure like any other.
    std::panic::set_hook(Box::new(|_| {}));
    let first = variable("TINYSPEC_FIRST").unwrap_or(0);
    let (next, start) = (AtomicU64::new(first), Instant::now());
    let failures: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= programs {
                return;
            }
            if number > first && number % 1000 == 0 {
                let found = failures.lock().unwrap().len();
                eprintln!("{number} programs, {found} kinds of failure, {:.0} s", start.elapsed().as_secs_f64());
            }
            let failing = program(seed, number);
            let Err(message) = check(&failing, number) else { continue };
            let count = {
                let mut failures = failures.lock().unwrap();
                let count = failures.entry(kind(&message)).or_insert(0);
                *count += 1;
                *count
            };
            // One of each kind is enough.
            if count == 1 {
                let line = message.lines().next().unwrap_or_default();
                eprintln!("program {number} of seed {seed} is reduced: {line}");
                let reduced = reduce(&failing, |program| check(program, number));
                let message = check(&reduced, number).err().unwrap_or(message);
                eprintln!("program {number} of seed {seed}: {message}\n{}{reduced:?}\n", describe(&reduced));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{programs} programs: {failures:#?}");
}
