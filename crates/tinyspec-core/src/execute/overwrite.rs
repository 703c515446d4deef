//! Assigned states, written over the memory of the previous state.
//!
//! Tensors are values, so memory is overwritten only if that cannot be observed: every reference to the old state comes
//! from nodes of the graph being computed, none of which outlives the computation except its results.

use crate::Result;
use crate::compile::Plan;
use crate::device::{Device, Storage};
use crate::lazy::Node;
use crate::lazy::callify::{Walk, needed};
use crate::lower::rangeify::Donation;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use tinyspec_ir::{DType, ErrorKind, Op, Shape};

/// Held for reading while memory is overwritten, so that a thread that meets a state in between can wait for the end.
static OVERWRITING: RwLock<()> = RwLock::new(());

/// A state that may be overwritten.
pub(super) struct State {
    pub wish: Donation,
    node: Arc<Node>,
}

/// Whether some root is an assigned state, or the result of a function that may be an argument with a part replaced.
pub(super) fn is_possible(roots: &[Arc<Node>]) -> bool {
    let mut arguments = Arguments::default();
    roots.iter().any(|root| root.op == Op::After || !arguments.updated(root).is_empty())
}

/// Results that may take the memory of the states that they replace.
pub(super) fn wanted(roots: &[Arc<Node>], walk: &Walk, device: &Arc<Device>) -> SmallVec<[State; 1]> {
    let mut states: SmallVec<[State; 1]> = SmallVec::new();
    let leaves: Vec<&Arc<Node>> = walk.leaf_nodes().collect();
    let slots: FxHashMap<*const Node, u32> = leaves.iter().map(|node| Arc::as_ptr(node)).zip(0..).collect();
    // Computed before any state refers to these.
    let mut arguments = Arguments::default();
    let updated: Vec<SmallVec<[*const Node; 2]>> = roots.iter().map(|root| arguments.updated(root)).collect();
    for (output, (root, updated)) in roots.iter().zip(updated).enumerate() {
        let assigned = replaced(root).map(|node| (Arc::as_ptr(&node), false));
        for (node, only_part) in assigned.into_iter().chain(updated.into_iter().map(|node| (node, true))) {
            let Some(&slot) = slots.get(&node) else { continue };
            let node = leaves[slot as usize];
            let is_here = walk.leaves.get(slot as usize).is_some_and(|storage| Arc::ptr_eq(storage.device(), device));
            if is_here && node.props.dtype == root.props.dtype && node.props.shape == root.props.shape {
                states.push(State { wish: Donation { output, slot, only_part }, node: node.clone() });
            }
        }
    }
    if !states.is_empty() {
        let seen = Seen::below(roots, walk, &states);
        states.retain(|state| seen.is_unseen(&state.node));
    }
    states
}

/// The computed state that a chain of assignments began with.
fn replaced(root: &Arc<Node>) -> Option<Arc<Node>> {
    let mut node = root.clone();
    while node.op == Op::After && !node.is_realized() {
        let sources = node.sources();
        sources.get(1).filter(|store| store.op == Op::Store)?;
        node = sources.into_iter().next()?;
    }
    (!Arc::ptr_eq(&node, root) && node.is_realized()).then_some(node)
}

/// For each call of a function, the computed arguments that only the call and one walk over it refer to. A gradient has as many
/// arguments and results as its program has tensors.
#[derive(Default)]
struct Arguments(FxHashMap<*const Node, Vec<(*const Node, DType, Shape)>>);

impl Arguments {
    /// The arguments of a function whose new state its result, this root, may be: those of its dtype and shape.
    fn updated(&mut self, root: &Node) -> SmallVec<[*const Node; 2]> {
        if root.op != Op::GetTuple {
            return SmallVec::new();
        }
        root.with_sources(|sources| {
            let Some(call) = sources.first().filter(|call| call.op == Op::Function) else { return SmallVec::new() };
            let arguments = self.0.entry(Arc::as_ptr(call)).or_insert_with(|| replaceable(call));
            let fits =
                arguments.iter().filter(|(_, dtype, shape)| (*dtype, shape) == (root.props.dtype, &root.props.shape));
            fits.map(|argument| argument.0).collect()
        })
    }
}

fn replaceable(call: &Node) -> Vec<(*const Node, DType, Shape)> {
    call.with_sources(|sources| {
        let arguments = sources.get(1..).unwrap_or_default();
        let mut times: FxHashMap<*const Node, usize> = FxHashMap::default();
        arguments.iter().for_each(|argument| *times.entry(Arc::as_ptr(argument)).or_default() += 1);
        let is_free = |argument: &&Arc<Node>| {
            argument.is_realized() && Arc::strong_count(argument) <= 1 + times[&Arc::as_ptr(argument)]
        };
        let free = arguments.iter().filter(is_free);
        free.map(|argument| (Arc::as_ptr(argument), argument.props.dtype, argument.props.shape.clone())).collect()
    })
}

/// Reference counts in the lazy graph below some roots.
struct Seen {
    /// The nodes of the graph, numbered; the roots come first.
    numbers: FxHashMap<*const Node, usize>,
    /// Whether no other thread has computed a node in the meantime, which would have dropped references that were
    /// counted.
    is_whole: bool,
    /// By number: whether a node has references from outside the graph, or a node that needs it has.
    is_seen: Vec<bool>,
}

impl Seen {
    fn below(roots: &[Arc<Node>], walk: &Walk, states: &[State]) -> Seen {
        let mut numbers: FxHashMap<*const Node, usize> = FxHashMap::default();
        numbers.reserve(2 * walk.nodes().len());
        let mut nodes: Vec<Arc<Node>> = Vec::new();
        // References from inside the graph, including that of `nodes`.
        let mut inside: Vec<usize> = Vec::new();
        for root in roots {
            numbers.entry(Arc::as_ptr(root)).or_insert_with(|| {
                nodes.push(root.clone());
                inside.push(1);
                nodes.len() - 1
            });
        }
        let results = nodes.len();
        let mut widths: Vec<usize> = Vec::new();
        while let Some(node) = nodes.get(widths.len()).cloned() {
            node.with_sources(|sources| {
                widths.push(sources.len());
                for source in sources {
                    let number = *numbers.entry(Arc::as_ptr(source)).or_insert_with(|| {
                        nodes.push(source.clone());
                        inside.push(1);
                        nodes.len() - 1
                    });
                    inside[number] += 1;
                }
            });
        }
        for node in walk.nodes().chain(states.iter().map(|state| &state.node)) {
            if let Some(&number) = numbers.get(&Arc::as_ptr(node)) {
                inside[number] += 1;
            }
        }
        let mut is_seen = vec![false; nodes.len()];
        let mut pending: Vec<usize> = Vec::new();
        for (number, node) in nodes.iter().enumerate().skip(results) {
            if Arc::strong_count(node) > inside[number] {
                is_seen[number] = true;
                pending.push(number);
            }
        }
        // A thread that dropped a counted reference changed the node before that.
        fence(Ordering::Acquire);
        let is_whole =
            nodes.iter().zip(&widths).all(|(node, &width)| node.with_sources(|sources| sources.len() == width));
        while let Some(number) = pending.pop() {
            for source in needed(&nodes[number], nodes[number].sources()) {
                if let Some(&source) = numbers.get(&Arc::as_ptr(&source))
                    && !std::mem::replace(&mut is_seen[source], true)
                {
                    pending.push(source);
                }
            }
        }
        Seen { numbers, is_whole, is_seen }
    }

    /// Whether only the graph that replaces the state can see it.
    fn is_unseen(&self, node: &Arc<Node>) -> bool {
        let number = self.numbers.get(&Arc::as_ptr(node));
        self.is_whole && number.is_some_and(|&number| !self.is_seen[number])
    }
}

/// Memory taken for overwriting. Unless it is started, dropping it gives the memory back.
pub(super) struct Overwriting {
    taken: SmallVec<[(Arc<Node>, Arc<Storage>); 1]>,
    is_started: bool,
    _guard: RwLockReadGuard<'static, ()>,
}

impl Overwriting {
    /// Takes the memory that the plan overwrites; `None` if some of it has gained another reference.
    pub fn begin(plan: &Plan, wanted: &[State], walk: &Walk) -> Option<Overwriting> {
        let guard = OVERWRITING.read().unwrap_or_else(PoisonError::into_inner);
        let mut overwriting = Overwriting { taken: SmallVec::new(), is_started: false, _guard: guard };
        for &(_, slot) in &plan.overwritten {
            let state = wanted.iter().find(|state| state.wish.slot == slot)?;
            let storage = walk.leaves.get(slot as usize)?;
            if !state.node.take(storage) {
                return None;
            }
            overwriting.taken.push((state.node.clone(), storage.clone()));
        }
        Some(overwriting)
    }

    /// From now on the old values are lost, whatever happens.
    pub fn start(mut self) -> Overwriting {
        self.is_started = true;
        self
    }
}

impl Drop for Overwriting {
    fn drop(&mut self) {
        for (node, storage) in self.taken.drain(..) {
            node.settle((!self.is_started).then_some(storage));
        }
    }
}

/// Waits until states that a walk met are settled. Their replacements are computed then, so the next walk does not
/// reach them; `lost` holds those of earlier walks.
///
/// # Errors
/// When a state was lost before the walk, to a run that failed.
pub(super) fn wait(states: &[Arc<Node>], lost: &mut Vec<Arc<Node>>) -> Result<()> {
    if let Some(gone) = states.iter().find(|state| lost.iter().any(|other| Arc::ptr_eq(other, state))) {
        let message = "the value was overwritten by an assignment that failed";
        let error = tinyspec_ir::Error::new(ErrorKind::Value, "assign", message);
        return Err(error.at_known(gone.location).into());
    }
    drop(OVERWRITING.write().unwrap_or_else(PoisonError::into_inner));
    lost.extend(states.iter().filter(|state| state.is_gone()).cloned());
    Ok(())
}

/// The walk for the gradients of a loss with respect to `wanted` tensors, once no run is overwriting a state that it
/// meets.
///
/// # Errors
/// As [`wait`].
pub(crate) fn settled_walk(roots: &[Arc<Node>], wanted: &[Arc<Node>]) -> Result<Walk> {
    let mut lost = Vec::new();
    loop {
        let walk = Walk::for_gradients(roots, wanted);
        if walk.overwritten.is_empty() {
            return Ok(walk);
        }
        wait(&walk.overwritten, &mut lost)?;
    }
}
