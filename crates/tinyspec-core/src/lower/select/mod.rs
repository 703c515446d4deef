//! Instruction Selection: a kernel in terms of what the target has ("Lowering Pipeline").
//!
//! Reductions become registers that loops update, ops that the target lacks become those it has, and tiles become
//! machine vectors.

mod accumulate;
pub mod decompose;
pub(crate) mod devectorize;
mod maximum;
mod pair;
mod scan;
mod shared_accumulators;
mod tile;

pub(super) use accumulate::accumulate;
pub(super) use decompose::decompose;
pub(super) use devectorize::devectorize;
pub(super) use maximum::by_keys as keys;
pub(super) use pair::split as split_pairs;
pub(super) use scan::scan;
pub(super) use shared_accumulators::{is_shared, share_accumulators};
use tinyspec_ir::{AddrSpace, Arg, Graph};

/// A slot that no REG Buffer has.
pub(super) fn next_register(graph: &Graph) -> u32 {
    let slots = graph.nodes().filter_map(|node| match graph.arg(node) {
        Arg::Buffer { slot, addrspace: AddrSpace::Reg, .. } => Some(*slot),
        _ => None,
    });
    slots.max().map_or(0, |slot| slot + 1)
}
