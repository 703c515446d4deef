//! Inputs kept alive because a gradient may need them.

use crate::lazy::Node;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Keeps the inputs of the run that computed a tensor alive: a batch may be a local variable of the function that returned a loss.
/// Limits bound the memory of a program that keeps its losses or never detaches its states.
pub(crate) struct Held {
    inputs: Mutex<Vec<Arc<Node>>>,
    bytes: u64,
}

/// Why a tensor holds its inputs.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Holding {
    /// It may be a loss: until its gradient is taken.
    Loss,
    /// It was computed without a request, so the program may still expect a gradient to reach its inputs.
    Unrequested,
}

impl Holding {
    /// How many tensors of a thread hold their inputs at the same time, and how many bytes of them, at most; the oldest is released
    /// first.
    fn most(self) -> (usize, Option<u64>) {
        match self {
            Holding::Loss => (16, None),
            Holding::Unrequested => (32, Some(64 << 20)),
        }
    }
}

/// The tensors that hold their inputs, the oldest first.
struct Holders {
    losses: VecDeque<Weak<Held>>,
    unrequested: VecDeque<Weak<Held>>,
}

/// Those of threads that have ended, under the limits of one thread: a program may spawn a thread for each step.
static ENDED: Mutex<Holders> = Mutex::new(Holders::NONE);

thread_local! {
    static OWN: RefCell<Holders> = const { RefCell::new(Holders::NONE) };
}

impl Holders {
    const NONE: Holders = Holders { losses: VecDeque::new(), unrequested: VecDeque::new() };

    /// Adds holders, and removes those that exceed the limits.
    fn add(&mut self, holding: Holding, new: impl IntoIterator<Item = Weak<Held>>) -> Vec<Arc<Held>> {
        let (most, most_bytes) = holding.most();
        let all = match holding {
            Holding::Loss => &mut self.losses,
            Holding::Unrequested => &mut self.unrequested,
        };
        all.extend(new);
        if all.len() > most {
            all.retain(|held| held.strong_count() > 0);
        }
        let held_bytes =
            |all: &VecDeque<Weak<Held>>| total(all.iter().filter_map(Weak::upgrade).map(|held| held.bytes));
        let mut excess = most_bytes.map_or(0, |most| held_bytes(all).saturating_sub(most));
        let mut removed = vec![];
        while all.len() > most || excess > 0 {
            let Some(oldest) = all.pop_front() else { break };
            if let Some(oldest) = oldest.upgrade() {
                excess = excess.saturating_sub(oldest.bytes);
                removed.push(oldest);
            }
        }
        removed
    }
}

impl Drop for Holders {
    /// The thread ends. Others may have its tensors.
    fn drop(&mut self) {
        let mut removed = vec![];
        for (holding, own) in [(Holding::Loss, &mut self.losses), (Holding::Unrequested, &mut self.unrequested)] {
            own.retain(|held| held.strong_count() > 0);
            removed.extend(add_ended(holding, own.drain(..)));
        }
        removed.iter().for_each(|held| held.release());
    }
}

fn add_ended(holding: Holding, new: impl IntoIterator<Item = Weak<Held>>) -> Vec<Arc<Held>> {
    ENDED.lock().unwrap_or_else(PoisonError::into_inner).add(holding, new)
}

impl Held {
    pub fn new(holding: Holding, inputs: impl Iterator<Item = Arc<Node>>) -> Arc<Held> {
        let inputs: Vec<Arc<Node>> = inputs.collect();
        let bytes = total(inputs.iter().map(|input| input.bytes()));
        let held = Arc::new(Held { inputs: Mutex::new(inputs), bytes });
        let new = [Arc::downgrade(&held)];
        let removed = OWN.try_with(|own| own.borrow_mut().add(holding, new.clone()));
        let removed = removed.unwrap_or_else(|_| add_ended(holding, new));
        removed.iter().for_each(|held| held.release());
        held
    }

    pub fn release(&self) {
        let inputs = std::mem::take(&mut *self.inputs.lock().unwrap_or_else(PoisonError::into_inner));
        drop(inputs);
    }
}

fn total(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}
