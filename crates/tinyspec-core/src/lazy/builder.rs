//! The builder of lazy nodes: composed ops are written once over [`Builder`] and make arena nodes or these.

use super::Body;
use super::node::{Node, Sources};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::panic::Location;
use std::sync::Arc;
use std::thread::LocalKey;
use tinyspec_ir::dim::static_shape;
use tinyspec_ir::function::OwnGradient;
use tinyspec_ir::ops::movement;
use tinyspec_ir::{AddrSpace, Arg, Builder, Const, ContentHash, DType, Device, Dim, NodeId, Op, Props, Result, Shape};

/// Results of a call.
pub(crate) type Results = SmallVec<[NodeId; 2]>;

/// Lives for one method call; a `NodeId` is a position in its list.
pub struct LazyBuilder {
    nodes: Vec<Arc<Node>>,
    location: Option<&'static Location<'static>>,
    /// If equal nodes are merged: those so far, by hash.
    known: Option<FxHashMap<ContentHash, NodeId>>,
}

impl LazyBuilder {
    pub(crate) fn new(location: &'static Location<'static>) -> LazyBuilder {
        LazyBuilder::at(Some(location))
    }

    /// A builder of nodes that may have no line of the user's.
    pub(crate) fn at(location: Option<&'static Location<'static>>) -> LazyBuilder {
        LazyBuilder { nodes: Vec::with_capacity(16), location, known: None }
    }

    /// A builder for many nodes that merges equal ones, so that each value is computed and moved once.
    pub(crate) fn merging(location: Option<&'static Location<'static>>) -> LazyBuilder {
        LazyBuilder { known: Some(FxHashMap::default()), ..LazyBuilder::at(location) }
    }

    /// A handle for an existing node.
    pub(crate) fn import(&mut self, node: Arc<Node>) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// A value with a copy for each of `devices`.
    pub(crate) fn broadcast(&mut self, node: NodeId, devices: &Device) -> Result<NodeId> {
        let Device::Many(names) = devices else { return Ok(node) };
        let inner = self.props(node).shape.clone();
        let with = |lead: usize| -> Shape { std::iter::once(Dim::from(lead)).chain(inner.iter().cloned()).collect() };
        let row = movement::reshape(self, node, &with(1))?;
        let rows = movement::expand(self, row, &with(names.len()))?;
        let arg = Arg::Load { device: Some(devices.clone()), addrspace: AddrSpace::Global };
        let moved = self.add(Op::Load, &[rows], arg)?;
        self.add(Op::Replicated, &[moved], Arg::Number(0))
    }

    /// Moves numbers that the program writes to the device of the other operands. The nodes imported so far are the operands.
    pub(crate) fn place_numbers(&mut self) -> Result<()> {
        let is_tensor = |node: &&Arc<Node>| node.device().is_some() && node.literal().is_none();
        let home = self.nodes.iter().find(is_tensor).and_then(|node| node.device());
        let Some(home) = home.filter(|device| matches!(device, Device::Single(_))).cloned() else { return Ok(()) };
        for node in &mut self.nodes {
            if node.literal().is_some() && node.device().is_some_and(|device| *device != home) {
                let arg = Arg::Load { device: Some(home.clone()), addrspace: AddrSpace::Global };
                *node = Node::lazy(Op::Load, Sources::from_iter([node.clone()]), arg, self.location)?;
            }
        }
        Ok(())
    }

    /// If an operand is on a tuple of devices, copies numbers, and indices into it, to every one of them.
    pub(crate) fn replicate_operands(&mut self, op: Op, sources: &mut Sources) -> Result<()> {
        let many = sources.iter().find_map(|source| source.device().filter(|device| matches!(device, Device::Many(_))));
        let Some(many) = many.cloned().filter(|_| op.is_elementwise() || matches!(op, Op::Index | Op::Function)) else {
            return Ok(());
        };
        let is_replicated = |position: usize, source: &Node| {
            matches!(source.device(), Some(Device::Single(_)))
                && (source.props.shape.is_empty() || op == Op::Index && position > 0)
        };
        for (position, source) in sources.iter_mut().enumerate() {
            if is_replicated(position, source) {
                let node = self.import(source.clone());
                let replicas = self.broadcast(node, &many)?;
                *source = self.node(replicas);
            }
        }
        Ok(())
    }

    /// Another node of the same value.
    pub(crate) fn twin(&mut self, node: NodeId) -> Result<NodeId> {
        let dims = self.props(node).shape.clone();
        let shape = self.shape(&dims)?;
        self.add(Op::Reshape, &[node, shape], Arg::None)
    }

    /// Calls a Function with the body `tuple`.
    pub(crate) fn call(&mut self, tuple: &Arc<Node>, arguments: &[NodeId]) -> Result<Results> {
        let count = tuple.props.elements.as_ref().map_or(0, |elements| elements.len() as u32);
        let tuple = self.import(tuple.clone());
        let function = self.add(Op::Function, &[&[tuple], arguments].concat(), Arg::None)?;
        (0..count).map(|number| self.add(Op::GetTuple, &[function], Arg::Number(number))).collect()
    }

    fn new_shape(&mut self, dims: &[Dim]) -> Result<NodeId> {
        let dims = dims.iter().map(|dim| self.dim(dim)).collect::<Result<SmallVec<[NodeId; 6]>>>()?;
        self.add(Op::Stack, &dims, Arg::None)
    }

    /// The node behind a handle.
    pub(crate) fn node(&self, node: NodeId) -> Arc<Node> {
        self.nodes[node.index()].clone()
    }

    /// The user's line.
    pub(super) fn location(&self) -> Option<&'static Location<'static>> {
        self.location
    }

    /// The nodes behind all handles.
    pub(crate) fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }
}

impl Builder for LazyBuilder {
    fn add(&mut self, op: Op, sources: &[NodeId], arg: Arg) -> Result<NodeId> {
        let mut sources: Sources = sources.iter().map(|source| self.nodes[source.index()].clone()).collect();
        self.replicate_operands(op, &mut sources)?;
        let mut node = Node::lazy(op, sources, arg, self.location)?;
        // Its offsets may change, so two windows at the same offset by chance must stay two nodes.
        if matches!(op, Op::Shrink | Op::Pad) && self.known.is_none() {
            node = node.unmerged();
        }
        if let Some(&known) = self.known.as_ref().and_then(|known| known.get(&node.hash)) {
            return Ok(known);
        }
        let hash = node.hash;
        let new = self.import(node);
        if let Some(known) = &mut self.known {
            known.insert(hash, new);
        }
        Ok(new)
    }

    fn props(&self, node: NodeId) -> &Props {
        &self.nodes[node.index()].props
    }

    fn beside(&mut self, value: NodeId, picker: NodeId) -> Result<NodeId> {
        let is_single = matches!(self.props(picker).device, Some(Device::Single(_)));
        match self.props(value).device.clone() {
            Some(many @ Device::Many(_)) if is_single => self.broadcast(picker, &many),
            _ => Ok(picker),
        }
    }

    /// The number keeps its line: where a line writes a different number in each program, such as a rate that falls from
    /// step to step, the number becomes an input (`lazy::changing`). A bool has two values, so it stays a constant.
    fn number(&mut self, value: Const) -> NodeId {
        let written = self.location.filter(|_| !matches!(value.dtype, DType::Bool | DType::Index));
        match written.and_then(|location| Node::number(value, location).ok()) {
            Some(node) => self.import(node),
            None => self.constant(value),
        }
    }

    /// The body stays a graph of its own, which calls share.
    fn function(
        &mut self,
        key: ContentHash,
        make: &mut dyn FnMut() -> Result<OwnGradient>,
        arguments: &[NodeId],
    ) -> Result<NodeId> {
        let tuple = match known(&TUPLES, |tuples| tuples.get(&key).cloned()).flatten() {
            Some(tuple) => tuple,
            None => {
                let OwnGradient { body, outputs, backward, gradients } = make()?;
                let gradient = Arc::new(Body::new(backward, gradients));
                let tuple = Node::tuple(Arc::new(Body::new(body, outputs).with_gradient(gradient).of_method()))?;
                known(&TUPLES, |tuples| {
                    if tuples.len() >= KNOWN_TUPLES {
                        tuples.clear();
                    }
                    tuples.insert(key, tuple.clone());
                });
                tuple
            }
        };
        let tuple = self.import(tuple);
        self.add(Op::Function, &[&[tuple], arguments].concat(), Arg::None)
    }

    /// Otherwise many of a graph's nodes would be shapes, mostly the same as in the previous step.
    fn shape(&mut self, dims: &[Dim]) -> Result<NodeId> {
        let Some(numbers) = static_shape(dims) else { return self.new_shape(dims) };
        if let Some(node) = known(&SHAPES, |shapes| shapes.get(&numbers)).flatten() {
            return Ok(self.import(node));
        }
        // It belongs to no line, since other tensors will share it.
        let location = self.location.take();
        let new = self.new_shape(dims);
        self.location = location;
        let new = new?;
        let node = self.node(new);
        known(&SHAPES, |shapes| shapes.insert(numbers, node));
        Ok(new)
    }
}

/// Shape nodes that a thread has made, by hash. Neither they nor their numbers are tensors, so they are never computed.
#[derive(Default)]
struct KnownShapes(Vec<Option<(Numbers, Arc<Node>)>>);

type Numbers = SmallVec<[i64; 4]>;

impl KnownShapes {
    const COUNT: usize = 256;

    fn place(numbers: &Numbers) -> usize {
        let mut hasher = rustc_hash::FxHasher::default();
        numbers.hash(&mut hasher);
        hasher.finish() as usize % KnownShapes::COUNT
    }

    fn get(&self, numbers: &Numbers) -> Option<Arc<Node>> {
        let (of, node) = self.0.get(KnownShapes::place(numbers))?.as_ref()?;
        (of == numbers).then(|| node.clone())
    }

    fn insert(&mut self, numbers: Numbers, node: Arc<Node>) {
        self.0.resize(KnownShapes::COUNT, None);
        let place = KnownShapes::place(&numbers);
        self.0[place] = Some((numbers, node));
    }
}

/// Bodies of functions with a gradient of their own that a thread keeps.
const KNOWN_TUPLES: usize = 64;

thread_local! {
    static SHAPES: RefCell<KnownShapes> = RefCell::default();
    static TUPLES: RefCell<FxHashMap<ContentHash, Arc<Node>>> = RefCell::default();
}

/// Accesses a cache of this thread; `None` while the thread ends.
fn known<K, T>(of: &'static LocalKey<RefCell<K>>, work: impl FnOnce(&mut K) -> T) -> Option<T> {
    of.try_with(|known| known.try_borrow_mut().ok().map(|mut known| work(&mut known))).ok().flatten()
}
