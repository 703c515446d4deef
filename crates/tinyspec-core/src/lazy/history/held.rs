//! Inputs kept alive because a gradient may need them.

use crate::lazy::Node;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Keeps the inputs of the run that computed a tensor alive: a batch may be a local variable of the function that returned a loss.
/// Limits bound the memory of a program that keeps its losses, or never detaches its states.
pub(crate) struct Held {
    inputs: Mutex<Vec<Arc<Node>>>,
    bytes: u64,
}

/// What a tensor holds its inputs for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Holding {
    /// It may be a loss: until its gradient is taken.
    Loss,
    /// The program has not asked for its value, so that it may still count on a gradient.
    Unrequested,
}

impl Holding {
    /// The most tensors of a thread that hold their inputs at the same time, and the most bytes of these; the oldest is released first.
    fn most(self) -> (usize, u64) {
        match self {
            Holding::Loss => (16, u64::MAX),
            Holding::Unrequested => (32, 64 << 20),
        }
    }
}

impl Held {
    pub fn new(holding: Holding, inputs: impl Iterator<Item = Arc<Node>>) -> Arc<Held> {
        thread_local!(static ALL: RefCell<[VecDeque<Weak<Held>>; 2]> = const {
            RefCell::new([VecDeque::new(), VecDeque::new()])
        });
        let inputs: Vec<Arc<Node>> = inputs.collect();
        let bytes = inputs.iter().fold(0u64, |sum, input| sum.saturating_add(input.bytes()));
        let held = Arc::new(Held { inputs: Mutex::new(inputs), bytes });
        let released = ALL.with_borrow_mut(|[losses, others]| {
            let (most, most_bytes) = holding.most();
            let all = if holding == Holding::Loss { losses } else { others };
            all.push_back(Arc::downgrade(&held));
            let mut living: Vec<Arc<Held>> = all.iter().filter_map(Weak::upgrade).collect();
            let mut bytes = living.iter().fold(0u64, |sum, held| sum.saturating_add(held.bytes));
            let mut count = 0;
            while living.len() - count > most || bytes > most_bytes && count < living.len() {
                bytes = bytes.saturating_sub(living[count].bytes);
                count += 1;
            }
            *all = living[count..].iter().map(Arc::downgrade).collect();
            living.truncate(count);
            living
        });
        released.iter().for_each(|held| held.release());
        held
    }

    pub fn release(&self) {
        let inputs = std::mem::take(&mut *self.inputs.lock().unwrap_or_else(PoisonError::into_inner));
        drop(inputs);
    }
}
