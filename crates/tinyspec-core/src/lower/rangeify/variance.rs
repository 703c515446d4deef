//! Large sums of squares around a mean, `Σ (x - m)²`, in one pass over memory.
//!
//! Each part of x that fits in the first cache gives its sum s, and the sum of squares around its own mean c = s / n;
//! around m, each part adds n·(c - m)². Sums of squares around 0 would cancel.

use super::movement::dims;
use super::split_reduce::SplitReduce;
use tinyspec_ir::dim::shape;
use tinyspec_ir::ops::arithmetic::negated;
use tinyspec_ir::{Arg, Axes, Builder, Const, Graph, NodeId, Op, Result};

/// A sum of squared deviations of x from its mean.
#[derive(Clone)]
pub(super) struct Variance {
    pub(super) x: NodeId,
    pub(super) mean: NodeId,
    pub(super) axes: Axes,
}

impl Variance {
    pub(super) fn of(graph: &Graph, node: NodeId) -> Option<Variance> {
        let (&[square], Arg::Reduce { op: Op::Add, axes }) = (graph.sources(node), graph.arg(node)) else {
            return None;
        };
        let (Op::Mul, &[a, b]) = (graph.op(square), graph.sources(square)) else { return None };
        let (true, Op::Add, &[x, minus]) = (a == b, graph.op(a), graph.sources(a)) else { return None };
        let (x, mean) = negated(graph, minus).map(|mean| (x, mean)).or_else(|| Some((minus, negated(graph, x)?)))?;
        let (whole, of_mean) = (dims(graph, x).ok()?, dims(graph, mean).ok()?);
        let lead = whole.len().checked_sub(of_mean.len())?;
        let is_one = |axis: u32| (axis as usize).checked_sub(lead).is_none_or(|axis| of_mean[axis] == 1);
        let fits = whole == dims(graph, square).ok()? && axes.iter().all(|&axis| is_one(axis));
        (fits && is_of(graph, mean, x, axes)).then(|| Variance { x, mean, axes: axes.clone() })
    }

    /// Whether this is the sum of x from which the mean was computed.
    pub(super) fn is_sum(&self, graph: &Graph, node: NodeId) -> bool {
        let is_add = matches!(graph.arg(node), Arg::Reduce { op: Op::Add, axes } if *axes == self.axes);
        is_add && graph.op(node) == Op::Reduce && graph.sources(node) == [self.x]
    }

    /// The sum over the parts; x and the mean are nodes of the new graph.
    pub(super) fn build(&self, split: &SplitReduce, graph: &mut Graph, (x, mean): (NodeId, NodeId)) -> Result<NodeId> {
        let dtype = graph.dtype(x);
        let rows = split.rows(graph, x)?;
        let sums = split.of_parts(graph, Op::Add, rows)?;
        let count = graph.constant(Const::float(dtype, split.elements() as f64));
        let center = graph.alu(Op::Div, &[sums, count])?;
        let squares = squared_difference(graph, rows, center)?;
        let squares = split.of_parts(graph, Op::Add, squares)?;
        let mut around = vec![1; split.dims.len()];
        let of_mean = dims(graph, mean)?;
        let lead = around.len() - of_mean.len();
        around[lead..].copy_from_slice(&of_mean);
        around.insert(split.axis + 1, 1);
        let around = graph.shape(&shape(&around))?;
        let mean = graph.add(Op::Reshape, &[mean, around], Arg::None)?;
        let shift = squared_difference(graph, center, mean)?;
        let shift = graph.alu(Op::Mul, &[shift, count])?;
        let both = graph.alu(Op::Add, &[squares, shift])?;
        split.over_parts(graph, Op::Add, both)
    }
}

fn squared_difference(graph: &mut Graph, a: NodeId, b: NodeId) -> Result<NodeId> {
    let minus = graph.constant(Const::float(graph.dtype(b), -1.0));
    let minus = graph.alu(Op::Mul, &[b, minus])?;
    let difference = graph.alu(Op::Add, &[a, minus])?;
    graph.alu(Op::Mul, &[difference, difference])
}

/// Whether `mean` is the sum of x along the axes, divided by something.
fn is_of(graph: &Graph, mean: NodeId, x: NodeId, axes: &Axes) -> bool {
    let mut node = mean;
    loop {
        node = match (graph.op(node), graph.arg(node)) {
            (Op::Reduce, Arg::Reduce { op: Op::Add, axes: of }) => return of == axes && graph.source(node, 0) == x,
            (Op::Div | Op::Mul, _) if graph.as_const(graph.source(node, 1)).is_some() => graph.source(node, 0),
            (Op::Reshape | Op::Detach | Op::ContiguousBackward, _) => graph.source(node, 0),
            _ => return false,
        }
    }
}
