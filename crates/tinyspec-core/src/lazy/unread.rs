//! Loop-carried states that no run reads, such as an average of the weights, or that are read only through derived values.
//!
//! A state that stays lazy keeps the inputs of all of its predecessors alive, and the run that finally reads it computes them all.
//! Therefore a run also computes every held tensor that was made of a dropped state: one that an earlier run left lazy and that the
//! program no longer holds. This covers the tensors that the thread has made and their dependencies; of those made by other threads, a
//! run computes only what it depends on ([`Walk::unevaluated`]).

use super::{Node, Walk};
use rustc_hash::FxHashSet;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

thread_local! {
    static UNREAD: RefCell<Unread> = RefCell::new(Unread {
        last_run: LAST_RUN.load(Ordering::Relaxed),
        candidates: VecDeque::new(),
        waiting: VecDeque::new(),
    });
}

/// The last run of any thread. A new thread starts from it, since a program may spawn one for each step.
static LAST_RUN: AtomicU64 = AtomicU64::new(0);

/// The least capacity for candidates.
const ROOM: usize = 64;
/// Waiting candidates that a run searches at most: a program may hold thousands of lazy tensors.
const CANDIDATES: usize = 16;
/// Nodes, and held ones among them, that are searched at most for a candidate.
const NODES: usize = 4096;
const HELD: usize = 16;

struct Unread {
    /// Nodes below this age were made before the last run of this thread.
    last_run: u64,
    /// Tensors made since that run that depend on a node it left lazy.
    candidates: VecDeque<Weak<Node>>,
    /// Older ones that depend on tensors which the program still held.
    waiting: VecDeque<Weak<Node>>,
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
    if !is_made_of_older(node) {
        return;
    }
    with_unread(|unread| push(&mut unread.candidates, Arc::downgrade(node)));
}

/// Appends a node. A full queue drops freed nodes before it grows.
fn push(queue: &mut VecDeque<Weak<Node>>, node: Weak<Node>) {
    if queue.len() == queue.capacity() {
        queue.retain(|node| node.strong_count() > 0);
        queue.reserve(queue.len().max(ROOM));
    }
    queue.push_back(node);
}

/// Whether a lazy node depends on a node that a run of its thread had left lazy.
fn is_made_of_older(node: &Node) -> bool {
    node.oldest_lazy() < node.last_run
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
    let taken = with_unread(|unread| {
        let mut candidates = std::mem::take(&mut unread.candidates);
        candidates.extend(unread.waiting.drain(..unread.waiting.len().min(CANDIDATES)));
        (std::mem::replace(&mut unread.last_run, now), candidates)
    });
    let (last_run, candidates) = taken.unwrap_or_default();
    let mut states: Vec<Arc<Node>> = vec![];
    let mut waiting = Vec::new();
    for candidate in candidates.iter().filter_map(Weak::upgrade).filter(|node| !node.is_unheld() && node.is_lazy()) {
        match search(&candidate, last_run) {
            Found::State(state) => {
                if !Arc::ptr_eq(&state, &candidate) {
                    waiting.push(Arc::downgrade(&candidate));
                }
                if !states.iter().any(|known| Arc::ptr_eq(known, &state)) {
                    states.push(state);
                }
            }
            Found::Held => waiting.push(Arc::downgrade(&candidate)),
            Found::Nothing => {}
        }
    }
    if !waiting.is_empty() {
        with_unread(|unread| waiting.into_iter().for_each(|node| push(&mut unread.waiting, node)));
    }
    if !states.is_empty() {
        states = Walk::with_room(states);
    }
    UnreadStates { states, last_run }
}

/// What a candidate depends on.
enum Found {
    Nothing,
    /// Lazy tensors that the program holds. It may drop them later.
    Held,
    /// This held tensor, perhaps the candidate itself, depends on a dropped one that a run had left lazy before it was made.
    State(Arc<Node>),
}

/// Searches what `candidate` depends on, the nearest first: a state is a few steps away from the one before it.
fn search(candidate: &Arc<Node>, last_run: u64) -> Found {
    // With each node the nearest held one that depends on it.
    let mut open = VecDeque::from([(candidate.clone(), candidate.clone())]);
    let mut met: FxHashSet<*const Node> = FxHashSet::default();
    let mut held = 0;
    while let Some((node, owner)) = open.pop_front() {
        for source in node.sources() {
            if source.oldest_lazy() >= last_run || !source.is_lazy() || !met.insert(Arc::as_ptr(&source)) {
                continue;
            }
            if source.is_unheld() {
                if source.was_tensor() && source.age < owner.last_run {
                    return Found::State(owner);
                }
                open.push_back((source, owner.clone()));
                continue;
            }
            held += 1;
            if is_made_of_older(&source) && held < HELD {
                open.push_back((source.clone(), source));
            }
        }
        if met.len() > NODES {
            return Found::Held;
        }
    }
    if held > 0 { Found::Held } else { Found::Nothing }
}
