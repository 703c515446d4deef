//! The account of a device's memory: what is in use and by whom, and what is kept for the next buffer of its size, so
//! that repeated steps neither allocate nor fault pages in.

use super::Owner;
use crate::error::{Held, LARGEST_TOLD, MemoryReport};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tinyspec_backends::Memory;

/// Kept beyond this, memory is given back.
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
    /// Sizes are rounded up to an eighth of their power of two: little is wasted, and near sizes share. `None` where
    /// no memory is as large.
    pub fn class(bytes: usize) -> Option<usize> {
        let granule = (bytes.max(1).checked_next_power_of_two()? / 8).max(64);
        bytes.max(1).checked_next_multiple_of(granule)
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes memory of a size class into account; `None` when that would exceed the limit.
    pub fn lease(&self, class: usize, bytes: usize, owner: &Owner) -> Option<Lease> {
        let mut account = self.account();
        let used = account.used.checked_add(class)?;
        if account.limit.is_some_and(|limit| used as u64 > limit) {
            return None;
        }
        let memory = account.free.get_mut(&class).and_then(Vec::pop);
        match memory {
            Some(_) => account.kept -= class,
            // New memory must not take what is kept beyond the limit.
            None if account.limit.is_some_and(|limit| (used + account.kept) as u64 > limit) => account.forget(),
            None => {}
        }
        account.used = used;
        let ticket = account.next;
        account.next += 1;
        account.held.insert(ticket, (owner.clone(), bytes));
        Some(Lease { ticket, memory })
    }

    /// Ends a lease; the memory is kept, if any came of it. It is then that a peak is over: a lease that came to nothing is none.
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

    /// Who holds how much; the number of the entries is the order of their birth.
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
