//! Addresses in machine form: an element of a one-dimensional buffer, at an index.

use crate::affine::Affine;
use crate::{AddrSpace, Arg, Builder, Graph, NodeId, Op};

/// The node that a chain of Afters orders.
pub fn behind_after(graph: &Graph, mut node: NodeId) -> NodeId {
    while graph.op(node) == Op::After {
        node = graph.source(node, 0);
    }
    node
}

/// Whether a Load or Store accesses REG memory.
pub fn is_register(graph: &Graph, access: NodeId) -> bool {
    graph.props(graph.source(access, 0)).addrspace == Some(AddrSpace::Reg)
}

/// The REG Buffer behind a chain of Afters, with its slot.
pub fn register(graph: &Graph, place: NodeId) -> Option<(u32, NodeId)> {
    let buffer = behind_after(graph, place);
    match graph.arg(buffer) {
        Arg::Buffer { slot, addrspace: AddrSpace::Reg, .. } => Some((*slot, buffer)),
        _ => None,
    }
}

/// The one-dimensional buffer of an address, and its index, which is absent for the start of the buffer.
pub fn base_and_index(graph: &Graph, place: NodeId) -> Option<(NodeId, Option<NodeId>)> {
    let place = behind_after(graph, place);
    let (base, index) = match (graph.op(place), graph.sources(place)) {
        (Op::Param | Op::Buffer, _) => return Some((place, None)),
        (Op::Index, &[base, index]) => (base, index),
        (Op::Shrink, &[base, offset, _]) => match graph.sources(offset) {
            &[offset] if graph.dtype(offset).is_int() => (base, offset),
            _ => return None,
        },
        _ => return None,
    };
    Some((behind_after(graph, base), Some(index)))
}

/// The Param of an address, and the offset in it of the scalar, or of the first of consecutive elements.
pub fn in_param(graph: &Graph, place: NodeId) -> Option<(NodeId, Affine)> {
    let (buffer, Some(index)) = base_and_index(graph, place)? else { return None };
    let lanes = &graph.props(index).shape;
    if graph.op(buffer) != Op::Param || lanes.iter().any(|lanes| !lanes.is(1)) {
        return None;
    }
    Some((buffer, Affine::of(graph, index)))
}
