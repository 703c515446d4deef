//! Inputs kept alive because a gradient may need them.

use crate::device::on_shortage;
use crate::lazy::Node;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::ThreadId;

/// Keeps the inputs of the run that computed a tensor alive: a batch may be a local variable of the function that returned a loss.
/// Limits bound the memory of a program that keeps its losses or never detaches its states, and all inputs are released when a device
/// is short of memory.
pub(crate) struct Held {
    inputs: Mutex<Vec<Arc<Node>>>,
    bytes: u64,
}

/// Why a tensor holds its inputs.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Holding {
    /// It may be a loss: until its gradient is taken.
    Loss,
    /// The library computed it unrequested, so the program may still take gradients with respect to its inputs.
    Unrequested,
    /// Some of its inputs could not be computed again: data that were new, such as a batch, or detached values.
    Data,
}

impl Holding {
    /// The limits per thread: the number of tensors that hold their inputs, and the bytes of these inputs and of the
    /// programs that led from one to the next. The oldest is released first, the newest never.
    fn most(self) -> (usize, u64) {
        match self {
            Holding::Loss => (16, 1 << 30),
            Holding::Unrequested => (256, 256 << 20),
            Holding::Data => (4096, 64 << 20),
        }
    }
}

/// Tensors that hold their inputs.
#[derive(Default)]
struct Holders {
    losses: Queue,
    unrequested: Queue,
    data: Queue,
}

impl Holders {
    fn queues(self) -> [(Holding, Queue); 3] {
        let Holders { losses, unrequested, data } = self;
        [(Holding::Loss, losses), (Holding::Unrequested, unrequested), (Holding::Data, data)]
    }

    fn queue(&mut self, holding: Holding) -> &mut Queue {
        match holding {
            Holding::Loss => &mut self.losses,
            Holding::Unrequested => &mut self.unrequested,
            Holding::Data => &mut self.data,
        }
    }
}

/// The oldest first.
#[derive(Default)]
struct Queue {
    holders: VecDeque<Weak<Held>>,
    /// Bytes of their inputs and programs, including dropped holders until the queue is full.
    bytes: u64,
}

/// The holders of a process.
#[derive(Default)]
struct All {
    threads: FxHashMap<ThreadId, Holders>,
    /// Those of threads that have ended, under the limits of one thread: a program may spawn a thread for each step.
    ended: Holders,
}

static ALL: LazyLock<Mutex<All>> = LazyLock::new(|| {
    on_shortage(release_all);
    Mutex::default()
});

fn all() -> MutexGuard<'static, All> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Dropped when its thread ends.
struct End;

thread_local! {
    static END: End = const { End };
}

impl Drop for End {
    fn drop(&mut self) {
        let mut all = all();
        let Some(own) = all.threads.remove(&std::thread::current().id()) else { return };
        let mut released = vec![];
        for (holding, queue) in own.queues() {
            released.extend(all.ended.queue(holding).add(holding, queue.living()));
        }
        drop(all);
        released.iter().for_each(|held| held.release());
    }
}

impl Queue {
    /// Adds holders, and removes the oldest beyond the limits.
    fn add(&mut self, holding: Holding, new: Vec<Arc<Held>>) -> Vec<Arc<Held>> {
        let (most, most_bytes) = holding.most();
        for held in &new {
            self.bytes = self.bytes.saturating_add(held.bytes);
            self.holders.push_back(Arc::downgrade(held));
        }
        let is_full = |queue: &Queue| queue.holders.len() > most || queue.bytes > most_bytes;
        if is_full(self) {
            let living = std::mem::take(self).living();
            self.bytes = living.iter().fold(0, |total: u64, held| total.saturating_add(held.bytes));
            self.holders = living.iter().map(Arc::downgrade).collect();
        }
        let mut removed = vec![];
        if is_full(self) {
            // A little less remains, so that a full queue is not searched each time.
            let (kept, kept_bytes) = (most - most / 32, most_bytes - most_bytes / 32);
            while self.holders.len() > kept || self.bytes > kept_bytes && self.holders.len() > 1 {
                let Some(oldest) = self.holders.pop_front().and_then(|oldest| oldest.upgrade()) else { break };
                self.bytes = self.bytes.saturating_sub(oldest.bytes);
                removed.push(oldest);
            }
        }
        removed
    }

    fn living(self) -> Vec<Arc<Held>> {
        self.holders.iter().filter_map(Weak::upgrade).collect()
    }
}

/// Releases all inputs; returns whether there were any.
fn release_all() -> bool {
    let All { threads, ended } = std::mem::take(&mut *all());
    let every = threads.into_values().chain([ended]).flat_map(Holders::queues);
    let released: Vec<Arc<Held>> = every.flat_map(|(_, queue)| queue.living()).collect();
    released.iter().for_each(|held| held.release());
    !released.is_empty()
}

impl Held {
    /// Holds the inputs of a run. `program` is the size of its program if no other run shares that.
    pub fn new(holding: Holding, inputs: impl Iterator<Item = Arc<Node>>, program: u64) -> Arc<Held> {
        let inputs: Vec<Arc<Node>> = inputs.collect();
        let bytes = inputs.iter().fold(program, |total: u64, input| total.saturating_add(input.bytes()));
        let held = Arc::new(Held { inputs: Mutex::new(inputs), bytes });
        let is_ending = END.try_with(|_| ()).is_err();
        let mut all = all();
        let holders = match is_ending {
            true => &mut all.ended,
            false => all.threads.entry(std::thread::current().id()).or_default(),
        };
        let removed = holders.queue(holding).add(holding, vec![held.clone()]);
        drop(all);
        removed.iter().for_each(|held| held.release());
        held
    }

    pub fn release(&self) {
        let inputs = std::mem::take(&mut *self.inputs.lock().unwrap_or_else(PoisonError::into_inner));
        drop(inputs);
    }
}
