//! Inputs kept alive because a gradient may need them.

use crate::lazy::Node;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Keeps the inputs of the run that computed a tensor alive: a batch may be a local variable of the function that returned a loss.
/// Limits bound the memory of a program that keeps its losses, or never detaches its states.
pub(crate) struct Held(Mutex<Vec<Arc<Node>>>);

/// What a tensor holds its inputs for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Holding {
    /// It may be a loss: until its gradient is taken.
    Loss,
    /// The program has not asked for its value, so that it may still count on a gradient.
    Unrequested,
}

impl Holding {
    /// The most tensors of a thread that hold their inputs at the same time; the oldest is released first.
    fn most(self) -> usize {
        match self {
            Holding::Loss => 16,
            Holding::Unrequested => 32,
        }
    }
}

impl Held {
    pub fn new(holding: Holding, inputs: impl Iterator<Item = Arc<Node>>) -> Arc<Held> {
        thread_local!(static ALL: RefCell<[VecDeque<Weak<Held>>; 2]> = const {
            RefCell::new([VecDeque::new(), VecDeque::new()])
        });
        let held = Arc::new(Held(Mutex::new(inputs.collect())));
        let oldest = ALL.with_borrow_mut(|[losses, others]| {
            let (all, most) = (if holding == Holding::Loss { losses } else { others }, holding.most());
            if all.len() >= most {
                all.retain(|held| held.strong_count() > 0);
            }
            let oldest = if all.len() >= most { all.pop_front() } else { None };
            all.push_back(Arc::downgrade(&held));
            oldest
        });
        if let Some(oldest) = oldest.and_then(|oldest| oldest.upgrade()) {
            oldest.release();
        }
        held
    }

    pub fn release(&self) {
        let inputs = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        drop(inputs);
    }
}
