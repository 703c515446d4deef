//! Gives LOCAL Buffers of a kernel their places in the scratch of a call, those that are never needed together the same ones.

use super::ALIGNMENT;
use super::lifetimes::Lifetimes;
use tinyspec_ir::{AddrSpace, Arg, Builder, Graph, NodeId, Op};

/// A Buffer with a place.
struct Placed {
    slot: u32,
    /// Its number among those that are accessed.
    own: Option<usize>,
    offset: usize,
    bytes: usize,
}

/// Offsets of a kernel's LOCAL Buffers, by slot, and the bytes of its scratch. Buffers share bytes if no trip of a loop needs both at
/// once, and a Barrier stands between where several threads access them.
pub fn locals(graph: &Graph, linear: NodeId) -> (Vec<(u32, usize)>, usize) {
    let lifetimes = Lifetimes::new(graph, linear, AddrSpace::Local);
    let mut placed: Vec<Placed> = Vec::new();
    for node in graph.reachable(&[linear]) {
        let Arg::Buffer { slot, dtype, addrspace: AddrSpace::Local, .. } = *graph.arg(node) else { continue };
        if graph.op(node) != Op::Buffer || placed.iter().any(|known| known.slot == slot) {
            continue;
        }
        let count = graph.props(node).element_count().as_const().unwrap_or(0).max(0) as usize;
        let bytes = (count * dtype.size()).next_multiple_of(ALIGNMENT);
        let own = lifetimes.buffers.iter().position(|own| own.buffer == node);
        let is_beside = |other: &&Placed| match (own, other.own) {
            (Some(own), Some(other)) => !lifetimes.are_apart(&lifetimes.buffers[own], &lifetimes.buffers[other]),
            _ => true,
        };
        let mut taken: Vec<(usize, usize)> =
            placed.iter().filter(is_beside).map(|other| (other.offset, other.offset + other.bytes)).collect();
        taken.sort_unstable();
        // The first gap that is large enough.
        let offset = taken
            .iter()
            .fold(0, |offset, &(begin, end)| if offset + bytes <= begin { offset } else { offset.max(end) });
        placed.push(Placed { slot, own, offset, bytes });
    }
    let bytes = placed.iter().map(|placed| placed.offset + placed.bytes).max().unwrap_or(0);
    (placed.into_iter().map(|placed| (placed.slot, placed.offset)).collect(), bytes)
}
