//! Which sum of products a kernel is tiled for. A register tile reuses each loaded value many times; it requires that
//! the output loops of the kernel are those of the sum, and that there is no other Reduce next to it. So each kernel
//! has at most one such sum, and fusing anything else costs the slowdown of an untiled sum.

use super::choices::uncast;
use super::fusion::{Estimates, value_sources};
use super::index::Ranges;
use super::movement::{count, estimate, shape, sizes};
use super::walk::{DemandId, Need, Walk};
use rustc_hash::FxHashMap;
use std::collections::BinaryHeap;
use tinyspec_ir::{Arg, Axes, Graph, NodeId, Op, masks};

/// Which operands of a sum of products are reused by other results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reuse {
    /// It is not a sum of products, or each element is read once.
    None,
    /// One: a matrix times a vector.
    One,
    /// Both: a matrix product, a convolution.
    Both,
}

/// The operands of a sum of products, below views and Casts.
pub(super) fn operands(graph: &Graph, node: NodeId) -> Option<[NodeId; 2]> {
    let Arg::Reduce { op: Op::Add, .. } = graph.arg(node) else { return None };
    let product = viewed(graph, graph.source(node, 0));
    match (graph.op(product), graph.sources(product)) {
        (Op::Mul, &[a, b]) => Some([viewed(graph, a), viewed(graph, b)]),
        _ => None,
    }
}

fn viewed(graph: &Graph, mut node: NodeId) -> NodeId {
    while graph.op(node).is_view() || matches!(graph.op(node), Op::Cast | Op::Detach | Op::Contiguous) {
        node = graph.source(node, 0);
    }
    node
}

impl Reuse {
    pub(super) fn of(graph: &Graph, node: NodeId) -> Reuse {
        let Some(operands) = operands(graph, node) else { return Reuse::None };
        let products = count(&sizes(graph, graph.source(node, 0)));
        let elements = operands.map(|operand| count(&sizes(graph, operand)));
        let is_reused = |elements: &i64| *elements > 1 && elements.saturating_mul(2) <= products;
        match elements.iter().filter(|elements| is_reused(elements)).count() {
            _ if elements.contains(&1) => Reuse::None,
            0 => Reuse::None,
            1 => Reuse::One,
            _ => Reuse::Both,
        }
    }
}

impl Estimates {
    /// The sum of products that a kernel for this node is tiled for: the last one without other uses. The search visits
    /// as many nodes as a kernel may hold.
    fn tile(&self, graph: &Graph, root: NodeId, nodes: usize) -> Option<NodeId> {
        if graph.op(root) == Op::Reduce {
            return (self.reuse(root) == Reuse::Both).then_some(root);
        }
        let elements = count(&sizes(graph, root));
        let mut needed: FxHashMap<NodeId, u32> = FxHashMap::default();
        let mut pending = BinaryHeap::from([root]);
        let mut last = None;
        // Users come before their sources.
        for _ in 0..nodes {
            let Some(node) = pending.pop() else { break };
            for &source in value_sources(graph, node) {
                let needed = needed.entry(source).or_default();
                *needed += 1;
                let is_own = *needed == self.users(source) && !self.is_stored(source);
                if !is_own || count(&sizes(graph, source)) != elements {
                    continue;
                }
                match graph.op(source) {
                    Op::Reduce if self.reuse(source) == Reuse::Both => last = last.max(Some(source)),
                    op if op.is_elementwise() || op.is_view() || op == Op::Detach => pending.push(source),
                    _ => {}
                }
            }
        }
        last
    }
}

impl Walk<'_> {
    /// As [`Estimates::tile`], but `None` for sums over blocks, whose tiles are different.
    pub(super) fn tile(&self, root: NodeId) -> Option<NodeId> {
        let tile = self.estimates.tile(self.tensors, root, self.costs.nodes);
        tile.filter(|&sum| self.online.summed(sum).is_none())
    }

    /// The operations that the consumer of a demand loses if it computes the value itself, because a sum of products is
    /// not tiled then: that of the value, or its own.
    pub(super) fn untiled(&self, demand: DemandId, ranges: &[NodeId], trips: f64) -> f64 {
        let need = &self.needs[demand as usize];
        let kernel = &self.kernels[need.kernel];
        if self.is_operand(demand) {
            let computed = kernel.tile.filter(|_| !self.estimates.is_masked_read(self.tensors, need.node));
            return computed.map_or(0.0, |tile| self.slower(tile));
        }
        let Some(sum) = self.estimates.sum(self.tensors, need.node) else { return 0.0 };
        if kernel.online.is_some() || self.online.summed(sum).is_some() {
            return 0.0;
        }
        let work = |sum: NodeId| self.estimates.work(sum);
        let is_only = self.demands_in(need.kernel, need.node).count() == 1;
        // A tile multiplies everything that it has loaded, so it cannot have gated elements, as around a Pad.
        let is_whole = ranges == &kernel.ranges[..];
        let is_tiled = is_whole && need.gate.is_none();
        let is_first = kernel.tile.map_or(kernel.sums == 0, |tile| tile == sum);
        let own = match self.estimates.reuse(sum) {
            Reuse::Both if is_tiled && is_only && is_first => 0.0,
            Reuse::One if is_whole => 0.0,
            Reuse::None => 0.0,
            _ => trips * work(sum),
        };
        let displaced = kernel.tile.filter(|&tile| tile != sum);
        own * (self.costs.untiled - 1.0) + displaced.map_or(0.0, |tile| self.slower(tile))
    }

    /// Whether a sum of products is tiled only if it is stored. As part of the sum that demands it, it would be read at indices with
    /// quotients, as in a strided transposed convolution, although results of that kernel share each of its operands.
    pub(super) fn breaks_tile(&mut self, demand: DemandId) -> bool {
        let Need { node, kernel, tuple, .. } = &self.needs[demand as usize];
        let (graph, results) = (self.tensors, &self.kernels[*kernel].ranges);
        if graph.op(*node) != Op::Reduce || !tuple.iter().any(|&place| self.indices.has_quotient(place)) {
            return false;
        }
        let product = uncast(graph, graph.source(*node, 0));
        let (Op::Mul, &[a, b]) = (graph.op(product), graph.sources(product)) else { return false };
        let [a, b] = [a, b].map(|operand| masks::varying_axes(graph, operand, tuple.len()));
        let mut only = |own: &Axes, other: &Axes| {
            let mut places = own.iter().filter(|axis| !other.contains(axis)).map(|&axis| tuple[axis as usize]);
            places.any(|place| self.indices.ranges_of([place]).iter().any(|range| results.contains(range)))
        };
        only(&a, &b) && only(&b, &a)
    }

    /// The additional operations of a sum of products if it is not tiled.
    fn slower(&self, sum: NodeId) -> f64 {
        count(&sizes(self.tensors, sum)) as f64 * self.estimates.work(sum) * (self.costs.untiled - 1.0)
    }

    /// Whether the value would be computed as an operand of the sum that its kernel is tiled for: a tile multiplies the
    /// elements that it loads, if necessary under a mask. The first of several demands of a kernel decides for all.
    fn is_operand(&self, demand: DemandId) -> bool {
        let need = &self.needs[demand as usize];
        let tile = self.kernels[need.kernel].tile.filter(|&sum| self.online.summed(sum).is_none());
        let is_one = tile.and_then(|sum| operands(self.tensors, sum)).is_some_and(|two| two.contains(&need.node));
        is_one && self.demands_in(need.kernel, need.node).next() == Some(demand)
    }

    /// How often the consumer of a demand evaluates the value: `trips` times, unless a tile reads it.
    pub(super) fn evaluated(&self, demand: DemandId, trips: f64) -> f64 {
        let node = self.needs[demand as usize].node;
        let is_loaded = self.is_operand(demand) && self.estimates.is_masked_read(self.tensors, node);
        // Two vectors of results share the loads of their tile.
        if is_loaded { trips / (2 * self.costs.vector) as f64 } else { trips }
    }

    /// The demands of a kernel on a node.
    fn demands_in(&self, kernel: usize, node: NodeId) -> impl Iterator<Item = DemandId> {
        let demands = self.of_node[node.index()].iter().copied();
        demands.filter(move |&demand| self.needs[demand as usize].kernel == kernel)
    }

    /// Bytes of the operands of a sum that the consumer also reads in its inner loops, from the cache.
    pub(super) fn shared(&self, demand: DemandId, ranges: &[NodeId], trips: f64) -> f64 {
        let need = &self.needs[demand as usize];
        let kernel = &self.kernels[need.kernel];
        let sum = self.estimates.sum(self.tensors, need.node).filter(|_| ranges != &kernel.ranges[..]);
        let Some(operands) = sum.and_then(|sum| operands(self.tensors, sum)) else { return 0.0 };
        let is_read = |&operand: &NodeId| self.demands_in(need.kernel, operand).next().is_some();
        let bytes = |operand: NodeId| {
            let elements: i64 = shape(self.tensors, operand).iter().map(estimate).product();
            elements as f64 * self.tensors.dtype(operand).size() as f64
        };
        let bytes = operands.into_iter().filter(is_read).map(bytes);
        bytes.filter(|bytes| bytes / trips.max(1.0) <= self.costs.cache as f64).sum()
    }

    /// Whether the kernel of `home` can store this node, too, without losing its tile.
    pub(super) fn keeps_tile(&self, home: usize, node: NodeId) -> bool {
        let kernel = &self.kernels[home];
        let tile = self.tile(node);
        match kernel.tile {
            Some(own) => tile.or(self.estimates.sum(self.tensors, node)).is_none_or(|sum| sum == own),
            None => tile.is_none() || kernel.sums == 0,
        }
    }

    /// Records that a sum becomes part of a kernel.
    pub(super) fn add_sum(&mut self, node: NodeId, kernel: usize, ranges: &Ranges) {
        let tile = self.tile(node).filter(|_| *ranges == self.kernels[kernel].ranges);
        let kernel = &mut self.kernels[kernel];
        if kernel.sums == 0 {
            kernel.tile = kernel.tile.or(tile);
        }
        kernel.sums += 1;
    }
}
