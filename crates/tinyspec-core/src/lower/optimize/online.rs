//! Sums over a matrix that is itself a product, block by block, so that the matrix is never in memory: attention, and
//! its gradients.
//!
//! The matrix of scores `S[i, j] = Σh q[i, h] · k[j, h]` is as large as the lengths of the queries and the keys together.
//! Every sum over j is computed for a strip of i at a time: a loop over blocks of j makes a block of scores in LOCAL
//! memory, as a register tile of rows j and lanes i, and adds its terms to the sums of the strip.
//!
//! Terms that rescale with the greatest of the same j, `exp2(c · (S[i, j] - max S[i, ·]))`, need no loop before theirs:
//! the running maximum, m, takes its place, and where a block raises it, the sums so far are multiplied by
//! `exp2(c · (m_before - m))`. This is the rule `online`; it only reorders Reduces (and divides their sum rather than each of its
//! terms). A row in which all scores are -inf sums up to 0.
//!
//! Blocks in which gates hide all scores of a strip, as causal attention does, are left out (loop partitioning): their terms are
//! 0 times a weight, and depend on no lane.

mod blocking;
mod blocks;
mod bodies;
mod cost;
mod form;
mod hidden;

use super::cost::Estimate;
use crate::lower::loops;
pub use blocking::Blocking;
pub(crate) use blocking::Lengths;
use form::Form;
use tinyspec_backends::Target;
use tinyspec_ir::{Graph, NodeId, Result};

/// A kernel all of whose results are such sums: `OptOp::Block` makes them in blocks.
#[derive(Clone)]
pub(crate) struct Online {
    graph: Graph,
    form: Form,
    lengths: Lengths,
}

impl Online {
    /// Reads a kernel; `None` where it stores anything else, or has sizes that are no numbers.
    pub fn of(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<Option<Online>> {
        if loops::has_dims(graph, sink) {
            return Ok(None);
        }
        let Some(form) = Form::of(graph, sink, target)? else { return Ok(None) };
        let hidden = hidden::share(graph, &form)?;
        let lengths = Lengths::of(graph, &form, hidden, target);
        Ok(Some(Online { graph: graph.clone(), form, lengths }))
    }

    /// The axis lengths that blocks have to fit.
    pub fn lengths(&self) -> &Lengths {
        &self.lengths
    }

    /// The estimated cost of the kernel in such blocks.
    pub fn estimate(&self, blocking: Blocking, target: &Target) -> Estimate {
        cost::estimate(&self.form, &self.lengths, blocking, target)
    }

    /// The blocks that cost least: where gates hide terms, shorter ones leave out more.
    pub fn cheapest(&self, target: &Target) -> Blocking {
        let usual = Blocking::default();
        let tiles = [usual.tiles, usual.tiles / 2, usual.tiles / 4];
        let nanoseconds = |blocking: &Blocking| self.estimate(*blocking, target).nanoseconds();
        let all = tiles.map(|tiles| Blocking { tiles, ..usual }).into_iter();
        all.min_by(|a, b| nanoseconds(a).total_cmp(&nanoseconds(b))).unwrap_or(usual)
    }

    /// The kernel in such blocks: its graph and its new `Sink`.
    pub fn build(mut self, blocking: Blocking, target: &Target) -> Result<(Graph, NodeId)> {
        let sink = blocks::build(&mut self.graph, &self.form, &self.lengths, target, blocking)?;
        Ok((self.graph, sink))
    }
}
