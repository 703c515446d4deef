//! Kernels written by hand: from the form that `uop!` embeds to the range form that the other stages take, with the
//! user's schedule kept.

mod bind;
mod cover;
mod flatten;
mod schedule;

use tinyspec_ir::kernel::WrittenKernel;
use tinyspec_ir::{Graph, NodeId, Result};

/// A kernel for given dims, in flat range form, with its axes as a CPU runs them.
pub(crate) struct Specialised {
    pub graph: Graph,
    pub sink: NodeId,
    /// For each written buffer, whether its contents before the kernel matter.
    pub updates: Vec<bool>,
    /// How many buffers it has; the written ones come first.
    pub buffers: usize,
}

/// Binds the dims of an embedded kernel.
///
/// # Errors
/// When the bytes are damaged or the dims leave their bounds.
pub(crate) fn specialise(code: &[u8], dims: &[i64]) -> Result<Specialised> {
    let kernel = WrittenKernel::decode(code)?;
    let (graph, sink) = bind::bind(&kernel, dims)?;
    let (mut graph, sink) = flatten::flatten(&graph, sink)?;
    let updates = (0..kernel.outputs as u32).map(|slot| !cover::is_overwritten(&graph, sink, slot)).collect();
    let sink = schedule::schedule(&mut graph, sink)?;
    Ok(Specialised { graph, sink, updates, buffers: kernel.buffers })
}
