//! What several devices do beside each other, where the host has threads for them.

use crate::threads::threads;
use crate::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};
use tinyspec_backends::cpu::{Team, TeamOfProcess, alone};

/// The threads that run devices; none where there is one only.
fn team(threads: usize) -> Option<Arc<Team>> {
    static TEAM: TeamOfProcess = TeamOfProcess::new();
    if threads > 1 { TEAM.get(threads) } else { None }
}

/// Does `work` for each number below `count`: several at once, unless the threads are at work for somebody else.
///
/// # Errors
/// That of the lowest number. Where one fails, others may have been done.
pub(super) fn together(count: usize, work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    let failure: Mutex<Option<(usize, Error)>> = Mutex::new(None);
    let one = |number: usize| {
        if let Err(error) = work(number) {
            let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
            if failure.as_ref().is_none_or(|(other, _)| number < *other) {
                *failure = Some((number, error));
            }
        }
    };
    // With a thread for each, kernels have no other to share their work with.
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
