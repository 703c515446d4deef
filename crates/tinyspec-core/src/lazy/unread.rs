//! Loop-carried states that no run reads, such as an average of the weights, or reads only through other values.
//!
//! Left lazy, each keeps alive whatever its predecessors were made of, and the run that finally reads it computes all of them.
//! So a run also computes each tensor that the program holds and that was made of one which the last run of the thread left
//! undone and the program has dropped since.

use super::{Node, Walk};
use rustc_hash::FxHashSet;
use std::cell::RefCell;
use std::sync::{Arc, Weak};

thread_local! {
    static UNREAD: RefCell<Unread> = const { RefCell::new(Unread { last_run: 0, candidates: Vec::new() }) };
}

/// The least capacity for candidates.
const ROOM: usize = 64;

struct Unread {
    /// Nodes below this age were made before the last run of this thread.
    last_run: u64,
    /// Tensors made since, of something older that was undone.
    candidates: Vec<Weak<Node>>,
}

/// Makes a new tensor a candidate if it needs something that the last run left undone.
pub(super) fn note(node: &Arc<Node>) {
    UNREAD.with_borrow_mut(|unread| {
        if node.oldest_undone() >= unread.last_run {
            return;
        }
        let candidates = &mut unread.candidates;
        if candidates.len() == candidates.capacity() {
            // The next run may be far away: candidates that are gone make room.
            candidates.retain(|node| node.strong_count() > 0);
            candidates.reserve(candidates.len().max(ROOM));
        }
        candidates.push(Arc::downgrade(node));
    });
}

/// The states that the run which begins now computes beside its roots.
pub(crate) fn unread_states() -> Vec<Arc<Node>> {
    let (last_run, candidates) = UNREAD.with_borrow_mut(|unread| {
        (std::mem::replace(&mut unread.last_run, Node::next_age()), std::mem::take(&mut unread.candidates))
    });
    let (mut states, mut later) = (vec![], vec![]);
    for state in candidates.iter().filter_map(Weak::upgrade).filter(|node| !node.is_unheld() && node.is_lazy()) {
        match older_one(&state, last_run) {
            Older::Dropped => states.push(state),
            Older::Held => later.push(Arc::downgrade(&state)),
            Older::None => {}
        }
    }
    if !later.is_empty() {
        UNREAD.with_borrow_mut(|unread| unread.candidates.append(&mut later));
    }
    // Within a trace tensors have no value.
    match states.is_empty() || !Walk::of(&states).has_placeholder {
        true => states,
        false => vec![],
    }
}

/// What a tensor needs of what the last run left undone.
enum Older {
    None,
    /// Only tensors that the program still holds, and may drop later.
    Held,
    /// A tensor that the program has dropped.
    Dropped,
}

fn older_one(state: &Arc<Node>, last_run: u64) -> Older {
    let mut found = Older::None;
    let (mut met, mut open) = (FxHashSet::default(), vec![state.clone()]);
    while let Some(node) = open.pop() {
        for source in node.sources() {
            if source.oldest_undone() >= last_run || !source.is_lazy() || !met.insert(Arc::as_ptr(&source)) {
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
