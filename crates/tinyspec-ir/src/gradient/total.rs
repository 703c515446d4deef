//! Sums the contributions to the gradient of a node.
//!
//! A recurrent network uses each row of its input separately, and its weights in every step. Contributions to rows that
//! cover an axis are concatenated, since a sum of many tensors that are 0 except for a row would take quadratic time;
//! and sums of products of one form become one sum of products over stacked factors.

use crate::dim::static_shape;
use crate::ops::movement::{expand, reshape};
use crate::{Arg, Builder, Dim, Graph, NodeId, Op, Result, Shape};
use smallvec::SmallVec;

/// The number of contributions from which on this pays.
const MANY: usize = 8;

/// Contributions to the gradient of each node.
pub(super) struct Cotangents(Vec<SmallVec<[NodeId; 1]>>);

impl Cotangents {
    pub(super) fn new(nodes: usize) -> Cotangents {
        Cotangents(vec![SmallVec::new(); nodes])
    }

    pub(super) fn add(&mut self, node: NodeId, contribution: NodeId) {
        self.0[node.index()].push(contribution);
    }

    /// The sum of the contributions so far; `None` if there are none.
    pub(super) fn of(&mut self, graph: &mut Graph, node: NodeId) -> Result<Option<NodeId>> {
        // Nodes made during the sweep have no gradient.
        let Some(all) = self.0.get_mut(node.index()) else { return Ok(None) };
        if all.len() > 1 {
            let total = total(graph, all)?;
            *all = SmallVec::from_iter([total]);
        }
        Ok(all.first().copied())
    }
}

fn total(graph: &mut Graph, all: &[NodeId]) -> Result<NodeId> {
    let mut all: SmallVec<[NodeId; 8]> = all.into();
    if all.len() >= MANY {
        let (parts, others): (Vec<NodeId>, Vec<NodeId>) = all.iter().partition(|&&node| graph.op(node) == Op::Pad);
        if let Some(whole) = side_by_side(graph, &parts)? {
            all = others.into_iter().chain([whole]).collect();
        }
    }
    if let Some(product) = one_product(graph, &all)? {
        return Ok(product);
    }
    let mut sum = all[0];
    for &next in &all[1..] {
        sum = graph.alu(Op::Add, &[sum, next])?;
    }
    Ok(sum)
}

/// Merges sums of products that differ only in their factors into one.
fn one_product(graph: &mut Graph, all: &[NodeId]) -> Result<Option<NodeId>> {
    if all.len() < MANY {
        return Ok(None);
    }
    let (mut level, mut views) = (all.to_vec(), Vec::new());
    while graph.op(level[0]) != Op::Reduce {
        let Some(next) = below(graph, &level) else { return Ok(None) };
        views.push(level[0]);
        level = next;
    }
    let Arg::Reduce { op: Op::Add, axes } = graph.arg(level[0]).clone() else { return Ok(None) };
    let Some(products) = sources_of(graph, &level, 0) else { return Ok(None) };
    let (Some(left), Some(right)) = (sources_of(graph, &products, 0), sources_of(graph, &products, 1)) else {
        return Ok(None);
    };
    if graph.op(products[0]) != Op::Mul || graph.sources(level[0]).len() != 1 {
        return Ok(None);
    }
    // Axes that one factor has beyond the other's rank must stay in front of the new axis.
    let rank = graph.props(products[0]).rank();
    if [&left, &right].iter().any(|factors| graph.props(factors[0]).rank() != rank) {
        return Ok(None);
    }
    let (left, right) = (stacked(graph, &left)?, stacked(graph, &right)?);
    let product = graph.alu(Op::Mul, &[left, right])?;
    let axes = [0].into_iter().chain(axes.iter().map(|axis| axis + 1)).collect();
    let sum = graph.add(Op::Reduce, &[product], Arg::Reduce { op: Op::Add, axes })?;
    let shape = graph.props(level[0]).shape.clone();
    let mut total = reshape(graph, sum, &shape)?;
    for view in views.into_iter().rev() {
        let mut sources: SmallVec<[NodeId; 4]> = graph.sources(view).into();
        sources[0] = total;
        total = graph.add(graph.op(view), &sources, graph.arg(view).clone())?;
    }
    Ok(Some(total))
}

/// Stacks tensors along a new leading axis; equal views of them become one view of the stack.
fn stacked(graph: &mut Graph, nodes: &[NodeId]) -> Result<NodeId> {
    let first = nodes[0];
    let shape = graph.props(first).shape.clone();
    let longer: Shape = [Dim::from(nodes.len())].into_iter().chain(shape.iter().cloned()).collect();
    if nodes.iter().all(|&node| node == first) {
        let row: Shape = [Dim::from(1)].into_iter().chain(shape).collect();
        let row = reshape(graph, first, &row)?;
        return expand(graph, row, &longer);
    }
    let Some(sources) = below(graph, nodes) else { return graph.alu(Op::Stack, nodes) };
    let source = stacked(graph, &sources)?;
    match graph.arg(first).clone() {
        Arg::Axes(order) => {
            let order = [0].into_iter().chain(order.iter().map(|axis| axis + 1)).collect();
            graph.add(Op::Permute, &[source], Arg::Axes(order))
        }
        arg @ Arg::DType(_) => graph.add(Op::Cast, &[source], arg),
        _ if graph.op(first) == Op::Expand => {
            // Axes that an Expand adds come after the new one.
            let rank = graph.props(source).rank();
            let lead = longer.len() - rank;
            let mut own = graph.props(source).shape.clone();
            for _ in 0..lead {
                own.insert(1, Dim::from(1));
            }
            let source = reshape(graph, source, &own)?;
            expand(graph, source, &longer)
        }
        _ => reshape(graph, source, &longer),
    }
}

/// The sources of nodes, if these are the same view of different tensors.
fn below(graph: &Graph, nodes: &[NodeId]) -> Option<Vec<NodeId>> {
    let is_view = matches!(graph.op(nodes[0]), Op::Reshape | Op::Permute | Op::Expand | Op::Cast);
    let rest = graph.sources(nodes[0]).get(1..)?;
    let is_same = nodes.iter().all(|&node| graph.sources(node).get(1..) == Some(rest));
    if is_view && is_same { sources_of(graph, nodes, 0) } else { None }
}

/// The source with this number of each of some similar nodes, if they have the same shape and dtype.
fn sources_of(graph: &Graph, nodes: &[NodeId], number: usize) -> Option<Vec<NodeId>> {
    let (op, arg) = (graph.op(nodes[0]), graph.arg(nodes[0]));
    let sources: Option<Vec<NodeId>> = nodes
        .iter()
        .map(|&node| {
            let is_alike = graph.op(node) == op && graph.arg(node) == arg;
            graph.sources(node).get(number).copied().filter(|_| is_alike)
        })
        .collect();
    let first = graph.props(*sources.as_ref()?.first()?);
    let is_one_form = |&source: &NodeId| {
        let props = graph.props(source);
        props.shape == first.shape && props.dtype == first.dtype && props.device == first.device
    };
    sources.filter(|sources| sources.iter().all(is_one_form))
}

/// Concatenates parts of one length that cover an axis, each of which is 0 elsewhere.
fn side_by_side(graph: &mut Graph, parts: &[NodeId]) -> Result<Option<NodeId>> {
    let Some(&first) = parts.first().filter(|_| parts.len() >= MANY) else { return Ok(None) };
    let Some((axis, length, _)) = part(graph, first) else { return Ok(None) };
    let shape = graph.props(first).shape.clone();
    let mut placed: Vec<(i64, NodeId)> = Vec::with_capacity(parts.len());
    for &node in parts {
        match part(graph, node) {
            Some((own, size, start)) if (own, size) == (axis, length) && graph.props(node).shape == shape => {
                placed.push((start, graph.source(node, 0)));
            }
            _ => return Ok(None),
        }
    }
    placed.sort_unstable();
    let follow = placed.iter().zip(0..).all(|(&(start, _), number)| start == number * length);
    if !follow || !shape[axis].is(length * placed.len() as i64) {
        return Ok(None);
    }
    let rows: Vec<NodeId> = placed.into_iter().map(|(_, row)| row).collect();
    let stacked = graph.alu(Op::Stack, &rows)?;
    // The new axis moves to just before the one that was cut.
    let rank = shape.len() as u32;
    let order = (1..=axis as u32).chain([0]).chain(axis as u32 + 1..rank + 1).collect();
    let moved = if axis == 0 { stacked } else { graph.add(Op::Permute, &[stacked], Arg::Axes(order))? };
    reshape(graph, moved, &shape).map(Some)
}

/// The only axis along which a Pad adds something, and the length and offset of its source there.
fn part(graph: &Graph, pad: NodeId) -> Option<(usize, i64, i64)> {
    let &[source, offsets, _] = graph.sources(pad) else { return None };
    let (from, to) = (static_shape(&graph.props(source).shape)?, static_shape(&graph.props(pad).shape)?);
    let offsets = static_shape(graph.props(offsets).value.as_deref()?)?;
    let mut cut = (0..to.len()).filter(|&axis| from[axis] != to[axis]);
    let axis = cut.next().filter(|_| cut.next().is_none())?;
    Some((axis, from[axis], offsets[axis]))
}
