//! Launches that may not be finished: if a call reports that a kernel has failed, it was one of these.

use super::device::Shared;
use super::events::Event;
use super::{Failure, Functions, Vendor};
use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard, PoisonError};

/// The most batches in flight; before enqueuing another one, the oldest is waited for.
const MOST: usize = 64;
/// How many of the kernels that may have failed are named.
const TOLD: usize = 6;

#[derive(Debug, Default)]
pub(super) struct Flight {
    batches: VecDeque<Batch>,
    /// Launched since the last event.
    open: Vec<Launched>,
}

/// Launches that were enqueued together.
#[derive(Debug)]
struct Batch {
    launched: Vec<Launched>,
    done: Event,
}

/// A launched kernel, with the user's line that it computes.
#[derive(Clone, Debug)]
pub(super) struct Launched {
    pub name: Arc<str>,
    pub line: Arc<str>,
}

impl std::fmt::Display for Launched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &*self.line {
            "" => write!(f, "`{}`", self.name),
            line => write!(f, "`{}` at {line}", self.name),
        }
    }
}

impl Flight {
    /// Takes all events, which nobody waits for any more.
    pub fn events(&mut self) -> Vec<Event> {
        self.batches.drain(..).map(|batch| batch.done).collect()
    }

    /// The kernels in flight when one failed: the oldest, and a description of the others.
    pub fn suspects(&mut self) -> Option<(Launched, String)> {
        let mut all = self.batches.drain(..).flat_map(|batch| batch.launched).chain(self.open.drain(..));
        let first = all.next()?;
        let others: Vec<Launched> = all.collect();
        if others.is_empty() {
            return Some((first, String::new()));
        }
        let told: Vec<String> = others.iter().take(TOLD).map(Launched::to_string).collect();
        let more = match others.len().saturating_sub(TOLD) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some((first, format!(", or one launched behind it ({}{more})", told.join(", "))))
    }
}

impl<V: Vendor> Shared<V> {
    pub fn flight(&self) -> MutexGuard<'_, Flight> {
        self.flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a kernel that is about to be launched.
    pub fn remember(&self, launched: Launched) {
        self.flight().open.push(launched);
    }

    /// Closes the current batch.
    pub fn close(&self, functions: &Functions) -> Result<(), Failure> {
        let mut flight = self.flight();
        if !flight.open.is_empty() {
            let done = self.mark(functions)?;
            let launched = std::mem::take(&mut flight.open);
            flight.batches.push_back(Batch { launched, done });
        }
        Ok(())
    }

    /// Removes finished batches, and waits if there are too many others.
    pub fn land(&self, functions: &Functions) -> Result<(), Failure> {
        let mut flight = self.flight();
        while let Some(batch) = flight.batches.front() {
            if flight.batches.len() >= MOST {
                self.wait_for(functions, &batch.done)?;
            } else if !self.has_happened(functions, &batch.done)? {
                break;
            }
            flight.batches.pop_front().into_iter().for_each(|batch| self.give_event(batch.done));
        }
        Ok(())
    }
}
