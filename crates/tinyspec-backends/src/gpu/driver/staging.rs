//! Pinned host memory for copies: the device accesses it by DMA, so uploads are asynchronous, and a download overlaps
//! with copying the previous one.

use super::device::Shared;
use super::events::Event;
use super::{Failure, FailureKind, Functions, Vendor, flag};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::{MutexGuard, PoisonError};

const BYTES: usize = 16 << 20;
/// The most bytes of one transfer: the ring holds several.
pub(super) const CHUNK: usize = BYTES / 4;
/// The most transfers in flight.
const MOST: usize = 256;
const ALIGNMENT: usize = 64;

/// A ring of pinned memory.
#[derive(Debug, Default)]
pub(super) struct Staging {
    memory: Pinned,
    /// Where the next piece begins.
    head: usize,
    /// Pieces used by transfers, oldest first.
    used: VecDeque<(Range<usize>, Event)>,
}

#[derive(Debug, Default)]
enum Pinned {
    #[default]
    Unknown,
    At(usize),
    /// The driver pins no memory.
    Refused,
}

impl<V: Vendor> Shared<V> {
    /// The ring. It stays locked while pieces of it are filled or copied.
    pub fn staging(&self) -> MutexGuard<'_, Staging> {
        self.staging.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A piece that no transfer uses; `None` if memory cannot be pinned. `bytes` is at most a chunk.
    pub fn piece(
        &self,
        functions: &Functions,
        staging: &mut Staging,
        bytes: usize,
    ) -> Result<Option<(*mut u8, Range<usize>)>, Failure> {
        let Some(start) = self.pinned(functions, staging)? else { return Ok(None) };
        let head = if staging.head + bytes > BYTES { 0 } else { staging.head };
        let piece = head..head + bytes;
        let meets = |used: &Range<usize>| used.start < piece.end && piece.start < used.end;
        while staging.used.len() >= MOST || staging.used.iter().any(|(used, _)| meets(used)) {
            let Some((_, event)) = staging.used.front() else { break };
            self.wait_for(functions, event)?;
            staging.used.pop_front().into_iter().for_each(|(_, event)| self.give_event(event));
        }
        staging.head = piece.end.next_multiple_of(ALIGNMENT);
        // SAFETY: the piece is inside the ring.
        Ok(Some((unsafe { start.add(piece.start) }, piece)))
    }

    /// Records that a transfer of a piece was enqueued.
    pub fn in_transit(&self, functions: &Functions, staging: &mut Staging, piece: Range<usize>) -> Result<(), Failure> {
        let event = self.mark(functions)?;
        staging.used.push_back((piece, event));
        Ok(())
    }

    /// Waits for the transfer that was enqueued before the last `others`.
    pub fn arrive(&self, functions: &Functions, staging: &Staging, others: usize) -> Result<(), Failure> {
        let number = staging.used.len().checked_sub(others + 1);
        number.map_or(Ok(()), |number| self.wait_for(functions, &staging.used[number].1))
    }

    fn pinned(&self, functions: &Functions, staging: &mut Staging) -> Result<Option<*mut u8>, Failure> {
        if let Pinned::Unknown = staging.memory {
            let mut memory = ptr::null_mut();
            // SAFETY: the address is written to a local variable.
            let pinned = self.driver.check(unsafe { functions.pin(&mut memory, BYTES, flag::PINNED_FOR_ALL) });
            staging.memory = match pinned {
                Ok(()) => Pinned::At(memory as usize),
                Err(failure) if failure.kind == FailureKind::Lost => return Err(failure),
                Err(_) => Pinned::Refused,
            };
        }
        match staging.memory {
            Pinned::At(address) => Ok(Some(address as *mut u8)),
            _ => Ok(None),
        }
    }

    /// Nothing is enqueued any more.
    pub(super) fn unpin(&mut self, functions: &Functions) {
        let staging = std::mem::take(self.staging.get_mut().unwrap_or_else(PoisonError::into_inner));
        staging.used.into_iter().for_each(|(_, event)| self.give_event(event));
        if let Pinned::At(address) = staging.memory {
            // SAFETY: the driver pinned it, and it is unpinned once.
            let _ = unsafe { functions.unpin(address as *mut c_void) };
        }
    }
}
