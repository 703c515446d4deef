//! Accounts for a device's memory, and keeps freed memory for the next buffer of its size, so that repeated steps
//! neither allocate nor fault pages in.

use super::Owner;
use crate::error::{Held, LARGEST_TOLD, MemoryReport};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tinyspec_backends::Memory;

/// The most freed memory to keep, in bytes.
const KEPT_BYTES: usize = 2 << 30;

/// A device's memory.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Account>);

#[derive(Default)]
struct Account {
    free: FxHashMap<usize, Vec<Arc<dyn Memory>>>,
    kept: usize,
    held: FxHashMap<u64, (Owner, usize)>,
    next: u64,
    used: usize,
    peak: usize,
    limit: Option<u64>,
}

/// Memory that is accounted for.
pub(crate) struct Lease {
    /// Names the entry of the account.
    pub ticket: u64,
    /// Memory of the size class, if some was kept; otherwise to be allocated.
    pub memory: Option<Arc<dyn Memory>>,
}

impl Pool {
    /// Rounds a size up to an eighth of its power of two: little is wasted, and similar sizes share memory. `None` if
    /// no memory is that large.
    pub fn class(bytes: usize) -> Option<usize> {
        let granule = (bytes.max(1).checked_next_power_of_two()? / 8).max(64);
        bytes.max(1).checked_next_multiple_of(granule)
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accounts for memory of a size class; `None` if that would exceed the limit.
    pub fn lease(&self, class: usize, bytes: usize, owner: &Owner) -> Option<Lease> {
        let mut account = self.account();
        let used = account.used.checked_add(class)?;
        if account.limit.is_some_and(|limit| used as u64 > limit) {
            return None;
        }
        let memory = account.free.get_mut(&class).and_then(Vec::pop);
        match memory {
            Some(_) => account.kept -= class,
            // New memory together with kept memory must not exceed the limit.
            None if account.limit.is_some_and(|limit| (used + account.kept) as u64 > limit) => account.forget(),
            None => {}
        }
        account.used = used;
        let ticket = account.next;
        account.next += 1;
        account.held.insert(ticket, (owner.clone(), bytes));
        Some(Lease { ticket, memory })
    }

    /// Ends a lease and keeps its memory, if there is any. The peak is updated here, so that failed leases do not
    /// count.
    pub fn give(&self, ticket: u64, class: usize, memory: Option<Arc<dyn Memory>>) {
        let mut account = self.account();
        account.held.remove(&ticket);
        if memory.is_some() {
            account.peak = account.peak.max(account.used);
        }
        account.used -= class;
        if let Some(memory) = memory
            && account.kept + class <= KEPT_BYTES
        {
            account.kept += class;
            account.free.entry(class).or_default().push(memory);
        }
    }

    /// Gives what is kept back to the device.
    pub fn forget(&self) {
        self.account().forget();
    }

    pub fn set_limit(&self, limit: Option<u64>) {
        self.account().limit = limit;
    }

    /// The memory use, and the largest buffers with their owners; of equal sizes the oldest first.
    pub fn report(&self, device: &str) -> MemoryReport {
        let account = self.account();
        let mut held: Vec<(u64, &Owner, usize)> =
            account.held.iter().map(|(&ticket, (owner, bytes))| (ticket, owner, *bytes)).collect();
        held.sort_unstable_by_key(|&(ticket, _, bytes)| (std::cmp::Reverse(bytes), ticket));
        MemoryReport {
            device: device.into(),
            used: account.used as u64,
            peak: account.peak.max(account.used) as u64,
            kept: account.kept as u64,
            limit: account.limit,
            buffers: held.len(),
            largest: held
                .into_iter()
                .take(LARGEST_TOLD)
                .map(|(_, owner, bytes)| Held {
                    what: owner.to_string(),
                    bytes: bytes as u64,
                    location: owner.location().map(Into::into),
                })
                .collect(),
        }
    }
}

impl Account {
    fn forget(&mut self) {
        self.free.clear();
        self.kept = 0;
    }
}
