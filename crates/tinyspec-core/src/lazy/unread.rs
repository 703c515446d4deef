//! Loop-carried states that no run reads, such as an average of the weights, or that are read only through derived values.
//!
//! A state that stays lazy keeps the inputs of all of its predecessors alive, and the run that finally reads it computes them all.
//! Therefore a run also computes each tensor held by the program that depends on a dropped tensor which the last run left lazy. This
//! covers the tensors that the thread has made and what these depend on; of those made by other threads, a run computes what it
//! depends on ([`Walk::unevaluated`]).

use super::node::Sources;
use super::{Node, Walk};
use rustc_hash::FxHashMap;
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
    let mut search = Search { last_run, found: FxHashMap::default(), states: vec![] };
    let mut later = vec![];
    for candidate in candidates.iter().filter_map(Weak::upgrade).filter(|node| !node.is_unheld() && node.is_lazy()) {
        if search.sources_of(&candidate) == Older::Held {
            later.push(Arc::downgrade(&candidate));
        }
    }
    if !later.is_empty() {
        with_unread(|unread| unread.candidates.append(&mut later));
    }
    let mut states = search.states;
    if !states.is_empty() {
        states = Walk::with_room(states);
    }
    UnreadStates { states, last_run }
}

/// What a tensor depends on of what the last run left lazy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Older {
    None,
    /// Only tensors that the program still holds. It may drop them later.
    Held,
    /// A tensor that the program has dropped.
    Dropped,
}

/// The search for held tensors that depend on dropped ones.
struct Search {
    last_run: u64,
    /// By node, what its sources are or depend on.
    found: FxHashMap<*const Node, Older>,
    /// Held tensors that depend on dropped ones, without a held one in between.
    states: Vec<Arc<Node>>,
}

impl Search {
    /// What the sources of `node` are, or depend on. Without recursion.
    fn sources_of(&mut self, node: &Arc<Node>) -> Older {
        struct Open {
            node: Arc<Node>,
            sources: Sources,
            next: usize,
            found: Older,
        }
        let open = |node: &Arc<Node>| Open { node: node.clone(), sources: node.sources(), next: 0, found: Older::None };
        if let Some(&found) = self.found.get(&Arc::as_ptr(node)) {
            return found;
        }
        let mut path = vec![open(node)];
        loop {
            let Some(last) = path.last_mut() else { return Older::None };
            if let Some(source) = last.sources.get(last.next) {
                match self.of(source) {
                    Some(older) => {
                        last.found = last.found.max(older);
                        last.next += 1;
                    }
                    None => {
                        let source = open(source);
                        path.push(source);
                    }
                }
                continue;
            }
            let found = last.found;
            self.found.insert(Arc::as_ptr(&last.node), found);
            if found == Older::Dropped && !last.node.is_unheld() {
                self.states.push(last.node.clone());
            }
            path.pop();
            if path.is_empty() {
                return found;
            }
        }
    }

    /// What a source is, or what an unheld one depends on; `None` if its sources have not been searched.
    fn of(&self, source: &Arc<Node>) -> Option<Older> {
        if source.oldest_lazy() >= self.last_run || !source.is_lazy() {
            return Some(Older::None);
        }
        let is_unheld = source.is_unheld();
        if is_unheld && source.age < self.last_run && source.was_tensor() {
            return Some(Older::Dropped);
        }
        let found = self.found.get(&Arc::as_ptr(source))?;
        Some(if is_unheld { *found } else { Older::Held })
    }
}
