//! Instruction Selection: a kernel in terms of what the target has ("Lowering Pipeline").
//!
//! Reductions become registers that loops update, ops that the target lacks become those it has, and tiles become
//! machine vectors.

mod accumulate;
mod carry;
pub mod decompose;
pub(crate) mod devectorize;
mod maximum;
mod pair;
mod tile;

use tinyspec_backends::Target;
use tinyspec_ir::{AddrSpace, Arg, Graph, NodeId, Result};

/// Selects instructions for an expanded kernel: its new `Sink`, in which every value is `()` or a machine vector.
///
/// # Errors
/// When the kernel is not in the form that Expand leaves.
pub fn select(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<NodeId> {
    let sink = carry::carry(graph, sink)?;
    let sink = pair::apart(graph, sink)?;
    let sink = maximum::by_keys(graph, sink, target)?;
    let sink = accumulate::accumulate(graph, sink)?;
    let sink = decompose::decompose(graph, sink, target)?;
    devectorize::devectorize(graph, sink, target)
}

/// A slot that no REG Buffer has.
fn next_register(graph: &Graph) -> u32 {
    let slots = graph.nodes().filter_map(|node| match graph.arg(node) {
        Arg::Buffer { slot, addrspace: AddrSpace::Reg, .. } => Some(*slot),
        _ => None,
    });
    slots.max().map_or(0, |slot| slot + 1)
}
