//! Inputs that live on because a gradient may need them.

use crate::lazy::Node;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Numbers that hold inputs at a time, in a thread; the one that has held them longest lets go first.
const MOST: usize = 16;

/// The inputs of the run that computed a loss, until a gradient was asked of it: a batch may have been a local of the function
/// that returned the loss. A program that keeps its losses so holds few batches.
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
