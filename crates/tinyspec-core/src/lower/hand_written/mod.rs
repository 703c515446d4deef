//! Kernels written by hand: from the form that `uop!` embeds to the range form that the other stages take, keeping the
//! user's schedule.

mod bind;
mod cover;
mod flatten;
mod leave;
mod nontemporal;
mod packed_dot;
mod running;
mod schedule;
mod vectorize;

pub(crate) use packed_dot::pack_dots;
pub(crate) use schedule::schedule;
pub(crate) use vectorize::vectorize;

use crate::profile;
use tinyspec_ir::kernel::WrittenKernel;
use tinyspec_ir::{Graph, NodeId, Op, Result, verify};

/// A kernel for given dims, in flat range form.
pub(crate) struct Specialised {
    pub graph: Graph,
    pub sink: NodeId,
    /// For each written buffer, how the kernel uses its old contents.
    pub before: Vec<Before>,
    /// The names of its buffers; the written ones come first.
    pub buffers: Vec<String>,
}

/// Whether no access of a kernel writes: its loops have no trips for these dims.
pub(crate) fn stores_nothing(graph: &Graph, sink: NodeId) -> bool {
    let is_effect = |&node: &NodeId| matches!(graph.op(node), Op::Store | Op::AtomicAdd | Op::Custom);
    graph.op(sink) == Op::Sink && !graph.reachable(&[sink]).iter().any(is_effect)
}

/// How a kernel uses the old contents of a buffer that it writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Before {
    /// Not at all: the whole buffer is overwritten.
    Ignored,
    /// The buffer is read, then overwritten completely; the Param with this slot has the old contents.
    Read(u32),
    /// Parts of the buffer remain.
    Kept,
}

/// Binds the dims of an embedded kernel.
///
/// # Errors
/// When the bytes are damaged or the dims leave their bounds.
pub(crate) fn specialise(code: &[u8], dims: &[i64]) -> Result<Specialised> {
    let kernel = WrittenKernel::decode(code)?;
    if kernel.graph.op(kernel.sink) != Op::Sink {
        // The parts of a buffer that a lowered kernel writes are unknown.
        let before = vec![Before::Kept; kernel.outputs];
        return Ok(Specialised { graph: kernel.graph, sink: kernel.sink, before, buffers: kernel.buffers });
    }
    if cfg!(debug_assertions) || profile::verifies() {
        verify::hand_written(&kernel)?;
    }
    let (mut graph, sink) = bind::bind(&kernel, dims)?;
    let sink = leave::leave(&mut graph, sink)?;
    let (mut graph, sink) = flatten::flatten(&graph, sink)?;
    let (sink, before) = cover::separate(&mut graph, sink, &kernel)?;
    Ok(Specialised { graph, sink, before, buffers: kernel.buffers })
}
