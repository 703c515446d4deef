//! Callify: from lazy nodes to one stateless graph. Realised tensors become Params in walk order, Functions are inlined,
//! an assign becomes the value that it stores.
//!
//! The walk alone gives the key of the plan cache; the graph is built only for a program not seen before.

mod derivation;

use super::changing::{Change, Changing, changing};
use super::{
    Body, Identity, Node, Opening, Place, Program, Sources, View, Who, ends_gradients, is_one_of_few, moved, oldest,
    sizes,
};
use crate::device::{Storage, default_device};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::hash::Hash;
use std::panic::Location;
use std::sync::{Arc, Weak};
use tinyspec_ir::{
    AddrSpace, Arg, Builder, Category, Const, ContentHash, ContentHasher, DType, Device, Graph, NodeId, Op, Props,
    Result, Shape,
};

type Positions = SmallVec<[u32; 3]>;
/// Numbers and the lines that write them.
pub(crate) type Numbers = FxHashMap<Const, &'static Location<'static>>;

/// Nodes of a small program.
const SOME: usize = 64;
/// Nodes below a sum that are looked at for numbers, and pairs of equal nodes that are compared.
const STEPS: usize = 32;
/// The longest chain of elementwise nodes that each run recomputes rather than reads.
const CHEAP: usize = 32;
/// Nodes of a graph with its gradients, for each without them, about.
const WITH_GRADIENTS: usize = 3;

/// Lazy nodes in walk order, sources before users.
pub(crate) struct Walk {
    entries: Vec<Entry>,
    /// Buffers of the realised tensors, by slot; what is on a tuple of devices has none.
    pub leaves: Vec<Arc<Storage>>,
    leaf_count: u32,
    roots: Vec<u32>,
    /// Equal for equal programs, whatever buffers they run on.
    pub key: ContentHash,
    /// Is of a Function being traced: it has no value.
    pub has_placeholder: bool,
    /// Nodes that are done before anything is planned and that need no other such node: moves of a value from one device
    /// to another, and results of functions that have kernels of their own.
    pub first: Vec<Arc<Node>>,
    /// Nodes whose memory is another's, or about to be.
    pub overwritten: Vec<Arc<Node>>,
    /// Met values that are equal, but not the same to a gradient.
    pub has_equal: bool,
    /// Leaves that are numbers here.
    literals: FxHashMap<u32, Const>,
    /// Numbers and parts of tensors that the walk takes as inputs.
    pub changing: Changing,
    /// The walk takes parts of tensors as inputs. Then the history is made before the run, which may overwrite these tensors.
    pub has_parts: bool,
}

struct Entry {
    node: Arc<Node>,
    sources: Positions,
    /// Slot of a leaf: a tensor in memory, or what the walk takes as data.
    leaf: Option<u32>,
    /// Is, or needs, one of those that are done first.
    waits: bool,
    /// A window whose offsets are data: they are its second source.
    is_moved: bool,
}

/// What the key of a walk is made of, in walk order.
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

/// The stateless graph of a walk.
pub(crate) struct Callified {
    pub graph: Graph,
    /// One a root.
    pub outputs: Vec<NodeId>,
}

/// The graph of a walk for gradients.
#[derive(Default)]
pub(crate) struct Opened {
    pub graph: Graph,
    /// One a root.
    pub outputs: Vec<NodeId>,
    /// One an entry of the walk.
    pub entries: Vec<NodeId>,
    /// The lazy or computed tensor behind a node.
    pub origins: FxHashMap<NodeId, Arc<Node>>,
    /// Copies of tensors that nobody may have any more.
    pub copies: FxHashMap<NodeId, Identity>,
    /// Params whose values are gone.
    pub gone: Vec<NodeId>,
    /// Numbers that the program may change, of runs in the past.
    pub numbers: Vec<NodeId>,
    /// Calls a function that is compiled once for all sizes.
    pub has_ranged: bool,
}

/// Tensors that were still lazy after an earlier run.
#[derive(Default)]
pub(crate) struct Unevaluated {
    /// The program has dropped them since, as a loop does with its states.
    pub dropped: Vec<Arc<Node>>,
    /// The program still holds them, and they are worth computing once rather than in each run.
    pub held: Vec<Arc<Node>>,
}

/// The cost of computing the value of an entry.
#[derive(Clone, Copy, Default)]
struct Work {
    /// Whether it depends on a leaf.
    has_data: bool,
    /// Whether data are reduced on the way.
    reduces: bool,
    /// Length of the longest path from a leaf or a constant.
    depth: usize,
    /// Total size in bytes of the leaves it depends on, at most: a leaf counts once per path to it, as long as it is no more than all leaves
    /// together.
    bytes: u64,
}

impl Work {
    /// Whether the value is small, or no larger than its inputs. A lazy value may not fit in memory.
    fn has_room_for(self, node: &Node) -> bool {
        const LITTLE: u64 = 64 << 20;
        node.bytes() <= self.bytes.max(LITTLE)
    }

    /// Whether recomputing the value in each run costs more than storing and loading it.
    fn is_worth_keeping(self) -> bool {
        self.reduces || self.depth > CHEAP
    }
}

/// Which nodes of a walk are nodes of their own in its graph.
enum Apart<'a> {
    /// None: equal ones are one.
    Nothing,
    /// All that may be a tensor to somebody.
    Floats,
    /// Those that are, and which entries gradients flow through.
    Tensors(&'a mut Opening, &'a [bool]),
}

/// What a node needs for its value. An assign needs the stored value only: tensors are values, so nobody can tell a
/// state that was overwritten from a new one.
pub(crate) fn needed(node: &Node, sources: Sources) -> Sources {
    match node.op {
        Op::After => match sources.get(1).filter(|store| store.op == Op::Store) {
            Some(store) => store.sources().get(1).cloned().into_iter().collect(),
            None => sources,
        },
        // The body is closed: its hash stands for it.
        Op::Function => sources.into_iter().skip(1).collect(),
        _ => sources,
    }
}

impl Walk {
    /// Everything that the roots need, of equal nodes the first.
    pub fn of(roots: &[Arc<Node>]) -> Walk {
        Walk::by(roots, |node| (node.hash, Identity::NONE), &FxHashMap::default(), |_| false)
    }

    /// The same for values alone: numbers, such as a rate, parts of tensors, such as the batches of an epoch, and places in
    /// them are data where a line of the program produces a different one each time, so that one program serves all of them.
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

    /// As [`Walk::of`], with each tensor for itself, equal or not; numbers and parts in `changing` are inputs.
    pub fn of_tensors(roots: &[Arc<Node>], changing: &Changing) -> Walk {
        Walk::by(roots, Node::who, changing, |_| false)
    }

    /// As [`Walk::of_tensors`], for gradients with respect to `wanted`: what is detached is a leaf, and so are lazy tensors older than all
    /// of these, since they do not depend on any.
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

    /// Without recursion. Lazy nodes that are data are leaves.
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
        // Nodes that are being walked, each a source of the one before.
        struct Open {
            node: Arc<Node>,
            who: Who,
            sources: Sources,
            is_moved: bool,
            /// Of the sources that are done.
            positions: Positions,
            next: usize,
        }
        let mut path: Vec<Open> = Vec::new();
        let mut waiting = roots.iter();
        'walk: loop {
            // The position of what is done now, for the node that it is a source of.
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
                        // Numbers and parts that are one have one memory.
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
        // Of equal inputs the oldest stands for all, since a gradient visits tensors in the order of their age, and an input must come before
        // everything that was made of it.
        if entry.leaf.is_some() && node.age < entry.node.age {
            entry.node = node.clone();
        }
    }

    /// The leaves below a sum of nothing but numbers that the program writes, views of them and what is computed of them. A call of a body
    /// that reduces counts as a sum.
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
                    // A constant is wherever the program runs.
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

    /// The lazy results of each `grad` call of which the roots need only some. Computed one by one, each would repeat the forward pass
    /// in a program of its own.
    pub fn gradients_beside(&self) -> Vec<Arc<Node>> {
        let mut calls: SmallVec<[&Arc<[Weak<Node>]>; 1]> = SmallVec::new();
        for gradients in self.entries.iter().filter_map(|entry| entry.node.gradients()) {
            if !calls.iter().any(|known| Arc::ptr_eq(known, gradients)) {
                calls.push(gradients);
            }
        }
        if calls.is_empty() {
            return Vec::new();
        }
        let met: FxHashSet<ContentHash> = self.entries.iter().map(|entry| entry.node.hash).collect();
        let mut known = self.root_hashes();
        let mut beside = Vec::new();
        for gradients in calls {
            let held: Vec<Arc<Node>> =
                gradients.iter().filter_map(Weak::upgrade).filter(|node| node.is_awaited()).collect();
            if held.iter().any(|node| !met.contains(&node.hash)) {
                beside.extend(held.into_iter().filter(|node| known.insert(node.hash)));
            }
        }
        beside
    }

    /// The states assigned over those that the walk reads: computed in the next step, they would repeat the forward pass and the
    /// gradients. States assigned after these depend on the next forward pass, and are left to that step.
    pub fn states_beside(&self) -> Vec<Arc<Node>> {
        let read =
            self.entries.iter().flat_map(|entry| &entry.sources).map(|&source| &self.entries[source as usize].node);
        let mut waiting: Vec<Arc<Node>> =
            read.filter_map(|node| node.next_state()).filter(|node| node.is_awaited()).collect();
        if !waiting.is_empty() {
            let mut known = self.root_hashes();
            waiting.retain(|node| known.insert(node.hash));
        }
        waiting
    }

    fn root_hashes(&self) -> FxHashSet<ContentHash> {
        self.roots.iter().map(|&root| self.entries[root as usize].node.hash).collect()
    }

    /// The tensors nearest to the roots that were still lazy after a run, and that later values of the walk depend on. A dropped one
    /// counts only if no state `beside` the roots depends on it. `last_run` is that of the thread.
    pub fn unevaluated(&self, last_run: u64, beside: &[Arc<Node>]) -> Unevaluated {
        let newest = self.entries.iter().map(|entry| entry.node.last_run).fold(last_run, u64::max);
        let is_old = |entry: &Entry| entry.leaf.is_none() && entry.node.age < newest && entry.node.was_tensor();
        if !self.entries.iter().any(is_old) {
            return Unevaluated::default();
        }
        let work = self.work();
        let count = self.entries.len();
        // For each entry: the last run before its newest user was made, whether a root depends on it, and whether one `beside` does.
        let (mut before, mut is_needed, mut is_covered) = (vec![0; count], vec![false; count], vec![false; count]);
        for &root in &self.roots {
            let is_beside = beside.iter().any(|state| state.hash == self.entries[root as usize].node.hash);
            is_needed[root as usize] = true;
            is_covered[root as usize] |= is_beside;
        }
        let mut found = Unevaluated::default();
        for (position, Entry { node, sources, leaf, .. }) in self.entries.iter().enumerate().rev() {
            if !is_needed[position] || leaf.is_some() {
                continue;
            }
            let is_view = node.op.category() == Category::Movement;
            if node.age < before[position] && node.was_tensor() && !is_view && work[position].has_room_for(node) {
                let is_dropped = node.is_unheld();
                if is_dropped && !is_covered[position] {
                    found.dropped.push(node.clone());
                    continue;
                }
                if !is_dropped && work[position].is_worth_keeping() {
                    found.held.push(node.clone());
                    continue;
                }
            }
            // The thread that made the node may not have had a run since.
            let run = if node.age < last_run { node.last_run } else { node.last_run.max(last_run) };
            let run = if is_view { run.max(before[position]) } else { run };
            for &source in sources {
                let source = source as usize;
                before[source] = before[source].max(run);
                is_needed[source] = true;
                is_covered[source] |= is_covered[position];
            }
        }
        found
    }

    /// Those of `roots` that may be computed unrequested: memory has room for them, and they are not within a trace, where tensors have no
    /// value.
    pub fn with_room(mut roots: Vec<Arc<Node>>) -> Vec<Arc<Node>> {
        let walk = Walk::of(&roots);
        if walk.has_placeholder || walk.roots.len() < roots.len() {
            return vec![];
        }
        let work = walk.work();
        let mut positions = walk.roots.iter();
        roots.retain(|root| positions.next().is_some_and(|&position| work[position as usize].has_room_for(root)));
        roots
    }

    /// The cost of each entry.
    fn work(&self) -> Vec<Work> {
        let mut all: Vec<Work> = Vec::with_capacity(self.entries.len());
        let total = self.leaf_nodes().fold(0, |total: u64, leaf| total.saturating_add(leaf.bytes()));
        for Entry { node, sources, leaf, .. } in &self.entries {
            let bytes = if leaf.is_some() { node.bytes() } else { 0 };
            let mut work = Work { has_data: leaf.is_some(), bytes, ..Work::default() };
            for source in sources.iter().filter(|_| leaf.is_none()).map(|&source| all[source as usize]) {
                work.has_data |= source.has_data;
                work.reduces |= source.reduces;
                work.depth = work.depth.max(source.depth + 1);
                work.bytes = work.bytes.saturating_add(source.bytes).min(total);
            }
            if leaf.is_none() && work.has_data {
                let body = called(node).map(|body| body.work());
                work.reduces |= node.op == Op::Reduce || body.is_some_and(|body| body.reduces);
                work.depth += body.map_or(0, |body| body.depth);
            }
            all.push(work);
        }
        all
    }

    /// Reduces over data that both the nodes done first and the rest of the walk need. Computed twice they would cost twice the
    /// time, and might be rounded differently: then no term would equal the maximum of all.
    pub fn shared_with_first(&self) -> Vec<Arc<Node>> {
        if self.first.is_empty() {
            return vec![];
        }
        let waits = |position: &u32| self.entries[*position as usize].waits;
        let work = self.work();
        let (mut before, mut after) = (vec![false; self.entries.len()], vec![false; self.entries.len()]);
        self.roots.iter().for_each(|&root| after[root as usize] = true);
        let mut shared = Vec::new();
        for (position, entry) in self.entries.iter().enumerate().rev() {
            let is_first = entry.waits && !entry.sources.iter().any(waits);
            let reduces = || match entry.node.op {
                Op::GetTuple => {
                    called(&self.entries[entry.sources[0] as usize].node).is_some_and(|body| body.work().reduces)
                }
                op => op == Op::Reduce,
            };
            let is_shared =
                before[position] && after[position] && work[position].has_data && entry.leaf.is_none() && reduces();
            if is_shared {
                shared.push(entry.node.clone());
            }
            for &source in &entry.sources {
                before[source as usize] |= before[position] || is_first;
                after[source as usize] |= after[position] && !is_first && !is_shared;
            }
        }
        shared
    }

    /// The graph of the walk.
    pub fn build(&self) -> Result<Callified> {
        let mut graph = Graph::new();
        graph.reserve(self.entries.len());
        let nodes = self.add_to(&mut graph, Apart::Nothing)?;
        Ok(Callified { outputs: self.outputs(&nodes), graph })
    }

    /// As [`Walk::build`], for a history: there is a node for each entry that may be a tensor to somebody.
    pub fn program(&self) -> Result<Program> {
        let mut graph = Graph::new();
        graph.reserve(self.entries.len());
        let nodes = self.add_to(&mut graph, Apart::Floats)?;
        Ok(Program::new(graph, self.outputs(&nodes), nodes))
    }

    /// As [`Walk::build`], with what was computed opened, where it depends on something of `wanted`.
    pub fn open(&self, wanted: &[Arc<Node>]) -> Result<Opened> {
        let mut graph = Graph::new();
        graph.reserve(WITH_GRADIENTS * self.entries.len());
        let mut opening = Opening::new(wanted, self.leaf_count);
        let nodes = self.add_to(&mut graph, Apart::Tensors(&mut opening, &self.flows()))?;
        // An inlined Function has no node of its own.
        let entries = nodes.iter().zip(&self.entries).filter(|(_, entry)| entry.node.op != Op::Function);
        let mut origins: FxHashMap<NodeId, Arc<Node>> = opening.origins.into_iter().collect();
        origins.extend(entries.map(|(&node, entry)| (node, entry.node.clone())));
        let Opening { copies, gone, numbers, has_ranged, .. } = opening;
        let (copies, outputs) = (copies.into_iter().collect(), self.outputs(&nodes));
        Ok(Opened { outputs, entries: nodes, graph, origins, copies, gone, numbers, has_ranged })
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

    fn outputs(&self, nodes: &[NodeId]) -> Vec<NodeId> {
        self.roots.iter().map(|&root| nodes[root as usize]).collect()
    }

    /// The age at which the last run began before the roots were made: older nodes existed then.
    pub fn last_run(&self) -> u64 {
        self.roots.iter().map(|&root| self.entries[root as usize].node.last_run).max().unwrap_or_default()
    }

    /// The leaves, by slot.
    pub fn leaf_nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.entries.iter().filter(|entry| entry.leaf.is_some()).map(|entry| &entry.node)
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

    fn add_to(&self, graph: &mut Graph, mut apart: Apart) -> Result<Vec<NodeId>> {
        let mut nodes: Vec<NodeId> = Vec::with_capacity(self.entries.len());
        // Results of the Functions that were inlined, by position of the Function.
        let mut results: FxHashMap<u32, Vec<NodeId>> = FxHashMap::default();
        for (position, entry) in self.entries.iter().enumerate() {
            let Entry { node, sources, leaf, is_moved, .. } = entry;
            let of = |position: u32| nodes[position as usize];
            let is_apart = match &apart {
                Apart::Nothing => false,
                Apart::Floats => node.props.dtype.is_float(),
                Apart::Tensors(opening, _) => {
                    let is_tensor = node.identity().is_tensor();
                    if let Some(known) = opening.known(node).filter(|_| is_tensor || leaf.is_some()) {
                        nodes.push(known);
                        continue;
                    }
                    // Kept apart from an equal constant of a gradient rule: a number of the program may change.
                    is_tensor || node.literal().is_some()
                }
            };
            // What stands for another node's value.
            let standing = |graph: &mut Graph, value: NodeId| if is_apart { twin(graph, value) } else { Ok(value) };
            let new = match (node.op, &node.arg, leaf) {
                (.., &Some(slot)) => match &mut apart {
                    Apart::Tensors(opening, flows) if flows[position] => opening.open(graph, node, slot)?,
                    Apart::Nothing if self.literals.contains_key(&(position as u32)) => {
                        graph.constant(self.literals[&(position as u32)])
                    }
                    _ => param(graph, &node.props, slot)?,
                },
                _ if *is_moved => {
                    let (x, offsets, shape) = (of(sources[0]), of(sources[1]), &node.props.shape);
                    match apart {
                        Apart::Nothing => moved::window(graph, node.op, x, offsets, shape)?,
                        _ => {
                            let shape = graph.shape(shape)?;
                            graph.add_apart(node.op, &[x, offsets, shape], Arg::None)?
                        }
                    }
                }
                (Op::After, ..) if sources.len() == 1 => standing(graph, of(sources[0]))?,
                (Op::Function, ..) => {
                    let arguments: Vec<NodeId> = sources.iter().map(|&source| of(source)).collect();
                    let first = graph.len();
                    let elements = match (called(node), &mut apart) {
                        (Some(body), Apart::Tensors(opening, _)) => {
                            opening.has_ranged |= !body.ranged().is_empty();
                            body.open(graph, &arguments)
                        }
                        (Some(body), _) => body.inline(graph, &arguments),
                        (None, _) => Ok(vec![]),
                    };
                    // A mistake in the arguments shows inside: it was made where the function is called.
                    let elements = elements.map_err(|error| match node.location {
                        Some(location) => error.at(location),
                        None => error,
                    })?;
                    if let Some(location) = node.location {
                        graph.locate_from(first, location.into());
                    }
                    results.insert(position as u32, elements);
                    // Only GetTuple refers to it, and takes the element.
                    graph.index(0)
                }
                (Op::GetTuple, Arg::Number(number), _) if sources.first().is_some_and(|f| results.contains_key(f)) => {
                    let elements = &results[&sources[0]];
                    let element = elements.get(*number as usize);
                    standing(graph, *element.unwrap_or_else(|| unreachable!("derive checks the number")))?
                }
                _ => {
                    let sources: SmallVec<[NodeId; 4]> = sources.iter().map(|&source| of(source)).collect();
                    let new = match is_apart {
                        true => graph.add_apart(node.op, &sources, node.arg.clone()),
                        false => graph.add(node.op, &sources, node.arg.clone()),
                    };
                    new.map_err(|error| match node.location {
                        Some(location) => error.at(location),
                        None => error,
                    })?
                }
            };
            if let Some(location) = node.location.filter(|_| leaf.is_none()) {
                graph.locate(new, location.into());
            }
            // Histories may lead to the same tensor on a path that a gradient flows through.
            if let Apart::Tensors(opening, flows) = &mut apart
                && flows[position]
            {
                opening.meet(node, new);
            }
            nodes.push(new);
        }
        Ok(nodes)
    }
}

/// Whether gradients cannot tell two equal nodes apart: they are the same tensor, or the program holds neither of them and both are
/// made of the same tensors, as the two transposes in `w.transpose(0, 1).matmul(&x) + w.transpose(0, 1).matmul(&y)`.
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

/// A result of a function whose dims have bounds: it is compiled by itself, once for all sizes.
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

/// A node apart with the value of another one, which it is made of.
pub(crate) fn twin(graph: &mut Graph, value: NodeId) -> Result<NodeId> {
    let shape = graph.props(value).shape.clone();
    let shape = graph.shape(&shape)?;
    graph.add_apart(Op::Reshape, &[value, shape], Arg::None)
}

/// The Param that stands for a tensor in memory.
pub(crate) fn param(graph: &mut Graph, props: &Props, slot: u32) -> Result<NodeId> {
    let Props { shape, dtype, device, .. } = props;
    let shape = graph.shape(shape)?;
    let arg = Arg::Param { slot, dtype: *dtype, device: device.clone(), addrspace: Some(AddrSpace::Global) };
    graph.add(Op::Param, &[shape], arg)
}
