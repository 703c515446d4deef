//! Callify: from lazy nodes to one stateless graph. Realised tensors become Params in walk order, Functions are inlined,
//! an assign becomes the value that it stores.
//!
//! The walk alone gives the key of the plan cache; the graph is built only for a program not seen before.

mod derivation;
mod graph;
mod unrequested;

pub(crate) use graph::{Callified, Opened, param, twin};
pub(crate) use unrequested::Unevaluated;

use super::changing::{Change, Changing, changing};
use super::{Body, Identity, Node, Place, Sources, View, Who, ends_gradients, is_one_of_few, oldest, sizes};
use crate::device::{Storage, default_device};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::hash::Hash;
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::{Arg, Const, ContentHash, ContentHasher, DType, Device, Op, Result, Shape};

type Positions = SmallVec<[u32; 3]>;
/// Numbers and the lines that write them.
pub(crate) type Numbers = FxHashMap<Const, &'static Location<'static>>;

/// The number of nodes to allocate for.
const SOME: usize = 64;
/// The most nodes below a sum that are searched for numbers, and the most pairs of equal nodes that are compared.
const STEPS: usize = 32;

/// Lazy nodes in walk order, sources before users.
pub(crate) struct Walk {
    entries: Vec<Entry>,
    /// Buffers of the realised tensors, by slot; values on tuples of devices have none.
    pub leaves: Vec<Arc<Storage>>,
    leaf_count: u32,
    roots: Vec<u32>,
    /// Equal for equal programs, whatever buffers they run on.
    pub key: ContentHash,
    /// Whether it contains a placeholder of a Function being traced, and so has no value.
    pub has_placeholder: bool,
    /// Nodes that are computed before anything is planned and that need no other such node: moves between devices, and
    /// results of functions that have kernels of their own.
    pub first: Vec<Arc<Node>>,
    /// Nodes whose memory has been overwritten, or is being overwritten.
    pub overwritten: Vec<Arc<Node>>,
    /// Whether it met values that are equal, but distinct to a gradient.
    pub has_equal: bool,
    /// Leaves that are constants in this program.
    literals: FxHashMap<u32, Const>,
    /// Numbers and parts of tensors that the walk takes as inputs.
    pub changing: Changing,
    /// The walk takes parts of tensors as inputs. Then the history is made before the run, which may overwrite these tensors.
    pub has_parts: bool,
}

struct Entry {
    node: Arc<Node>,
    sources: Positions,
    /// Slot of a leaf: a tensor in memory, or a value that the walk treats as data.
    leaf: Option<u32>,
    /// Whether it is, or needs, one of those that are computed first.
    waits: bool,
    /// Whether it is a window whose offsets are data: they are its second source.
    is_moved: bool,
}

/// A part of a walk's cache key; the parts are in walk order.
#[derive(Hash)]
enum KeyPart<'a> {
    /// A tensor in memory.
    Leaf(DType, &'a Shape, Option<&'a Device>),
    /// A computed node over earlier ones.
    Node(Op, &'a Arg, &'a [u32]),
    /// The shape of a window whose offsets are a leaf.
    Window(&'a Shape),
    /// A leaf that is a constant in this program.
    Literal(u32, Const),
    /// The body of a Function.
    Body(ContentHash),
}

/// The sources that a node's value depends on. An assign needs the stored value only: tensors are values, so an
/// overwritten state cannot be told from a new one.
pub(crate) fn needed(node: &Node, sources: Sources) -> Sources {
    match node.op {
        Op::After => match sources.get(1).filter(|store| store.op == Op::Store) {
            Some(store) => store.sources().get(1).cloned().into_iter().collect(),
            None => sources,
        },
        // The body is closed, so its hash represents it.
        Op::Function => sources.into_iter().skip(1).collect(),
        _ => sources,
    }
}

impl Walk {
    /// Everything that the roots need; equal nodes count once.
    pub fn of(roots: &[Arc<Node>]) -> Walk {
        Walk::by(roots, |node| (node.hash, Identity::NONE), &FxHashMap::default(), |_| false)
    }

    /// The same for values alone: numbers such as a rate, parts of tensors such as the batches of an epoch, and offsets
    /// in tensors become data if a line of the program produces a different one each time, so that one program serves
    /// all of them.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn with_changing(self, roots: &[Arc<Node>]) -> Result<Walk, crate::Error> {
        let elsewhere = |root: &Arc<Node>| matches!(root.device(), Some(Device::Many(_)));
        if roots.iter().any(elsewhere) {
            return Ok(self);
        }
        let changing = changing(self.nodes(), roots)?;
        if changing.is_empty() {
            return Ok(self);
        }
        let walk = Walk::by(roots, |node| (node.hash, Identity::NONE), &changing, |_| false);
        let has_parts = changing.values().any(|change| matches!(change, Change::Part(_)));
        Ok(Walk { changing, has_parts, ..walk })
    }

    /// As [`Walk::of`], but equal tensors stay separate; numbers and parts in `changing` are inputs.
    pub fn of_tensors(roots: &[Arc<Node>], changing: &Changing) -> Walk {
        Walk::by(roots, Node::who, changing, |_| false)
    }

    /// As [`Walk::of_tensors`], for gradients with respect to `wanted`: detached values are leaves, and so are lazy
    /// tensors older than all of `wanted`, since they depend on none of them.
    pub fn for_gradients(roots: &[Arc<Node>], wanted: &[Arc<Node>]) -> Walk {
        let oldest = oldest(wanted);
        Walk::by(roots, Node::who, &FxHashMap::default(), |node| node.is_data_to_gradients(oldest))
    }

    /// The nodes between `operands` and `results`. The operands and the numbers that the program writes are separate leaves, even if equal.
    pub fn of_method(results: &[Arc<Node>], operands: &[Arc<Node>]) -> Walk {
        let is_operand = |node: &Node| operands.iter().any(|operand| std::ptr::eq(&**operand, node));
        let is_input = |node: &Node| is_operand(node) || node.literal().is_some();
        let each = |node: &Node| Identity::of_tensor(node.age).as_tensor();
        let walk = Walk::by(results, each, &FxHashMap::default(), is_input);
        // The values of operands are not part of the body.
        Walk { literals: FxHashMap::default(), ..walk }
    }

    /// An empty walk.
    fn new() -> Walk {
        Walk {
            entries: vec![],
            leaves: vec![],
            leaf_count: 0,
            roots: vec![],
            key: ContentHash(0),
            first: vec![],
            overwritten: vec![],
            literals: FxHashMap::default(),
            has_placeholder: false,
            has_equal: false,
            changing: Changing::default(),
            has_parts: false,
        }
    }

    /// The walk itself, without recursion. `is_data` decides which lazy nodes are leaves.
    fn by(
        roots: &[Arc<Node>],
        who: impl Fn(&Node) -> Who,
        changing: &Changing,
        is_data: impl Fn(&Node) -> bool,
    ) -> Walk {
        let mut walk = Walk::new();
        let mut positions: FxHashMap<Who, u32> = FxHashMap::default();
        positions.reserve(SOME);
        // Positions of numbers and parts that are inputs, by their memory.
        let mut changed: FxHashMap<*const Storage, u32> = FxHashMap::default();
        walk.entries.reserve(SOME);
        let mut hasher = ContentHasher::default();
        // The path to the current node: each is a source of the one before.
        struct Open {
            node: Arc<Node>,
            who: Who,
            sources: Sources,
            is_moved: bool,
            /// Positions of the sources visited so far.
            positions: Positions,
            next: usize,
        }
        let mut path: Vec<Open> = Vec::new();
        let mut waiting = roots.iter();
        'walk: loop {
            // The position of the node just finished, for its user.
            let done = 'done: {
                let node = match path.last_mut() {
                    Some(open) => match open.sources.get(open.next) {
                        Some(source) => {
                            open.next += 1;
                            source.clone()
                        }
                        None => {
                            break 'done path.pop().map(|open| {
                                let position = walk.leave(open.node, open.positions, open.is_moved, &mut hasher);
                                positions.insert(open.who, position);
                                position
                            });
                        }
                    },
                    None => match waiting.next() {
                        Some(root) => root.clone(),
                        None => break 'walk,
                    },
                };
                let key = who(&node);
                if let Some(&known) = positions.get(&key) {
                    walk.meet_again(known, &node);
                    break 'done Some(known);
                }
                let change = changing.get(&node.hash);
                let view = match change {
                    _ if is_data(&node) => View::Realised(None),
                    Some(Change::Number(data) | Change::Part(data)) if !node.is_realized() => {
                        View::Realised(Some(data.clone()))
                    }
                    _ => node.view(),
                };
                let (sources, is_moved) = match (view, change) {
                    (View::Lazy(sources), Some(Change::Moved(moved))) => {
                        (sources.into_iter().take(1).chain([moved.0.clone()]).collect(), true)
                    }
                    (View::Lazy(sources), _) => (needed(&node, sources), false),
                    (View::Realised(storage), change) => {
                        // Numbers and parts of one class share their memory.
                        let shared =
                            storage.as_ref().filter(|_| matches!(change, Some(Change::Number(_) | Change::Part(_))));
                        let shared = shared.map(Arc::as_ptr);
                        if let Some(&known) = shared.and_then(|shared| changed.get(&shared)) {
                            positions.insert(key, known);
                            walk.meet_again(known, &node);
                            break 'done Some(known);
                        }
                        let position = walk.leaf(node, storage, &mut hasher);
                        positions.insert(key, position);
                        changed.extend(shared.map(|shared| (shared, position)));
                        break 'done Some(position);
                    }
                    (View::Overwritten, _) => {
                        walk.overwritten.push(node);
                        break 'done None;
                    }
                };
                path.push(Open { node, who: key, sources, is_moved, positions: Positions::new(), next: 0 });
                None
            };
            if let (Some(position), Some(user)) = (done, path.last_mut()) {
                user.positions.push(position);
            }
        }
        walk.roots = roots.iter().filter_map(|root| positions.get(&who(root)).copied()).collect();
        walk.roots.hash(&mut hasher);
        walk.key = hasher.content_hash();
        walk
    }

    /// The position of a leaf.
    fn leaf(&mut self, node: Arc<Node>, storage: Option<Arc<Storage>>, hasher: &mut ContentHasher) -> u32 {
        KeyPart::Leaf(node.props.dtype, &node.props.shape, node.device()).hash(hasher);
        let (slot, position) = (self.leaf_count, self.entries.len() as u32);
        self.leaf_count += 1;
        self.leaves.extend(storage);
        self.entries.push(Entry { node, sources: Positions::new(), leaf: Some(slot), waits: false, is_moved: false });
        position
    }

    /// The position of a node to be computed, whose sources have theirs.
    fn leave(&mut self, node: Arc<Node>, sources: Positions, is_moved: bool, hasher: &mut ContentHasher) -> u32 {
        KeyPart::Node(node.op, &node.arg, &sources).hash(hasher);
        if is_moved {
            KeyPart::Window(&node.props.shape).hash(hasher);
        }
        for (leaf, value) in self.summed_literals(&node, &sources).unwrap_or_default() {
            KeyPart::Literal(leaf, value).hash(hasher);
            self.literals.insert(leaf, value);
        }
        self.has_placeholder |= node.op == Op::Param;
        if let Some(body) = called(&node) {
            KeyPart::Body(body.hash()).hash(hasher);
        }
        let waits = sources.iter().any(|&source| self.entries[source as usize].waits);
        let is_move = matches!(node.arg, Arg::Load { device: Some(_), .. })
            && sources.first().is_some_and(|&source| {
                let source = self.entries[source as usize].node.place();
                source.is_some() && source.as_ref() != node.device()
            });
        let is_first = is_move || is_ranged_result(&node);
        if is_first && !waits {
            self.first.push(node.clone());
        }
        let position = self.entries.len() as u32;
        self.entries.push(Entry { node, sources, leaf: None, waits: is_first || waits, is_moved });
        position
    }

    fn meet_again(&mut self, known: u32, node: &Arc<Node>) {
        let entry = &mut self.entries[known as usize];
        self.has_equal = self.has_equal || !are_one_to_gradients(&entry.node, node);
        // The oldest of equal inputs represents all, since a gradient visits tensors in the order of their age, and an
        // input must come before everything derived from it.
        if entry.leaf.is_some() && node.age < entry.node.age {
            entry.node = node.clone();
        }
    }

    /// The leaves below a sum whose terms derive from numbers in the program alone. A call of a body that reduces
    /// counts as a sum.
    fn summed_literals(&self, node: &Node, sources: &Positions) -> Option<SmallVec<[(u32, Const); 2]>> {
        let reduces = |node: &Node| called(node).is_none_or(|body| body.work().reduces);
        let mut open: SmallVec<[u32; 8]> = match (node.op, &node.arg) {
            (_, Arg::Reduce { op: Op::Add, .. }) => sources.iter().take(1).copied().collect(),
            (Op::Function, _) if reduces(node) => sources.iter().copied().collect(),
            _ => return None,
        };
        let mut found = SmallVec::new();
        for _ in 0..STEPS {
            let Some(position) = open.pop() else { return Some(found) };
            let entry = &self.entries[position as usize];
            match entry.node.op {
                _ if entry.leaf.is_some() => {
                    let (node, value) = (&entry.node, entry.node.literal()?);
                    // A constant has no device, so the leaf must be on the default one.
                    let is_here = default_device().is_ok_and(|device| node.device() == Some(device.id()));
                    if !is_here || !is_one_of_few(node.location?, Place::Only, value) {
                        return None;
                    }
                    found.push((position, value));
                }
                Op::Const => {}
                op if op.is_view() || op == Op::GetTuple => open.push(*entry.sources.first()?),
                op if op.is_elementwise() || op == Op::Function && !reduces(&entry.node) => {
                    open.extend_from_slice(&entry.sources);
                }
                _ => return None,
            }
        }
        None
    }

    /// Which entries gradients of the roots flow through.
    fn flows(&self) -> Vec<bool> {
        let mut flows = vec![false; self.entries.len()];
        self.roots.iter().for_each(|&root| flows[root as usize] = true);
        for (position, entry) in self.entries.iter().enumerate().rev() {
            if flows[position] && !ends_gradients(entry.node.op, entry.node.props.dtype) {
                entry.sources.iter().for_each(|&source| flows[source as usize] = true);
            }
        }
        flows
    }

    /// For each leaf, by slot, whether no run began between its creation and that of some node that reads it. Such a
    /// leaf may be a batch.
    pub fn new_leaves(&self) -> Vec<bool> {
        let mut new = vec![false; self.leaf_count as usize];
        let roots = self.roots.iter().map(|&root| (root, self.entries[root as usize].node.last_run));
        let reads =
            self.entries.iter().flat_map(|user| user.sources.iter().map(|&source| (source, user.node.last_run)));
        for (read, last_run) in reads.chain(roots) {
            let Entry { node, leaf, .. } = &self.entries[read as usize];
            if let Some(slot) = *leaf {
                new[slot as usize] |= node.age >= last_run;
            }
        }
        new
    }

    /// The leaves, by slot.
    pub fn leaf_nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.entries.iter().filter(|entry| entry.leaf.is_some()).map(|entry| &entry.node)
    }

    /// A line that reads a leaf.
    pub fn reader(&self, leaf: &Arc<Node>) -> Option<&'static Location<'static>> {
        let position = self.nodes().position(|node| Arc::ptr_eq(node, leaf))? as u32;
        self.entries.iter().filter(|entry| entry.sources.contains(&position)).find_map(|entry| entry.node.location)
    }

    /// The nodes that it holds.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &Arc<Node>> {
        self.entries.iter().map(|entry| &entry.node)
    }

    /// The node at a position.
    pub fn node(&self, position: u32) -> &Arc<Node> {
        &self.entries[position as usize].node
    }

    /// Numbers that the program writes, each with a line that writes it.
    pub fn numbers(&self) -> Numbers {
        let computed = self.entries.iter().filter(|entry| entry.leaf.is_none()).map(|entry| &entry.node);
        computed.filter_map(|node| Some((node.literal()?, node.location?))).collect()
    }
}

/// Whether gradients cannot tell two equal nodes apart: they are the same tensor, or the program holds neither of them
/// and both derive from the same tensors, like the two transposes in `w.transpose(0, 1).matmul(&x) + w.transpose(0,
/// 1).matmul(&y)`.
fn are_one_to_gradients(a: &Arc<Node>, b: &Arc<Node>) -> bool {
    let mut pairs: SmallVec<[(Arc<Node>, Arc<Node>); 8]> = SmallVec::new();
    pairs.push((a.clone(), b.clone()));
    for _ in 0..STEPS {
        let Some((a, b)) = pairs.pop() else { return true };
        if a.who() == b.who() {
            continue;
        }
        match (a.view(), b.view()) {
            (View::Lazy(of_a), View::Lazy(of_b)) if a.is_unheld() && b.is_unheld() => {
                pairs.extend(of_a.into_iter().zip(of_b));
            }
            _ => return false,
        }
    }
    false
}

/// The body that a Function calls.
fn called(node: &Node) -> Option<Arc<Body>> {
    if node.op == Op::Function { node.with_sources(|sources| sources.first()?.body()) } else { None }
}

/// Whether a node is a result of a function whose dims have bounds, which is compiled separately, once for all sizes.
fn is_ranged_result(node: &Node) -> bool {
    node.op == Op::GetTuple
        && node.with_sources(|call| {
            let Some(call) = call.first() else { return false };
            let is_ranged = called(call).filter(|body| !body.ranged().is_empty());
            is_ranged.is_some_and(|body| {
                call.with_sources(|sources| {
                    let is_elsewhere = |argument: &Arc<Node>| matches!(argument.device(), Some(Device::Many(_)));
                    !sources.iter().any(is_elsewhere) && sizes(&body, &sources[1..]).is_some()
                })
            })
        })
}
