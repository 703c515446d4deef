//! Loop-carried states that no run reads, such as an average of the weights, or that are read only through derived values.
//!
//! A state that stays lazy keeps the inputs of all of its predecessors alive, and the run that finally reads it computes them all.
//! Therefore a run also computes every held tensor that was made of a dropped state: one that an earlier run left lazy and that the
//! program no longer holds. This covers the tensors that the thread has made and their dependencies; of those made by other threads, a
//! run computes only what it depends on ([`Walk::unevaluated`]).
//!
//! A small lazy value that a loop keeps for later, such as the accuracy of each batch, keeps the old weights alive after they have been
//! updated. Once a line has produced such a metric again while the program still holds the previous one, every run also computes the
//! metrics of that line. They share most of their computation with the training step.

use super::{Node, Walk};
use rustc_hash::FxHashSet;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

thread_local! {
    static UNREAD: RefCell<Unread> = RefCell::new(Unread {
        last_run: LAST_RUN.load(Ordering::Relaxed),
        candidates: VecDeque::new(),
        waiting: VecDeque::new(),
        metrics: VecDeque::new(),
        dropped: 0,
    });
}

/// The last run of any thread. A new thread starts from it, since a program may spawn one for each step.
static LAST_RUN: AtomicU64 = AtomicU64::new(0);

/// How many states programs have dropped.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Source lines whose metrics were found to keep dropped states alive.
static METRICS: LazyLock<Mutex<FxHashSet<&'static Location<'static>>>> = LazyLock::new(Mutex::default);

/// The most bytes of a metric.
const METRIC: u64 = 1 << 16;
/// The least capacity for candidates.
const ROOM: usize = 64;
/// The most waiting candidates that a run searches: a program may hold thousands of lazy tensors.
const CANDIDATES: usize = 16;
/// The most nodes that the search for one tensor visits, and the most held tensors that it collects.
const NODES: usize = 4096;
const HELD: usize = 16;
/// The most held tensors below the candidates that a run treats as candidates, too.
const OTHERS: usize = 64;

struct Unread {
    /// Nodes below this age were made before the last run of this thread.
    last_run: u64,
    /// Tensors made since that run that depend on a node it left lazy.
    candidates: VecDeque<Weak<Node>>,
    /// Older ones that depend on tensors which the program still held.
    waiting: VecDeque<Weak<Node>>,
    /// Small tensors that depend on a state, in the order of their age.
    metrics: VecDeque<Weak<Node>>,
    /// [`DROPPED`] when `metrics` were last searched.
    dropped: u64,
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
    if is_made_of_older(node) {
        with_unread(|unread| push(&mut unread.candidates, Arc::downgrade(node)));
    }
    if node.reads_state() && node.bytes() <= METRIC {
        with_unread(|unread| push(&mut unread.metrics, Arc::downgrade(node)));
    }
}

/// The program has dropped a state.
pub(super) fn note_dropped_state() {
    DROPPED.fetch_add(1, Ordering::Relaxed);
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

impl Unread {
    /// The metrics that a run is to compute. The others stay in the queue as long as the program holds them.
    fn metrics_to_compute(&mut self) -> Vec<Arc<Node>> {
        let dropped = DROPPED.load(Ordering::Relaxed);
        let is_as_before = std::mem::replace(&mut self.dropped, dropped) == dropped;
        // Older metrics are searched again only if a state has been dropped since.
        let last_run = self.last_run;
        let is_searched = |node: &Weak<Node>| !is_as_before || node.upgrade().is_none_or(|node| node.age >= last_run);
        let first = self.metrics.iter().rposition(|node| !is_searched(node)).map_or(0, |last| last + 1);
        let mut lines = METRICS.lock().unwrap_or_else(PoisonError::into_inner);
        let is_open = |metric: &Arc<Node>| !metric.is_unheld() && metric.is_lazy() && !metric.is_state();
        let open: Vec<Arc<Node>> =
            self.metrics.split_off(first).iter().filter_map(Weak::upgrade).filter(is_open).collect();
        // A local variable of a loop would have been dropped before its line ran again.
        let again: FxHashSet<&Location> =
            open.iter().filter(|metric| metric.age >= last_run).filter_map(|metric| metric.location).collect();
        let is_again = |metric: &Node| metric.location.is_some_and(|line| again.contains(line));
        let mut found = vec![];
        for metric in &open {
            if metric.age < last_run && is_again(metric) && keeps_dropped_state(metric) {
                lines.extend(metric.location);
            }
            if metric.location.is_some_and(|line| lines.contains(line)) {
                found.push(metric.clone());
            } else {
                self.metrics.push_back(Arc::downgrade(metric));
            }
        }
        found
    }
}

/// Whether a lazy node is made of a computed state that the program has dropped.
fn keeps_dropped_state(node: &Arc<Node>) -> bool {
    let mut open = vec![node.clone()];
    let mut met: FxHashSet<*const Node> = FxHashSet::default();
    while let Some(node) = open.pop() {
        for source in node.sources() {
            if source.is_lazy() {
                if met.len() < NODES && met.insert(Arc::as_ptr(&source)) {
                    open.push(source);
                }
            } else if source.is_state() && source.is_unheld() {
                return true;
            }
        }
    }
    false
}

/// The unread states that a run computes in addition to its roots.
pub(crate) struct UnreadStates {
    pub states: Vec<Arc<Node>>,
    /// Nodes below this age were made before the last run of the thread.
    pub last_run: u64,
}

/// Begins a run of this thread and returns the states that it computes in addition to its roots.
pub(crate) fn unread_states() -> UnreadStates {
    let now = Node::next_age();
    LAST_RUN.store(now, Ordering::Relaxed);
    let taken = with_unread(|unread| {
        let metrics = unread.metrics_to_compute();
        let mut candidates = std::mem::take(&mut unread.candidates);
        candidates.extend(unread.waiting.drain(..unread.waiting.len().min(CANDIDATES)));
        (std::mem::replace(&mut unread.last_run, now), candidates, metrics)
    });
    let (last_run, candidates, metrics) = taken.unwrap_or_default();
    let (mut states, waiting) = among(candidates, last_run);
    if !waiting.is_empty() {
        with_unread(|unread| waiting.iter().for_each(|node| push(&mut unread.waiting, Arc::downgrade(node))));
    }
    states.extend(metrics);
    if !states.is_empty() {
        states = Walk::with_room(states);
    }
    UnreadStates { states, last_run }
}

/// The states among some tensors and the held ones that these depend on, and tensors that may become states when the program drops
/// another tensor.
fn among(candidates: VecDeque<Weak<Node>>, last_run: u64) -> (Vec<Arc<Node>>, Vec<Arc<Node>>) {
    let (mut states, mut waiting) = (vec![], vec![]);
    let mut open: VecDeque<Arc<Node>> = candidates.iter().filter_map(Weak::upgrade).collect();
    let mut met: FxHashSet<*const Node> = open.iter().map(Arc::as_ptr).collect();
    let mut explored: FxHashSet<*const Node> = FxHashSet::default();
    let most = open.len() + OTHERS;
    while let Some(candidate) = open.pop_front() {
        if candidate.is_unheld() || !candidate.is_lazy() {
            continue;
        }
        let Found { is_state, held } = search(&candidate, last_run, &mut explored);
        if is_state {
            states.push(candidate);
        } else if !held.is_empty() {
            waiting.push(candidate);
        }
        for node in held.into_iter().filter(|node| is_made_of_older(node)) {
            if met.len() < most && met.insert(Arc::as_ptr(&node)) {
                open.push_back(node);
            }
        }
    }
    (states, waiting)
}

/// The result of a search.
struct Found {
    /// The tensor depends on a dropped one that a run had left lazy before it was made.
    is_state: bool,
    /// Lazy tensors that the program holds, which it may drop later.
    held: Vec<Arc<Node>>,
}

/// Walks the dependences of a tensor up to the nearest held tensors, oldest first: the predecessor of a state is older than the other
/// operands of that state. Once the tensor is known to be a state, nodes that another search has `explored` are skipped:
/// the walk goes on only for the held tensors.
fn search(tensor: &Arc<Node>, last_run: u64, explored: &mut FxHashSet<*const Node>) -> Found {
    let mut found = Found { is_state: false, held: vec![] };
    let mut open = BTreeMap::from([(tensor.age, tensor.clone())]);
    let mut met: FxHashSet<*const Node> = FxHashSet::default();
    while let Some((_, node)) = open.pop_first() {
        if !Arc::ptr_eq(&node, tensor) && node.was_tensor() && node.age < tensor.last_run {
            found.is_state = true;
            continue;
        }
        if !explored.insert(Arc::as_ptr(&node)) && found.is_state {
            continue;
        }
        for source in node.sources() {
            if source.oldest_lazy() >= last_run || !source.is_lazy() || !met.insert(Arc::as_ptr(&source)) {
                continue;
            }
            if source.is_unheld() {
                open.insert(source.age, source);
            } else if found.held.len() < HELD {
                found.held.push(source);
            }
        }
        if met.len() > NODES {
            // Computed now, so much work is done only once.
            found.is_state = true;
            break;
        }
    }
    found
}
