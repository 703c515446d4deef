//! Splits long sums of products with much operand reuse in two: a sum within blocks whose operands stay in the cache,
//! and a sum over the blocks. The gradient of a convolution's filters is of this kind, a sum over all positions of all
//! images. A Reduce is unordered, so any tree of partial sums is valid.

use super::fusion::Costs;
use super::movement::{count, dims};
use super::split_reduce::replaced;
use smallvec::SmallVec;
use tinyspec_ir::dim::shape;
use tinyspec_ir::{Arg, Axes, Builder, Graph, NodeId, Op, Result};

/// The least number of products that each element of an operand takes part in.
const REUSE: i64 = 16;

/// The graph with its long sums of products in blocks, and its outputs; `None` if there are none.
pub(in super::super) fn block_products(
    graph: &Graph,
    outputs: &[NodeId],
    costs: &Costs,
) -> Result<Option<(Graph, Vec<NodeId>)>> {
    let live = graph.reachable_outside_bodies(outputs);
    if !live.iter().any(|&node| Blocks::of(graph, node, costs).is_some()) {
        return Ok(None);
    }
    let replace = |result: &mut Graph, node: NodeId, new: &[NodeId]| match Blocks::of(graph, node, costs) {
        Some(blocks) => blocks.build(result, new[graph.source(node, 0).index()]).map(Some),
        None => Ok(None),
    };
    replaced(graph, outputs, &live, replace).map(Some)
}

/// A sum whose outer axes are cut into blocks.
struct Blocks {
    axes: Axes,
    dims: Vec<i64>,
    /// Axes, each with its number of blocks, which divides its size.
    cuts: SmallVec<[(usize, i64); 2]>,
}

impl Blocks {
    /// A product over one axis is blocked within its own kernel.
    fn of(graph: &Graph, node: NodeId, costs: &Costs) -> Option<Blocks> {
        let (Arg::Reduce { op: Op::Add, axes }, &[source]) = (graph.arg(node), graph.sources(node)) else {
            return None;
        };
        let (dims, dtype) = (dims(graph, source).ok()?, graph.dtype(node));
        let trips: i64 = axes.iter().map(|&axis| dims[axis as usize]).product();
        let long = axes.iter().filter(|&&axis| dims[axis as usize] > 1).count();
        // Partial sums would be rounded if the accumulator is wider than the dtype.
        let is_exact = dtype.accumulator_of(Op::Add) == dtype;
        if trips <= 2 * costs.cached || long < 2 || graph.op(source) != Op::Mul || !is_exact {
            return None;
        }
        let all = count(&dims);
        let is_reused = |&operand: &NodeId| {
            let elements = graph.props(graph.viewed(operand)).element_count().as_const();
            elements.is_some_and(|elements| elements.saturating_mul(REUSE) <= all)
        };
        if !graph.sources(source).iter().all(is_reused) {
            return None;
        }
        let mut wanted = (trips + costs.cached - 1) / costs.cached;
        let mut cuts = SmallVec::new();
        for &axis in axes {
            let extent = dims[axis as usize];
            if wanted < 2 || cuts.len() + 1 == long {
                break;
            }
            if extent > 1 {
                let parts = (wanted..=extent).find(|parts| extent % parts == 0).unwrap_or(extent);
                cuts.push((axis as usize, parts));
                wanted = (wanted + parts - 1) / parts;
            }
        }
        (!cuts.is_empty()).then(|| Blocks { axes: axes.clone(), dims: dims.to_vec(), cuts })
    }

    fn build(&self, graph: &mut Graph, source: NodeId) -> Result<NodeId> {
        let (mut dims, mut inside, mut parts) = (Vec::new(), Axes::new(), Axes::new());
        for (axis, &size) in self.dims.iter().enumerate() {
            let cut = self.cuts.iter().find(|cut| cut.0 == axis).map(|cut| cut.1);
            if let Some(count) = cut {
                parts.push(dims.len() as u32);
                dims.push(count);
            }
            if self.axes.contains(&(axis as u32)) {
                inside.push(dims.len() as u32);
            }
            dims.push(size / cut.unwrap_or(1));
        }
        let dims = graph.shape(&shape(&dims))?;
        let rows = graph.add(Op::Reshape, &[source, dims], Arg::None)?;
        let rows = graph.add(Op::Reduce, &[rows], Arg::Reduce { op: Op::Add, axes: inside })?;
        // Stored between the two sums.
        let rows = graph.add(Op::Contiguous, &[rows], Arg::Stored)?;
        let total = graph.add(Op::Reduce, &[rows], Arg::Reduce { op: Op::Add, axes: parts })?;
        let mut dims = self.dims.clone();
        self.axes.iter().for_each(|&axis| dims[axis as usize] = 1);
        let dims = graph.shape(&shape(&dims))?;
        graph.add(Op::Reshape, &[total, dims], Arg::None)
    }
}
