//! Inputs kept alive because a gradient may need them.

use crate::lazy::Node;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The most losses of a thread that hold their inputs at the same time; the oldest is released first.
const MOST: usize = 16;

/// Keeps the inputs of the run that computed a loss alive until its gradient is taken: a batch may be a local variable of the
/// function that returned the loss. The limit bounds the memory of a program that keeps its losses.
pub(crate) struct Held(Mutex<Vec<Arc<Node>>>);

impl Held {
    pub fn new(inputs: impl Iterator<Item = Arc<Node>>) -> Arc<Held> {
        thread_local!(static ALL: RefCell<VecDeque<Weak<Held>>> = const { RefCell::new(VecDeque::new()) });
        let held = Arc::new(Held(Mutex::new(inputs.collect())));
        let oldest = ALL.with_borrow_mut(|all| {
            if all.len() >= MOST {
                all.retain(|held| held.strong_count() > 0);
            }
            let oldest = if all.len() >= MOST { all.pop_front() } else { None };
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
