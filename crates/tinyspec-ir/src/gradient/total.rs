//! What the users of a node ask of it, added up.
//!
//! A sequence asks each row of its input for itself, and its weights once a step. Rows that cover an axis are put side by
//! side, as a sum of so many tensors that are 0 but for a row would take a step for each pair of them; and sums of long
//! Reduces are stored one after the other, as no kernel should hold them all.

use crate::dim::static_shape;
use crate::ops::movement::reshape;
use crate::{Arg, Builder, Graph, NodeId, Op, Result};
use smallvec::SmallVec;

/// Contributions from which on it matters how they are added up.
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

    /// The sum of the contributions so far; `None` where there are none.
    pub(super) fn of(&mut self, graph: &mut Graph, node: NodeId) -> Result<Option<NodeId>> {
        // What was made on the way has no gradient.
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
    let is_dear = all.len() >= MANY && all.iter().filter(|&&node| ends_in_reduce(graph, node)).count() >= MANY;
    let mut sum = all[0];
    for &next in &all[1..] {
        sum = graph.alu(Op::Add, &[sum, next])?;
        if is_dear {
            sum = graph.alu(Op::Contiguous, &[sum])?;
        }
    }
    Ok(sum)
}

/// Parts of one length that cover an axis, each 0 elsewhere, as one tensor.
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
    // The new axis goes to just before the one that was cut.
    let rank = shape.len() as u32;
    let order = (1..=axis as u32).chain([0]).chain(axis as u32 + 1..rank + 1).collect();
    let moved = if axis == 0 { stacked } else { graph.add(Op::Permute, &[stacked], Arg::Axes(order))? };
    reshape(graph, moved, &shape).map(Some)
}

/// The only axis along which a Pad adds something, the length of its source there, and where it lies.
fn part(graph: &Graph, pad: NodeId) -> Option<(usize, i64, i64)> {
    let &[source, offsets, _] = graph.sources(pad) else { return None };
    let (from, to) = (static_shape(&graph.props(source).shape)?, static_shape(&graph.props(pad).shape)?);
    let offsets = static_shape(graph.props(offsets).value.as_deref()?)?;
    let mut cut = (0..to.len()).filter(|&axis| from[axis] != to[axis]);
    let axis = cut.next().filter(|_| cut.next().is_none())?;
    Some((axis, from[axis], offsets[axis]))
}

/// Views of a Reduce.
fn ends_in_reduce(graph: &Graph, mut node: NodeId) -> bool {
    while matches!(graph.op(node), Op::Reshape | Op::Permute | Op::Expand | Op::Cast) {
        node = graph.source(node, 0);
    }
    graph.op(node) == Op::Reduce
}
