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
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

thread_local! {
    static UNREAD: RefCell<Unread> = RefCell::new(Unread {
        last_run: LAST_RUN.load(Ordering::Relaxed),
        candidates: Vec::new(),
        waiting: VecDeque::new(),
    });
}

/// The last run of any thread. A new thread starts from it, since a program may spawn one for each step.
static LAST_RUN: AtomicU64 = AtomicU64::new(0);

/// The least capacity for candidates.
const ROOM: usize = 64;
/// Waiting candidates and nodes that a run searches at most: a program may hold thousands of lazy tensors.
const CANDIDATES: usize = 16;
const NODES: usize = 512;

struct Unread {
    /// Nodes below this age were made before the last run of this thread.
    last_run: u64,
    /// Tensors made since that run that depend on a node it left lazy.
    candidates: Vec<Weak<Node>>,
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

fn add(waiting: &mut VecDeque<Weak<Node>>, mut more: VecDeque<Weak<Node>>) {
    if waiting.len() + more.len() > waiting.capacity() {
        waiting.retain(|node| node.strong_count() > 0);
        waiting.reserve(waiting.len().max(ROOM) + more.len());
    }
    waiting.append(&mut more);
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
    let mut search = Search { last_run, found: FxHashMap::default(), states: vec![], searched: 0 };
    let mut waiting = VecDeque::new();
    for candidate in candidates.iter().filter_map(Weak::upgrade).filter(|node| !node.is_unheld() && node.is_lazy()) {
        let below = search.below(&candidate);
        if below.is_held && below.dropped >= candidate.last_run {
            waiting.push_back(Arc::downgrade(&candidate));
        }
    }
    if !waiting.is_empty() {
        with_unread(|unread| add(&mut unread.waiting, waiting));
    }
    let mut states = search.states;
    if !states.is_empty() {
        states = Walk::with_room(states);
    }
    UnreadStates { states, last_run }
}

/// The lazy tensors that a node depends on without a held one in between.
#[derive(Clone, Copy)]
struct Below {
    /// The age of the oldest one that the program has dropped; above all ages if there is none.
    dropped: u64,
    /// Whether the program holds one. It may drop it later.
    is_held: bool,
}

impl Below {
    const NOTHING: Below = Below { dropped: u64::MAX, is_held: false };
}

/// The search for held tensors that depend on dropped ones which a run had left lazy before they were made.
struct Search {
    last_run: u64,
    /// By node; the nodes are kept alive.
    found: FxHashMap<*const Node, (Arc<Node>, Below)>,
    states: Vec<Arc<Node>>,
    /// Nodes searched so far.
    searched: usize,
}

impl Search {
    /// What is below `node`. Without recursion.
    fn below(&mut self, node: &Arc<Node>) -> Below {
        struct Open {
            node: Arc<Node>,
            sources: Sources,
            next: usize,
            below: Below,
            /// When the nearest held user was made, its thread's last run had this age.
            last_run: u64,
        }
        let open = |node: &Arc<Node>, last_run: u64| Open {
            node: node.clone(),
            sources: node.sources(),
            next: 0,
            below: Below::NOTHING,
            last_run: if node.is_unheld() { last_run } else { node.last_run },
        };
        if let Some(&(_, below)) = self.found.get(&Arc::as_ptr(node)) {
            return below;
        }
        let mut path = vec![open(node, 0)];
        loop {
            let Some(last) = path.last_mut() else { return Below::NOTHING };
            if let Some(source) = last.sources.get(last.next) {
                match self.source(source) {
                    Some(Below { dropped, is_held }) => {
                        last.below.dropped = last.below.dropped.min(dropped);
                        last.below.is_held |= is_held;
                        // One is enough.
                        let is_found = last.below.dropped < last.last_run;
                        last.next = if is_found { last.sources.len() } else { last.next + 1 };
                    }
                    None => {
                        let source = open(source, last.last_run);
                        path.push(source);
                        self.searched += 1;
                    }
                }
                continue;
            }
            let Some(Open { node, below, .. }) = path.pop() else { return Below::NOTHING };
            if below.dropped < node.last_run && !node.is_unheld() {
                self.states.push(node.clone());
            }
            self.found.insert(Arc::as_ptr(&node), (node, below));
            if path.is_empty() {
                return below;
            }
        }
    }

    /// A source and what is below it; `None` if that has not been searched.
    fn source(&self, source: &Arc<Node>) -> Option<Below> {
        const HELD: Below = Below { is_held: true, ..Below::NOTHING };
        if source.oldest_lazy() >= self.last_run || !source.is_lazy() {
            return Some(Below::NOTHING);
        }
        let is_unheld = source.is_unheld();
        if !is_unheld && !is_made_of_older(source) || self.searched >= NODES {
            return Some(HELD);
        }
        let &(_, below) = self.found.get(&Arc::as_ptr(source))?;
        Some(match is_unheld {
            true if source.was_tensor() => Below { dropped: below.dropped.min(source.age), ..below },
            true => below,
            false => HELD,
        })
    }
}
