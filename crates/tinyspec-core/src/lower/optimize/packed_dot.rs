//! Sums of products of which one instruction computes several terms ("TC"): two or four in a word of each operand.

use super::kernel::Kernel;
use crate::lower::products::word_dtypes;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_backends::Target;
use tinyspec_ir::rules::widened_as_written;
use tinyspec_ir::{Arg, Builder, DType, Graph, NodeId, Op, Result};

/// `Σ a · b` of two Loads in such a type.
#[derive(Clone, Debug)]
pub struct Product {
    /// The product.
    pub node: NodeId,
    /// The Load of each operand.
    pub loads: [NodeId; 2],
    /// The Casts around them.
    pub casts: [NodeId; 2],
    /// Ranges along which consecutive trips may be packed into a word.
    pub ranges: SmallVec<[NodeId; 2]>,
    /// The element dtypes that words may hold, as [`tinyspec_ir::words`] lists them, narrowest first.
    pub numbers: &'static [DType],
}

impl Product {
    /// The narrowest element dtype that the target has an instruction for, if any.
    pub fn on(&self, target: &Target) -> Option<DType> {
        self.numbers.iter().copied().find(|&numbers| target.has_tensor_core(numbers))
    }

    /// Whether a node is a part of the product that the words replace.
    pub(super) fn covers(&self, node: NodeId) -> bool {
        self.loads.contains(&node) || self.casts.contains(&node)
    }
}

/// Whether a strict function widened numbers of bf16 as written: its products are not computed in pairs then.
pub(super) fn is_strict(graph: &Graph, sink: NodeId) -> bool {
    graph.reachable(&[sink]).iter().any(|&node| widened_as_written(graph, node).is_some())
}

/// The kernel with such numbers widened by one Cast.
pub(in super::super) fn as_written(graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
    if !is_strict(graph, sink) {
        return Ok(sink);
    }
    let mut new: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for node in graph.reachable(&[sink]) {
        let value = match widened_as_written(graph, node) {
            Some(x) => graph.add(Op::Cast, &[new[&x]], graph.arg(node).clone())?,
            None => {
                let sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|source| new[source]).collect();
                graph.add(graph.op(node), &sources, graph.arg(node).clone())?
            }
        };
        new.insert(node, value);
    }
    Ok(new[&sink])
}

/// The product that the kernel's only sum adds up.
pub(super) fn find(graph: &Graph, kernel: &Kernel) -> Option<Product> {
    let [reduction] = kernel.reductions.as_slice() else { return None };
    let Arg::Reduce { op: Op::Add, .. } = graph.arg(reduction.node) else { return None };
    let node = graph.source(reduction.node, 0);
    let casts = <[NodeId; 2]>::try_from(graph.sources(node)).ok().filter(|_| graph.op(node) == Op::Mul)?;
    let load = |cast: NodeId| {
        let load = (graph.op(cast) == Op::Cast).then(|| graph.source(cast, 0))?;
        (graph.op(load) == Op::Load && graph.sources(load).len() == 1).then_some(load)
    };
    let loads = [load(casts[0])?, load(casts[1])?];
    let numbers = word_dtypes(graph.dtype(node), loads.map(|load| graph.dtype(load)))?;
    // The words take the place of all that the sum reads.
    let used_once =
        |node: NodeId| kernel.order.iter().filter(|&&user| graph.sources(user).contains(&node)).count() == 1;
    if loads[0] == loads[1] || !casts.iter().chain(&loads).all(|&node| used_once(node)) {
        return None;
    }
    let access = |load: NodeId| kernel.accesses.iter().find(|access| access.node == load);
    let operands = [access(loads[0])?, access(loads[1])?];
    let regular = |atom: NodeId| graph.op(atom) == Op::Range;
    if !operands.iter().all(|access| access.index.atoms().all(regular)) {
        return None;
    }
    let is_walked = |range: &&NodeId| operands.iter().all(|access| access.index.coefficient(**range) != 0);
    let ranges: SmallVec<[NodeId; 2]> = reduction.ranges.iter().filter(is_walked).copied().collect();
    (!ranges.is_empty()).then_some(Product { node, loads, casts, ranges, numbers })
}
