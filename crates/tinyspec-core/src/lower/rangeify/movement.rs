//! Movement ops as functions from an index of the result to an index of the source.

use super::index::{Indices, Tuple};
use smallvec::SmallVec;
use tinyspec_ir::{Arg, Builder, Dim, Error, ErrorKind, Graph, NodeId, Op, Result, Shape, dim};

/// A shape of plain numbers.
pub(super) type Dims = SmallVec<[i64; 4]>;

/// The greatest size that cost estimates assume for a named dim.
const TYPICAL: i64 = 1024;

/// The dims of a node, numbers or not.
pub(super) fn shape(graph: &Graph, node: NodeId) -> &[Dim] {
    &graph.props(node).shape
}

/// Number of elements.
pub(super) fn elements(shape: &[Dim]) -> Dim {
    shape.iter().fold(Dim::from(1), |product, dim| product * dim.clone())
}

/// The dim as a number for cost estimates.
pub(super) fn estimate(dim: &Dim) -> i64 {
    dim.as_const().unwrap_or_else(|| {
        let (low, high) = dim.bounds();
        high.min(low.max(TYPICAL))
    })
}

/// The shape of a node as numbers for cost estimates.
pub(super) fn sizes(graph: &Graph, node: NodeId) -> Dims {
    shape(graph, node).iter().map(estimate).collect()
}

/// The shape of a node as numbers, for optimisations that need known sizes.
pub(super) fn dims(graph: &Graph, node: NodeId) -> Result<Dims> {
    let shape = &graph.props(node).shape;
    dim::static_shape(shape).ok_or_else(|| {
        let error = Error::new(
            ErrorKind::Unsupported,
            graph.op(node).name(),
            format!("shape {} has named dims where numbers are needed", dim::show(shape)),
        )
        .help("bind every named dim before scheduling");
        graph.located(node, error)
    })
}

/// Number of elements.
pub(super) fn count(dims: &[i64]) -> i64 {
    dims.iter().fold(1, |product, &dim| product.saturating_mul(dim))
}

/// For a movement op other than Stack and Index, the index into its source that corresponds to `tuple` in its result,
/// and the gate outside which the result is 0.
pub(super) fn source_index(
    indices: &mut Indices,
    graph: &Graph,
    node: NodeId,
    tuple: &[NodeId],
) -> Result<(Tuple, Option<NodeId>)> {
    let source = graph.source(node, 0);
    let (from, to) = (shape(graph, source), shape(graph, node));
    let index = match (graph.op(node), graph.arg(node)) {
        (Op::Permute, Arg::Axes(order)) => {
            let zero = indices.number(0);
            let mut index: Tuple = SmallVec::from_elem(zero, from.len());
            for (&axis, &position) in order.iter().zip(tuple) {
                index[axis as usize] = position;
            }
            index
        }
        (Op::Flip, Arg::Flags(flags)) => {
            let mut index: Tuple = tuple.into();
            for (axis, _) in flags.iter().enumerate().take(tuple.len()).filter(|(_, flag)| **flag) {
                let negative = indices.scale(tuple[axis], -1)?;
                index[axis] = indices.move_by(negative, &(from[axis].clone() - Dim::from(1)))?;
            }
            index
        }
        (Op::Reshape, _) => reshape(indices, tuple, to, from)?,
        (Op::Expand, _) => broadcast(indices, tuple, to, from),
        (Op::Shrink, _) => {
            let offset = offsets(graph, node)?;
            let moved = tuple.iter().zip(&offset).map(|(&index, offset)| indices.move_by(index, offset));
            moved.collect::<Result<_>>()?
        }
        (Op::Pad, _) => {
            let offset = offsets(graph, node)?;
            let (mut index, mut gate) = (Tuple::new(), None);
            for (&position, offset) in tuple.iter().zip(offset) {
                index.push(indices.move_by(position, &(Dim::from(0) - offset))?);
            }
            // Facts implied by one gate simplify the index, and with it the other gates.
            for axis in 0..index.len() {
                let turn = match from[axis].as_const() {
                    Some(size) => indices.within_turn(index[axis], 0, size)?,
                    None => None,
                };
                if let Some((inside, turn)) = turn {
                    gate = indices.both(gate, inside)?;
                    for position in &mut index {
                        *position = indices.in_turn(*position, turn)?;
                    }
                }
            }
            for (&position, dim) in index.iter().zip(from) {
                let inside = indices.within_dim(position, dim)?;
                gate = indices.both(gate, inside)?;
            }
            return Ok((index, gate));
        }
        _ => tuple.into(),
    };
    Ok((index, None))
}

fn offsets(graph: &Graph, node: NodeId) -> Result<Shape> {
    graph.props(graph.source(node, 1)).value.clone().ok_or_else(|| {
        let error = Error::new(ErrorKind::Unsupported, graph.op(node).name(), "the offset depends on data")
            .help("use an index instead");
        graph.located(node, error)
    })
}

/// The index into a source of shape `from` that `tuple` of the right-aligned broadcast `to` reads.
pub(super) fn broadcast(indices: &mut Indices, tuple: &[NodeId], to: &[Dim], from: &[Dim]) -> Tuple {
    let lead = to.len().saturating_sub(from.len());
    let zero = indices.number(0);
    from.iter().zip(&tuple[lead..]).map(|(dim, &index)| if dim.is(1) { zero } else { index }).collect()
}

/// Row-major reinterpretation. Axes are matched in groups of equal size, so that div and mod stay inside a group.
fn reshape(indices: &mut Indices, tuple: &[NodeId], to: &[Dim], from: &[Dim]) -> Result<Tuple> {
    let zero = indices.number(0);
    let mut index: Tuple = SmallVec::from_elem(zero, from.len());
    let axes = |dims: &[Dim]| -> SmallVec<[usize; 6]> { (0..dims.len()).filter(|&axis| !dims[axis].is(1)).collect() };
    let (to_axes, from_axes) = (axes(to), axes(from));
    let (mut i, mut j) = (0, 0);
    while i < to_axes.len() && j < from_axes.len() {
        let (first_to, first_from) = (i, j);
        let (mut to_size, mut from_size) = (to[to_axes[i]].clone(), from[from_axes[j]].clone());
        while to_size != from_size {
            // For named dims, the upper bounds tell which product has more factors.
            let (a, b) = (to_size.bounds().1, from_size.bounds().1);
            if a < b && i + 1 < to_axes.len() {
                i += 1;
                to_size = to_size * to[to_axes[i]].clone();
            } else if j + 1 < from_axes.len() {
                j += 1;
                from_size = from_size * from[from_axes[j]].clone();
            } else if i + 1 < to_axes.len() && to_size.as_const().is_none() {
                i += 1;
                to_size = to_size * to[to_axes[i]].clone();
            } else {
                break;
            }
        }
        (i, j) = (i + 1, j + 1);
        let group: Tuple = to_axes[first_to..i].iter().map(|&axis| tuple[axis]).collect();
        let sizes: Shape = to_axes[first_to..i].iter().map(|&axis| to[axis].clone()).collect();
        let flat = indices.flat(&group, &sizes)?;
        // An index from data may be out of bounds, but then the access is gated off.
        let bounded = match to_size.as_const() {
            Some(size) if j - first_from > 1 => indices.clamped_data(flat, size)?,
            _ => flat,
        };
        let mut stride = Dim::from(1);
        for &axis in from_axes[first_from..j].iter().rev() {
            let position = indices.divide_by(bounded, &stride)?;
            // The leading axis of a group needs no mod: the position is inside the group.
            index[axis] =
                if axis == from_axes[first_from] { position } else { indices.remainder_by(position, &from[axis])? };
            stride = stride * from[axis].clone();
        }
        if let (Some(&first), Some(&last)) = (from_axes.get(first_from), from_axes.get(j - 1)) {
            indices.remember(index[first..=last].into(), from[first..=last].into(), flat);
        }
    }
    Ok(index)
}
