//! Movement ops as functions from an index of the result to an index of the source.

use super::index::{Indices, Tuple};
use smallvec::SmallVec;
use tinyspec_ir::{Arg, Builder, Error, ErrorKind, Graph, NodeId, Op, Result, dim};

/// A shape of plain numbers.
pub(super) type Dims = SmallVec<[i64; 4]>;

/// The numbers of a node's shape.
pub(super) fn dims(graph: &Graph, node: NodeId) -> Result<Dims> {
    let shape = &graph.props(node).shape;
    dim::static_shape(shape).ok_or_else(|| {
        let error = Error::new(
            ErrorKind::Unsupported,
            graph.op(node).name(),
            format!("shape {} has named dims when kernels are made", dim::show(shape)),
        )
        .help("bind every named dim before scheduling");
        locate(graph, node, error)
    })
}

/// Number of elements.
pub(super) fn count(dims: &[i64]) -> i64 {
    dims.iter().fold(1, |product, &dim| product.saturating_mul(dim))
}

/// Adds the user's line to an error about `node`.
pub(super) fn locate(graph: &Graph, node: NodeId, error: Error) -> Error {
    match graph.locations(node).first() {
        Some(location) => error.at(location.clone()),
        None => error,
    }
}

/// The index into the source of a movement op (Stack and Index apart) that `tuple` of its result stands for, and the
/// gate outside of which the result is 0.
pub(super) fn source_index(
    indices: &mut Indices,
    graph: &Graph,
    node: NodeId,
    tuple: &[NodeId],
) -> Result<(Tuple, Option<NodeId>)> {
    let source = graph.source(node, 0);
    let from = dims(graph, source)?;
    let to = dims(graph, node)?;
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
                index[axis] = indices.offset(negative, from[axis] - 1)?;
            }
            index
        }
        (Op::Reshape, _) => reshape(indices, tuple, &to, &from)?,
        (Op::Expand, _) => broadcast(indices, tuple, &to, &from),
        (Op::Shrink, _) => {
            let offset = offsets(graph, node)?;
            let moved = tuple.iter().zip(&offset).map(|(&index, &offset)| indices.offset(index, offset));
            moved.collect::<Result<_>>()?
        }
        (Op::Pad, _) => {
            let offset = offsets(graph, node)?;
            let (mut index, mut gate) = (Tuple::new(), None);
            for (&position, &offset) in tuple.iter().zip(&offset) {
                index.push(indices.offset(position, -offset)?);
            }
            // What one gate implies simplifies the index, and with it the other gates.
            for axis in 0..index.len() {
                if let Some((inside, turn)) = indices.within_turn(index[axis], 0, from[axis])? {
                    gate = indices.both(gate, inside)?;
                    for position in &mut index {
                        *position = indices.in_turn(*position, turn)?;
                    }
                }
            }
            for (&position, &dim) in index.iter().zip(&from) {
                let inside = indices.within(position, 0, dim)?;
                gate = indices.both(gate, inside)?;
            }
            return Ok((index, gate));
        }
        _ => tuple.into(),
    };
    Ok((index, None))
}

fn offsets(graph: &Graph, node: NodeId) -> Result<Dims> {
    let offset = graph.props(graph.source(node, 1)).value.as_deref();
    offset.and_then(dim::static_shape).ok_or_else(|| {
        let error =
            Error::new(ErrorKind::Unsupported, graph.op(node).name(), "the offset is no number when kernels are made")
                .help("bind named dims before scheduling, or use an index");
        locate(graph, node, error)
    })
}

/// The index into a source of shape `from` that `tuple` of the right-aligned broadcast `to` reads.
pub(super) fn broadcast(indices: &mut Indices, tuple: &[NodeId], to: &[i64], from: &[i64]) -> Tuple {
    let lead = to.len().saturating_sub(from.len());
    let zero = indices.number(0);
    from.iter().zip(&tuple[lead..]).map(|(&dim, &index)| if dim == 1 { zero } else { index }).collect()
}

/// Row-major reinterpretation. Axes are matched in groups of equal size, so that div and mod stay inside a group.
fn reshape(indices: &mut Indices, tuple: &[NodeId], to: &[i64], from: &[i64]) -> Result<Tuple> {
    let zero = indices.number(0);
    let mut index: Tuple = SmallVec::from_elem(zero, from.len());
    let axes = |dims: &[i64]| -> SmallVec<[usize; 6]> { (0..dims.len()).filter(|&axis| dims[axis] != 1).collect() };
    let (to_axes, from_axes) = (axes(to), axes(from));
    let (mut i, mut j) = (0, 0);
    while i < to_axes.len() && j < from_axes.len() {
        let (first_to, first_from) = (i, j);
        let (mut to_size, mut from_size) = (to[to_axes[i]], from[from_axes[j]]);
        while to_size != from_size {
            if to_size < from_size && i + 1 < to_axes.len() {
                i += 1;
                to_size = to_size.saturating_mul(to[to_axes[i]]);
            } else if j + 1 < from_axes.len() {
                j += 1;
                from_size = from_size.saturating_mul(from[from_axes[j]]);
            } else {
                break;
            }
        }
        (i, j) = (i + 1, j + 1);
        let group: Tuple = to_axes[first_to..i].iter().map(|&axis| tuple[axis]).collect();
        let sizes: Dims = to_axes[first_to..i].iter().map(|&axis| to[axis]).collect();
        let flat = indices.flat(&group, &sizes)?;
        let mut stride = 1;
        for &axis in from_axes[first_from..j].iter().rev() {
            let position = indices.divide(flat, stride)?;
            // The leading axis of a group needs no mod: the position is inside the group.
            index[axis] =
                if axis == from_axes[first_from] { position } else { indices.remainder(position, from[axis])? };
            stride *= from[axis];
        }
    }
    Ok(index)
}
