//! The arena: nodes are hash-consed rows of columns, dropped whole.

use crate::function::OwnGradient;
use crate::{Arg, Builder, Const, ContentHash, DType, Error, Location, Op, Props, Result, derive, hash::ContentHasher};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// A node of a [`Graph`]. Sources always have smaller numbers than the nodes that use them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

impl NodeId {
    /// Position in side tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A DAG of UOps in one arena. Equal `(op, sources, arg)` are one node.
///
/// ```
/// use tinyspec_ir::{Arg, Builder, Const, DType, Graph, Op};
/// let mut graph = Graph::new();
/// let one = graph.constant(Const::int(DType::I32, 1));
/// let two = graph.add(Op::Add, &[one, one], Arg::None)?;
/// assert_eq!(two, graph.add(Op::Add, &[one, one], Arg::None)?);
/// # Ok::<(), tinyspec_ir::Error>(())
/// ```
#[derive(Clone, Default, Debug)]
pub struct Graph {
    ops: Vec<Op>,
    args: Vec<Arg>,
    ranges: Vec<(u32, u32)>,
    pool: Vec<NodeId>,
    props: Vec<Props>,
    /// Heads of the hash chains.
    heads: FxHashMap<u64, NodeId>,
    next: Vec<Option<NodeId>>,
    /// The user's lines of nodes; never part of their identity.
    provenance: FxHashMap<NodeId, SmallVec<[Location; 1]>>,
    /// Nodes with several users, while a rewriter runs.
    shared: FxHashSet<NodeId>,
}

/// The initial capacity.
const LEAST: usize = 32;

impl Graph {
    /// An empty graph.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// Whether a node has several users, as counted when the running rewriter started: a rule that fuses it into one of them would
    /// duplicate its work. False outside of a rewriter.
    pub fn is_shared(&self, node: NodeId) -> bool {
        self.shared.contains(&node)
    }

    pub(crate) fn set_shared(&mut self, node: NodeId) {
        self.shared.insert(node);
    }

    pub(crate) fn forget_shared(&mut self) {
        self.shared = FxHashSet::default();
    }

    /// Its approximate size in bytes, without heap memory of arguments and shapes.
    pub fn bytes(&self) -> usize {
        const A_NODE: usize = size_of::<Op>()
            + size_of::<Arg>()
            + size_of::<(u32, u32)>()
            + size_of::<Props>()
            + size_of::<Option<NodeId>>();
        // Hash tables are about half empty.
        const AN_ENTRY: usize = 2 * size_of::<(u64, NodeId)>();
        const A_PLACE: usize = 2 * size_of::<(NodeId, SmallVec<[Location; 1]>)>();
        self.ops.capacity() * A_NODE
            + self.pool.capacity() * size_of::<NodeId>()
            + self.heads.len() * AN_ENTRY
            + self.provenance.len() * A_PLACE
    }

    /// Reserves space for this many more nodes, which avoids reallocating the columns.
    pub fn reserve(&mut self, nodes: usize) {
        self.ops.reserve(nodes);
        self.args.reserve(nodes);
        self.ranges.reserve(nodes);
        self.pool.reserve(2 * nodes);
        self.props.reserve(nodes);
        self.next.reserve(nodes);
        self.heads.reserve(nodes);
    }

    /// The number of nodes, including dead ones.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether it has no nodes.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// The op of a node.
    pub fn op(&self, node: NodeId) -> Op {
        self.ops[node.index()]
    }

    /// The argument of a node.
    pub fn arg(&self, node: NodeId) -> &Arg {
        &self.args[node.index()]
    }

    /// The sources of a node.
    pub fn sources(&self, node: NodeId) -> &[NodeId] {
        let (start, end) = self.ranges[node.index()];
        &self.pool[start as usize..end as usize]
    }

    /// Source number `index` of a node, which must exist by the op's arity.
    pub fn source(&self, node: NodeId, index: usize) -> NodeId {
        self.sources(node)[index]
    }

    /// The Param or Buffer of an address; `None` for other nodes.
    pub fn memory(&self, mut place: NodeId) -> Option<NodeId> {
        while !matches!(self.op(place), Op::Param | Op::Buffer) {
            place = *self.sources(place).first()?;
        }
        self.props(place).addrspace.is_some().then_some(place)
    }

    /// dtype of a node.
    pub fn dtype(&self, node: NodeId) -> DType {
        self.props[node.index()].dtype
    }

    /// The value of a Const node.
    pub fn as_const(&self, node: NodeId) -> Option<Const> {
        match self.arg(node) {
            Arg::Const(value) if self.op(node) == Op::Const => Some(*value),
            _ => None,
        }
    }

    /// The value of an integer Const node.
    pub fn as_int(&self, node: NodeId) -> Option<i128> {
        self.as_const(node)?.as_int()
    }

    /// All nodes, sources before users.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.ops.len() as u32).map(NodeId)
    }

    /// Nodes that `roots` depend on, sources before users. Bodies of Functions and Calls are included.
    pub fn reachable(&self, roots: &[NodeId]) -> Vec<NodeId> {
        self.reachable_by(roots, |node| self.sources(node))
    }

    /// Like [`Graph::reachable`], but without entering the bodies of Functions and Calls.
    pub fn reachable_outside_bodies(&self, roots: &[NodeId]) -> Vec<NodeId> {
        let skip = |node| usize::from(matches!(self.op(node), Op::Function | Op::Call));
        self.reachable_by(roots, |node| &self.sources(node)[skip(node)..])
    }

    /// As [`Graph::reachable_outside_bodies`], without entering the sources of nodes for which `stop` holds.
    pub fn reachable_until(&self, roots: &[NodeId], stop: impl Fn(NodeId) -> bool) -> Vec<NodeId> {
        let skip = |node| usize::from(matches!(self.op(node), Op::Function | Op::Call));
        self.reachable_by(roots, |node| if stop(node) { &[] } else { &self.sources(node)[skip(node)..] })
    }

    /// Takes time in the number of nodes found rather than the size of the graph: a schedule holds hundreds of kernels.
    fn reachable_by<'a>(&'a self, roots: &[NodeId], sources: impl Fn(NodeId) -> &'a [NodeId]) -> Vec<NodeId> {
        let mut live = vec![0u64; self.len().div_ceil(64)];
        let mut mark = |node: NodeId| {
            let (word, bit) = (&mut live[node.index() / 64], 1 << (node.index() % 64));
            let is_new = *word & bit == 0;
            *word |= bit;
            is_new
        };
        let mut open: Vec<NodeId> = roots.iter().copied().filter(|&root| mark(root)).collect();
        let mut count = open.len();
        while let Some(node) = open.pop() {
            let before = open.len();
            open.extend(sources(node).iter().copied().filter(|&source| mark(source)));
            count += open.len() - before;
        }
        let mut order = Vec::with_capacity(count);
        for (position, mut word) in live.into_iter().enumerate() {
            while word != 0 {
                order.push(NodeId((position * 64) as u32 + word.trailing_zeros()));
                word &= word - 1;
            }
        }
        order
    }

    /// Adds a node that is not merged with equal ones. Copying the graph merges them again.
    ///
    /// # Errors
    /// When [`derive()`] refuses the node.
    pub fn add_unmerged(&mut self, op: Op, sources: &[NodeId], arg: Arg) -> Result<NodeId> {
        self.push(op, sources, arg)
    }

    /// Whether two nodes are structurally equal, even if one of them was added unmerged, or a commutative op has its
    /// operands in the other order.
    pub fn is_equal(&self, a: NodeId, b: NodeId) -> bool {
        let mut met: FxHashSet<(NodeId, NodeId)> = FxHashSet::default();
        let mut open: SmallVec<[(NodeId, NodeId); 8]> = SmallVec::from_iter([(a, b)]);
        while let Some((a, b)) = open.pop() {
            // Each pair of nodes is compared once, however many users they share.
            if a == b || !met.insert((a, b)) {
                continue;
            }
            let (left, right) = (self.sources(a), self.sources(b));
            if self.op(a) != self.op(b) || self.arg(a) != self.arg(b) || left.len() != right.len() {
                return false;
            }
            match (left, right) {
                (&[x, y], &[z, w]) if self.op(a).is_commutative() && !self.is_alike(x, z) => {
                    open.extend([(x, w), (y, z)]);
                }
                _ => open.extend(left.iter().copied().zip(right.iter().copied())),
            }
        }
        true
    }

    /// Whether two nodes may be equal, regardless of their sources.
    fn is_alike(&self, a: NodeId, b: NodeId) -> bool {
        a == b || self.op(a) == self.op(b) && self.arg(a) == self.arg(b) && self.props(a).shape == self.props(b).shape
    }

    fn push(&mut self, op: Op, sources: &[NodeId], arg: Arg) -> Result<NodeId> {
        if self.ops.is_empty() {
            self.reserve(LEAST);
        }
        let props = match *sources {
            [] => derive(op, &arg, &[])?,
            [a] => derive(op, &arg, &[&self.props[a.index()]])?,
            [a, b] => derive(op, &arg, &[&self.props[a.index()], &self.props[b.index()]])?,
            _ => {
                let sources: SmallVec<[&Props; 8]> = sources.iter().map(|source| &self.props[source.index()]).collect();
                derive(op, &arg, &sources)?
            }
        };
        let node = NodeId(self.ops.len() as u32);
        let start = self.pool.len() as u32;
        self.pool.extend_from_slice(sources);
        self.ops.push(op);
        self.args.push(arg);
        self.ranges.push((start, self.pool.len() as u32));
        self.props.push(props);
        self.next.push(None);
        Ok(node)
    }

    /// Records that the user wrote `node` at `location`.
    pub fn locate(&mut self, node: NodeId, location: Location) {
        let places = self.provenance.entry(node).or_default();
        if !places.contains(&location) {
            places.push(location);
        }
    }

    /// As [`Graph::locate`], for the nodes from number `first` on that have no location.
    pub fn locate_from(&mut self, first: usize, location: Location) {
        for node in (first..self.len()).map(|node| NodeId(node as u32)) {
            self.provenance.entry(node).or_insert_with(|| SmallVec::from_iter([location.clone()]));
        }
    }

    /// Where the user wrote `node`.
    pub fn locations(&self, node: NodeId) -> &[Location] {
        self.provenance.get(&node).map_or(&[], |places| places.as_slice())
    }

    /// A node, the node that it is a view of, and so on down to one that is not a view.
    pub fn views(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(Some(node), |&node| self.op(node).is_view().then(|| self.source(node, 0)))
    }

    /// The node below all views of a node; the node itself if it is not a view.
    pub fn viewed(&self, node: NodeId) -> NodeId {
        self.views(node).last().unwrap_or(node)
    }

    /// Adds the user's line of `node` to an error about it.
    pub fn located(&self, node: NodeId, error: Error) -> Error {
        error.at_known(self.locations(node).first().cloned())
    }

    /// Copies the nodes that `roots` depend on from `from` into this graph; `replace` may give the new node for an old one
    /// (its sources are then not copied on its behalf).
    ///
    /// # Errors
    /// When [`derive()`] refuses a node after a replacement.
    pub fn import(
        &mut self,
        from: &Graph,
        roots: &[NodeId],
        mut replace: impl FnMut(&mut Graph, NodeId) -> Result<Option<NodeId>>,
    ) -> Result<Vec<NodeId>> {
        let order = from.reachable(roots);
        self.reserve(order.len());
        let mut map: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        map.reserve(order.len());
        for node in order {
            let new = match replace(self, node)? {
                Some(new) => new,
                None => {
                    let sources: SmallVec<[NodeId; 4]> =
                        from.sources(node).iter().filter_map(|source| map.get(source).copied()).collect();
                    self.add(from.op(node), &sources, from.arg(node).clone())?
                }
            };
            for location in from.locations(node) {
                self.locate(new, location.clone());
            }
            map.insert(node, new);
        }
        Ok(roots.iter().filter_map(|root| map.get(root).copied()).collect())
    }

    /// Content hash of `roots`: equal for equal graphs, whatever their node numbers. Ranges should be renumbered first.
    pub fn content_hash(&self, roots: &[NodeId]) -> ContentHash {
        let mut hashes: Vec<ContentHash> = vec![ContentHash(0); self.len()];
        for node in self.reachable(roots) {
            let mut hasher = ContentHasher::default();
            (self.op(node), self.arg(node)).hash(&mut hasher);
            for source in self.sources(node) {
                hashes[source.index()].hash(&mut hasher);
            }
            hashes[node.index()] = hasher.content_hash();
        }
        ContentHash::of(&roots.iter().map(|root| hashes[root.index()]).collect::<Vec<_>>())
    }

    /// Hash of the graph below `root` itself: two nodes that are equal but were added apart
    /// ([`Graph::add_unmerged`]) differ from one node used twice. It does not depend on how nodes are numbered.
    pub fn structural_hash(&self, root: NodeId) -> ContentHash {
        const OPEN: u32 = u32::MAX;
        let mut hasher = ContentHasher::default();
        // Depth-first postorder gives each node its position; 0 is a node that has not been reached yet.
        let mut positions = vec![0u32; self.len()];
        let mut count = 0;
        // Each with the number of its finished sources.
        let mut path = vec![(root, 0)];
        positions[root.index()] = OPEN;
        while let Some((node, done)) = path.last_mut() {
            let (node, sources) = (*node, self.sources(*node));
            if let Some(&source) = sources.get(*done) {
                *done += 1;
                if positions[source.index()] == 0 {
                    positions[source.index()] = OPEN;
                    path.push((source, 0));
                }
                continue;
            }
            path.pop();
            count += 1;
            positions[node.index()] = count;
            hasher.write_u64((sources.len() as u64) << 8 | self.op(node) as u64);
            for pair in sources.chunks(2) {
                let position = |source: Option<&NodeId>| source.map_or(0, |source| positions[source.index()].into());
                hasher.write_u64(position(pair.first()) | position(pair.get(1)) << 32);
            }
            self.arg(node).hash(&mut hasher);
        }
        hasher.content_hash()
    }
}

impl Builder for Graph {
    fn add(&mut self, op: Op, sources: &[NodeId], arg: Arg) -> Result<NodeId> {
        let mut hasher = rustc_hash::FxHasher::default();
        (op, sources, &arg).hash(&mut hasher);
        let key = hasher.finish();
        let first = self.heads.get(&key).copied();
        let mut candidate = first;
        while let Some(node) = candidate {
            if self.op(node) == op && self.sources(node) == sources && *self.arg(node) == arg {
                return Ok(node);
            }
            candidate = self.next[node.index()];
        }
        let node = self.push(op, sources, arg)?;
        self.next[node.index()] = first;
        if first.is_none() {
            self.heads.insert(key, node);
        }
        Ok(node)
    }

    /// The body and its gradient become nodes here.
    fn function(
        &mut self,
        _: ContentHash,
        make: &mut dyn FnMut() -> Result<OwnGradient>,
        arguments: &[NodeId],
    ) -> Result<NodeId> {
        let OwnGradient { body, outputs, backward, gradients } = make()?;
        let mut elements = self.import(&body, &outputs, |_, _| Ok(None))?;
        let gradients = self.import(&backward, &gradients, |_, _| Ok(None))?;
        elements.push(self.add(Op::Tuple, &gradients, Arg::None)?);
        let tuple = self.add(Op::Tuple, &elements, Arg::None)?;
        self.add(Op::Function, &[&[tuple], arguments].concat(), Arg::None)
    }

    fn props(&self, node: NodeId) -> &Props {
        &self.props[node.index()]
    }
}
