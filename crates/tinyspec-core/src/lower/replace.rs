//! A Range replaced by an expression, in scalars and in tiles.

use super::fold::{self, both, identity};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::affine::{Affine, less};
use tinyspec_ir::dim::{self, show};
use tinyspec_ir::{Arg, Builder, DType, Dim, Error, ErrorKind, Graph, NodeId, Op, Result};

/// The values `roots` with `range` replaced by `position`; loads whose address depends on it happen only where `inside`
/// holds. `None` if anything but values depends on the Range.
pub(crate) fn replace(
    graph: &mut Graph,
    roots: &[NodeId],
    range: NodeId,
    position: &Affine,
    inside: Option<NodeId>,
) -> Result<Option<Vec<NodeId>>> {
    let mut replacement = Replacement::new(range, position, inside);
    for node in graph.reachable(roots) {
        let is_value = graph.op(node).is_elementwise() || is_place(graph, node);
        if replacement.touches(graph, node) && !is_value {
            return Ok(None);
        }
        replacement.node(graph, node)?;
    }
    roots.iter().map(|&root| replacement.value(graph, root)).collect::<Result<_>>().map(Some)
}

/// A kernel with `position` in place of `range` inside the loop over `range`; the loop itself stays.
pub(crate) fn replace_in_loop(graph: &mut Graph, sink: NodeId, range: NodeId, position: &Affine) -> Result<NodeId> {
    let mut replacement = Replacement::new(range, position, None);
    for node in graph.reachable(&[sink]) {
        replacement.node(graph, node)?;
    }
    replacement.value(graph, sink)
}

fn is_place(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.op(node), Op::Range | Op::Index | Op::Load | Op::Expand | Op::Bitcast)
}

/// Rebuilds the nodes of a kernel over other indices, sources first.
pub(crate) struct Replacement {
    range: NodeId,
    inside: Option<NodeId>,
    sums: FxHashMap<NodeId, Affine>,
    new: FxHashMap<NodeId, NodeId>,
}

impl Replacement {
    /// Replaces `range` by a position; accesses whose address depends on it happen only where `inside` holds.
    pub fn new(range: NodeId, position: &Affine, inside: Option<NodeId>) -> Replacement {
        let sums = FxHashMap::from_iter([(range, position.clone())]);
        Replacement { range, inside, sums, new: FxHashMap::default() }
    }

    /// Replaces another index by a sum.
    pub fn insert_sum(&mut self, node: NodeId, sum: Affine) {
        self.sums.insert(node, sum);
    }

    /// Replaces another node.
    pub fn insert(&mut self, node: NodeId, new: NodeId) {
        self.new.insert(node, new);
    }

    fn is_changed(&self, node: &NodeId) -> bool {
        self.sums.contains_key(node) || self.new.contains_key(node)
    }

    fn touches(&self, graph: &Graph, node: NodeId) -> bool {
        graph.sources(node).iter().any(|source| self.is_changed(source))
    }

    /// The new form of an index.
    pub fn sum(&self, graph: &Graph, node: NodeId) -> Affine {
        match (self.sums.get(&node), self.new.get(&node)) {
            (Some(sum), _) => sum.clone(),
            (None, Some(&new)) => Affine::leaf(graph, new),
            (None, None) => Affine::of(graph, node),
        }
    }

    /// The new node for an old one.
    pub fn value(&mut self, graph: &mut Graph, node: NodeId) -> Result<NodeId> {
        match (self.new.get(&node), self.sums.get(&node)) {
            (Some(&new), _) => Ok(new),
            (None, Some(sum)) => {
                let new = sum.clone().emit(graph)?;
                self.new.insert(node, new);
                Ok(new)
            }
            (None, None) => Ok(node),
        }
    }

    /// Rebuilds a node.
    pub fn node(&mut self, graph: &mut Graph, node: NodeId) -> Result<()> {
        if node == self.range || !self.touches(graph, node) {
            return Ok(());
        }
        let op = graph.op(node);
        let old: SmallVec<[NodeId; 4]> = graph.sources(node).into();
        let is_index = |graph: &Graph, node: NodeId| graph.dtype(node) == DType::Index;
        if is_index(graph, node) && matches!(op, Op::Add | Op::Mul | Op::Idiv | Op::Mod) {
            let sources: SmallVec<[Affine; 2]> = old.iter().map(|&source| self.sum(graph, source)).collect();
            let sum = Affine::combine(graph, op, &sources)?;
            self.sums.insert(node, sum);
            return Ok(());
        }
        if op == Op::CmpLt && is_index(graph, old[0]) {
            let (a, b) = (self.sum(graph, old[0]), self.sum(graph, old[1]));
            let new = less(graph, &a, &b)?;
            self.new.insert(node, new);
            return Ok(());
        }
        let arg = graph.arg(node).clone();
        let mut sources = SmallVec::<[NodeId; 4]>::new();
        for &source in &old {
            // Loops, and nodes that wait for them, keep the Range itself.
            let is_loop = source == self.range && matches!(op, Op::End | Op::After | Op::Reduce);
            sources.push(if is_loop { source } else { self.value(graph, source)? });
        }
        if op == Op::Store && self.inside.is_some() && self.is_changed(&old[0]) {
            let gate = both(graph, sources.get(2).copied(), self.inside)?;
            sources.truncate(2);
            sources.extend(gate);
        }
        let new = match op {
            Op::Load if self.is_changed(&old[0]) => self.load(graph, &sources, arg)?,
            // An access that always happens needs no gate.
            Op::Load | Op::Store if sources.get(2).is_some_and(|&gate| graph.as_int(gate) == Some(1)) => {
                graph.add(op, &sources[..if op == Op::Load { 1 } else { 2 }], arg)?
            }
            // One address whose single gate has become several.
            Op::Load | Op::Store | Op::AtomicAdd => {
                sources[0] = span(graph, &sources)?;
                graph.add(op, &sources, arg)?
            }
            Op::Expand => {
                let dims =
                    dim::static_shape(&graph.props(node).shape).map(|dims| dim::shape(&dims)).unwrap_or_default();
                let dims = dim::broadcast(&dims, &graph.props(sources[0]).shape)
                    .ok_or_else(|| Error::new(ErrorKind::Verify, op.name(), "tiles that do not fit each other"))?;
                let dims = graph.shape(&dims)?;
                graph.add(op, &[sources[0], dims], arg)?
            }
            _ if op.is_elementwise() => fold::elementwise(graph, op, &sources, arg)?,
            _ => graph.add(op, &sources, arg)?,
        };
        self.new.insert(node, new);
        Ok(())
    }

    fn load(&self, graph: &mut Graph, sources: &[NodeId], arg: Arg) -> Result<NodeId> {
        let mut sources: SmallVec<[NodeId; 4]> = sources.into();
        if self.inside.is_some() {
            let alternative = match sources.get(1) {
                Some(&alternative) => alternative,
                None => identity(graph, Op::Add, graph.dtype(sources[0])),
            };
            let gate = both(graph, sources.get(2).copied(), self.inside)?;
            sources.truncate(1);
            match gate {
                Some(gate) if graph.as_int(gate) == Some(0) => return Ok(alternative),
                Some(gate) if graph.as_int(gate).is_none() => sources.extend([alternative, gate]),
                _ => {}
            }
        }
        if sources.get(2).is_some_and(|&gate| graph.as_int(gate) == Some(1)) {
            sources.truncate(1);
        }
        sources[0] = span(graph, &sources)?;
        graph.add(Op::Load, &sources, arg)
    }
}

/// Broadcasts the address of an access to the shape of its gate and value: one address may be read under several gates.
pub(super) fn span(graph: &mut Graph, access: &[NodeId]) -> Result<NodeId> {
    let address = access[0];
    let mut dims = graph.props(address).shape.clone();
    for &source in &access[1..] {
        let other = &graph.props(source).shape;
        dims = dim::broadcast(&dims, other).ok_or_else(|| {
            let message = format!("tiles {} and {} of one access", show(&dims), show(other));
            Error::new(ErrorKind::Verify, "expand", message)
        })?;
    }
    let (Op::Index, [buffer, index]) = (graph.op(address), graph.sources(address)) else { return Ok(address) };
    let extent = |dims: &[Dim]| dims.iter().filter(|dim| !dim.is(1)).count();
    if extent(&dims) == extent(&graph.props(address).shape) {
        return Ok(address);
    }
    let (buffer, index) = (*buffer, *index);
    let dims = graph.shape(&dims)?;
    let index = graph.add(Op::Expand, &[index, dims], Arg::None)?;
    graph.add(Op::Index, &[buffer, index], Arg::None)
}
