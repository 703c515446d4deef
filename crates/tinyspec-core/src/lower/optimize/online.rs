//! Sums over a matrix that is itself a product, block by block, so that the matrix is never in memory: attention, and
//! its gradients.
//!
//! The matrix of scores `S[i, j] = Σh q[i, h] · k[j, h]` is as large as the lengths of the queries and the keys
//! together. Whatever sums over j is computed for a strip of i at a time: a loop over blocks of j makes a block of scores
//! in LOCAL memory, as a register tile of rows j and lanes i, and adds what follows from it to the sums of the strip.
//!
//! Terms that rescale with the greatest of the same j, `exp2(c · (S[i, j] - max S[i, ·]))`, need no loop before theirs:
//! the greatest so far, m, takes its place, and where a block raises it, what was summed is multiplied by
//! `exp2(c · (m_before - m))`. This is the rule `online`; it only reorders Reduces (and divides their sum rather than
//! each of its terms). A row in which all scores are -inf sums up to 0.

mod blocks;
mod bodies;
mod form;

pub use blocks::Blocking;
use form::Form;
use tinyspec_backends::Target;
use tinyspec_ir::{Graph, NodeId, Result};

/// The kernel as loops over blocks, if all that it stores are such sums.
pub(crate) fn loops(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<Option<NodeId>> {
    loops_in_blocks(graph, sink, target, Blocking::default())
}

/// The kernel as loops over blocks of some size; `None` where it stores anything but such sums.
///
/// # Errors
/// When the kernel is not in range form.
pub fn loops_in_blocks(graph: &mut Graph, sink: NodeId, target: &Target, blocking: Blocking) -> Result<Option<NodeId>> {
    match Form::of(graph, sink, target)? {
        Some(form) => blocks::build(graph, &form, target, blocking).map(Some),
        None => Ok(None),
    }
}
