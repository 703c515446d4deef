//! Loop-carried states that no run reads, such as an average of the weights, or that are read only through derived values.
//!
//! A state that stays lazy keeps the inputs of all of its predecessors alive, and the run that finally reads it computes them all.
//! Therefore a run also computes each tensor held by the program that depends on a dropped tensor which the last run left lazy. This
//! covers the tensors that the thread has made; of those made by other threads, a run computes what it depends on
//! ([`Walk::unevaluated`]).

use super::{Node, Walk};
use rustc_hash::FxHashSet;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

thread_local! {
    static UNREAD: RefCell<Unread> =
        RefCell::new(Unread { last_run: LAST_RUN.load(Ordering::Relaxed), candidates: Vec::new() });
}

/// The last run of any thread. A new thread starts from it, since a program may spawn one for each step.
static LAST_RUN: AtomicU64 = AtomicU64::new(0);

/// The least capacity for candidates.
const ROOM: usize = 64;

struct Unread {
    /// Nodes below this age were made before the last run of this thread.
    last_run: u64,
    /// Tensors made since that run that depend on a node it left lazy.
    candidates: Vec<Weak<Node>>,
}

/// `None` while the thread ends.
fn with_unread<T>(work: impl FnOnce(&mut Unread) -> T) -> Option<T> {
    UNREAD.try_with(|unread| work(&mut unread.borrow_mut())).ok()
}

/// Nodes below this age were made before the last run of this thread.
pub(super) fn last_run() -> u64 {
    with_unread(|unread| unread.last_run).unwrap_or_default()
}

/// Makes a new tensor a candidate if it depends on a node that the last run left lazy.
pub(super) fn note(node: &Arc<Node>) {
    if node.oldest_lazy() >= node.last_run {
        return;
    }
    with_unread(|unread| {
        let candidates = &mut unread.candidates;
        if candidates.len() == candidates.capacity() {
            // The next run may be far off: freed nodes make room.
            candidates.retain(|node| node.strong_count() > 0);
            candidates.reserve(candidates.len().max(ROOM));
        }
        candidates.push(Arc::downgrade(node));
    });
}

/// What a run begins with.
pub(crate) struct UnreadStates {
    pub states: Vec<Arc<Node>>,
    /// Nodes below this age were made before the last run of the thread.
    pub last_run: u64,
}

/// Begins a run of this thread and returns the states that it computes beside its roots.
pub(crate) fn unread_states() -> UnreadStates {
    let now = Node::next_age();
    LAST_RUN.store(now, Ordering::Relaxed);
    let taken =
        with_unread(|unread| (std::mem::replace(&mut unread.last_run, now), std::mem::take(&mut unread.candidates)));
    let (last_run, candidates) = taken.unwrap_or_default();
    let (mut states, mut later) = (vec![], vec![]);
    for state in candidates.iter().filter_map(Weak::upgrade).filter(|node| !node.is_unheld() && node.is_lazy()) {
        match older_one(&state, last_run) {
            Older::Dropped => states.push(state),
            Older::Held => later.push(Arc::downgrade(&state)),
            Older::None => {}
        }
    }
    if !later.is_empty() {
        with_unread(|unread| unread.candidates.append(&mut later));
    }
    if !states.is_empty() {
        states = Walk::of(&states).roots_with_room();
    }
    UnreadStates { states, last_run }
}

/// What a tensor depends on of what the last run left lazy.
enum Older {
    None,
    /// Only tensors that the program still holds. It may drop them later.
    Held,
    /// A tensor that the program has dropped.
    Dropped,
}

fn older_one(state: &Arc<Node>, last_run: u64) -> Older {
    let mut found = Older::None;
    let (mut met, mut open) = (FxHashSet::default(), vec![state.clone()]);
    while let Some(node) = open.pop() {
        for source in node.sources() {
            if source.oldest_lazy() >= last_run || !source.is_lazy() || !met.insert(Arc::as_ptr(&source)) {
                continue;
            }
            match source.is_unheld() {
                true if source.age < last_run && source.was_tensor() => return Older::Dropped,
                true => open.push(source),
                false => found = Older::Held,
            }
        }
    }
    found
}
