//! Runs work for several devices in parallel, as far as the host has threads.

use crate::threads::threads;
use crate::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};
use tinyspec_backends::cpu::{Team, TeamOfProcess, alone};

/// The threads that run devices; `None` if there is only one.
fn team(threads: usize) -> Option<Arc<Team>> {
    static TEAM: TeamOfProcess = TeamOfProcess::new();
    if threads > 1 { TEAM.get(threads) } else { None }
}

/// Runs `work` for each number below `count`, in parallel unless the threads are busy.
///
/// # Errors
/// The error of the lowest number. If one fails, others may have been done.
pub(crate) fn together(count: usize, work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    let failure: Mutex<Option<(usize, Error)>> = Mutex::new(None);
    let one = |number: usize| {
        if let Err(error) = work(number) {
            let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
            if failure.as_ref().is_none_or(|(other, _)| number < *other) {
                *failure = Some((number, error));
            }
        }
    };
    // Each device gets one thread, so its kernels do not share their work.
    let threads = threads()?;
    let busy = count >= threads;
    let is_done = count > 1
        && team(threads).is_some_and(|team| {
            team.run(count as u32, &|claim| {
                for number in claim {
                    if busy { alone(|| one(number as usize)) } else { one(number as usize) }
                }
            })
        });
    if !is_done {
        (0..count).for_each(one);
    }
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}
