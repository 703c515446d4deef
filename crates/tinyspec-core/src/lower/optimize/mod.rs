//! Optimize: which axes of a kernel are parallel, vectorised, tiled ("Kernel Optimizations").
//!
//! A schedule is a list of [`OptOp`]s; [`heuristics`] writes one by hand-made rules, and [`apply`] rebuilds the kernel
//! once, with every original range replaced by its expression over the new axes.

pub mod heuristics;
mod kernel;
mod opt_op;
mod rebuild;
mod separate;
mod space;

pub use kernel::{Access, Kernel, Nest, Reduction};
pub use opt_op::OptOp;
pub use space::{Axis, Space};

use tinyspec_backends::Target;
use tinyspec_ir::{Graph, NodeId, Result};

/// Chooses and applies a schedule: the kernel's new `Sink`, and what was done.
///
/// # Errors
/// When the kernel is not in range form.
pub fn optimize(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<(NodeId, Vec<OptOp>)> {
    let sink = separate::separate(graph, sink)?;
    let kernel = Kernel::new(graph, sink)?;
    let ops = heuristics::choose(graph, &kernel, target);
    let mut space = Space::new(graph, &kernel);
    for op in &ops {
        space.apply(op)?;
    }
    Ok((rebuild::rebuild(graph, &kernel, &space)?, ops))
}

/// Applies a given schedule, left to right.
///
/// # Errors
/// When an op does not fit the axes it finds, or the kernel is not in range form.
pub fn apply(graph: &mut Graph, sink: NodeId, ops: &[OptOp]) -> Result<NodeId> {
    let sink = separate::separate(graph, sink)?;
    let kernel = Kernel::new(graph, sink)?;
    let mut space = Space::new(graph, &kernel);
    for op in ops {
        space.apply(op)?;
    }
    rebuild::rebuild(graph, &kernel, &space)
}

/// The axes that the ops of a schedule start from.
///
/// # Errors
/// When the kernel is not in range form.
pub fn space(graph: &mut Graph, sink: NodeId) -> Result<Space> {
    let sink = separate::separate(graph, sink)?;
    let kernel = Kernel::new(graph, sink)?;
    Ok(Space::new(graph, &kernel))
}
