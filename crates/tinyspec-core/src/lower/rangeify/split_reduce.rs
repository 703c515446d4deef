//! Splits large Reduces to few elements in two: within parts, which threads share, and over the parts. Shorter chains
//! of additions also round less. A Reduce is unordered, so any tree of partial results is valid.

use super::count::counted;
use super::fusion::Costs;
use super::movement::{count, dims};
use super::variance::Variance;
use smallvec::SmallVec;
use tinyspec_ir::dim::shape;
use tinyspec_ir::{Arg, Axes, Builder, Graph, NodeId, Op, Result};

/// The most results; with more, threads share the output space instead.
const RESULTS: i64 = 32;
/// Bounds of the number of parts.
const PARTS: (i64, i64) = (16, 4096);
/// The most elements of a part that each lane of a vector adds up: longer chains round more.
const CHAIN: i64 = 4096;
/// Parts of a multiple of this many elements fill vectors and accumulators.
const GRAIN: i64 = 64;

/// The graph with its large Reduces split, and its outputs; `None` if there are none.
pub(in super::super) fn split_reduces(
    graph: &Graph,
    outputs: &[NodeId],
    costs: &Costs,
) -> Result<Option<(Graph, Vec<NodeId>)>> {
    let live = graph.reachable_outside_bodies(outputs);
    let centred: Vec<Variance> = live.iter().filter_map(|&node| Variance::of(graph, node)).collect();
    let split = |node: NodeId, around: Option<&Variance>| {
        let is_walked_twice = || around.is_some() || centred.iter().any(|centred| centred.is_sum(graph, node));
        SplitReduce::of(graph, node, costs, is_walked_twice)
    };
    if !live.iter().any(|&node| split(node, None).is_some()) {
        return Ok(None);
    }
    let replace = |result: &mut Graph, node: NodeId, new: &[NodeId]| {
        let around = Variance::of(graph, node);
        let Some(split) = split(node, around.as_ref()) else { return Ok(None) };
        let around = around.map(|around| (new[around.x.index()], new[around.mean.index()], around));
        split.build(result, new[graph.source(node, 0).index()], around).map(Some)
    };
    replaced(graph, outputs, &live, replace).map(Some)
}

/// Rebuilds a graph with some of its `live` nodes replaced. `replace` may return a new node for an old one, given the
/// new nodes of those before it.
pub(super) fn replaced(
    graph: &Graph,
    outputs: &[NodeId],
    live: &[NodeId],
    mut replace: impl FnMut(&mut Graph, NodeId, &[NodeId]) -> Result<Option<NodeId>>,
) -> Result<(Graph, Vec<NodeId>)> {
    let mut result = graph.clone();
    let mut new: Vec<NodeId> = graph.nodes().collect();
    for &node in live {
        let made = match replace(&mut result, node, &new)? {
            Some(made) => made,
            None => {
                let sources: SmallVec<[NodeId; 4]> =
                    graph.sources(node).iter().map(|source| new[source.index()]).collect();
                if sources[..] == *graph.sources(node) {
                    continue;
                }
                result.add(graph.op(node), &sources, graph.arg(node).clone())?
            }
        };
        for location in graph.locations(node) {
            result.locate(made, location.clone());
        }
        new[node.index()] = made;
    }
    Ok((result, outputs.iter().map(|output| new[output.index()]).collect()))
}

/// A Reduce with one axis divided into `parts` of `length`, and a rest. Each position along the reduced axes before it
/// has parts of its own, so that a part is contiguous in memory.
pub(super) struct SplitReduce {
    op: Op,
    axes: Axes,
    pub(super) dims: Vec<i64>,
    pub(super) axis: usize,
    parts: i64,
    length: i64,
}

impl SplitReduce {
    /// Parts that are read twice must fit in the first cache.
    fn of(graph: &Graph, node: NodeId, costs: &Costs, is_walked_twice: impl FnOnce() -> bool) -> Option<SplitReduce> {
        let Arg::Reduce { op, axes } = graph.arg(node) else { return None };
        let &[source] = graph.sources(node) else { return None };
        let dims = dims(graph, source).ok()?;
        let trips: i64 = axes.iter().map(|&axis| dims[axis as usize]).product();
        let least = (4.0 * costs.parallel).max(1.0) as i64;
        let dtype = graph.dtype(node);
        if trips < least
            || count(&dims) / trips > RESULTS
            // Partial results would be rounded.
            || dtype.accumulator_of(*op) != dtype
            || counted(graph, node).is_some()
        {
            return None;
        }
        let extent = |axis: u32| dims[axis as usize];
        // Results interleaved with the elements of another share its cache lines.
        let first = *axes.iter().min()?;
        let between: i64 = (first..dims.len() as u32).filter(|axis| !axes.contains(axis)).map(extent).product();
        let wanted = match is_walked_twice() {
            true => trips / (costs.part / (between.max(1) * dtype.size() as i64)).max(1),
            false => (trips / least.min(CHAIN * costs.vector as i64)).clamp(PARTS.0, PARTS.1),
        };
        if wanted < 2 {
            return None;
        }
        // Parts along the outermost axes are contiguous.
        let mut before = 1;
        let axis = axes.iter().copied().find(|&axis| {
            let is_enough = before * extent(axis) >= wanted;
            before *= if is_enough { 1 } else { extent(axis) };
            is_enough
        })?;
        let wanted = (wanted + before - 1) / before;
        let is_last = axes.iter().all(|&other| other <= axis);
        let exact = |parts: &i64| extent(axis) % parts == 0;
        let full = |parts: &i64| extent(axis) % (parts * GRAIN) == 0;
        let around = || wanted..=(2 * wanted).min(extent(axis) / 2);
        let parts = match around().find(full).or_else(|| around().find(exact)) {
            Some(parts) => parts,
            None if is_last => wanted.min(extent(axis) / 2),
            None => around().min_by_key(|parts| extent(axis) % parts).unwrap_or(extent(axis)),
        };
        if before * parts < 2 {
            return None;
        }
        let mut length = extent(axis) / parts;
        if is_last && extent(axis) % parts != 0 && length > GRAIN {
            length -= length % GRAIN;
        }
        Some(SplitReduce { op: *op, axes: axes.clone(), dims: dims.to_vec(), axis: axis as usize, parts, length })
    }

    fn build(&self, graph: &mut Graph, source: NodeId, around: Option<(NodeId, NodeId, Variance)>) -> Result<NodeId> {
        let &SplitReduce { op, axis, parts, length, .. } = self;
        let total = match around {
            Some((x, mean, centred)) => centred.build(self, graph, (x, mean))?,
            None => {
                let rows = self.rows(graph, source)?;
                let rows = self.of_parts(graph, op, rows)?;
                self.over_parts(graph, op, rows)?
            }
        };
        let rest = self.dims[axis] - parts * length;
        if rest == 0 {
            return Ok(total);
        }
        let rest = self.window(graph, source, parts * length, rest)?;
        let rest = graph.add(Op::Reduce, &[rest], Arg::Reduce { op, axes: self.axes.clone() })?;
        graph.alu(op, &[total, rest])
    }

    /// All parts, as an axis of their own.
    pub(super) fn rows(&self, graph: &mut Graph, source: NodeId) -> Result<NodeId> {
        let whole = self.window(graph, source, 0, self.parts * self.length)?;
        let mut dims = self.dims.clone();
        dims.splice(self.axis..=self.axis, [self.parts, self.length]);
        let dims = graph.shape(&shape(&dims))?;
        graph.add(Op::Reshape, &[whole, dims], Arg::None)
    }

    /// Elements of a part.
    pub(super) fn elements(&self) -> i64 {
        let behind = self.axes.iter().map(|&axis| axis as usize).filter(|&axis| axis > self.axis);
        behind.map(|axis| self.dims[axis]).product::<i64>() * self.length
    }

    /// Each part reduced.
    pub(super) fn of_parts(&self, graph: &mut Graph, op: Op, rows: NodeId) -> Result<NodeId> {
        let axes = self.axes.iter().filter(|&&axis| axis as usize >= self.axis).map(|&axis| axis + 1).collect();
        let rows = graph.add(Op::Reduce, &[rows], Arg::Reduce { op, axes })?;
        // Stored until all are computed.
        graph.add(Op::Contiguous, &[rows], Arg::Stored)
    }

    /// The reduction over the partial results.
    pub(super) fn over_parts(&self, graph: &mut Graph, op: Op, rows: NodeId) -> Result<NodeId> {
        let axes = self.axes.iter().copied().filter(|&axis| axis as usize <= self.axis).collect();
        let total = graph.add(Op::Reduce, &[rows], Arg::Reduce { op, axes })?;
        let mut dims = self.dims.clone();
        self.axes.iter().for_each(|&axis| dims[axis as usize] = 1);
        let dims = graph.shape(&shape(&dims))?;
        graph.add(Op::Reshape, &[total, dims], Arg::None)
    }

    /// `length` elements of the axis from `offset` on.
    fn window(&self, graph: &mut Graph, source: NodeId, offset: i64, length: i64) -> Result<NodeId> {
        if length == self.dims[self.axis] {
            return Ok(source);
        }
        let (mut offsets, mut dims) = (vec![0; self.dims.len()], self.dims.clone());
        (offsets[self.axis], dims[self.axis]) = (offset, length);
        let (offsets, dims) = (graph.shape(&shape(&offsets))?, graph.shape(&shape(&dims))?);
        graph.add(Op::Shrink, &[source, offsets, dims], Arg::None)
    }
}
