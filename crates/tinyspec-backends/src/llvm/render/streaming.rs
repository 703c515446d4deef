//! Which stores bypass the caches. The processor puts lines together in a few buffers before it writes them: a loop that
//! leaves more lines half written than there are buffers would send each half to memory by itself, which takes several
//! times as long as to read the line first.

use super::Renderer;
use tinyspec_ir::{Arg, NodeId, Op};

const LINE: i64 = 64;
/// Lines that may stay half written, fewer than any processor has buffers for.
const MOST_OPEN: usize = 4;

impl Renderer<'_, '_> {
    /// Does the innermost loop write whole lines, or leave few of them to its next trips?
    pub(super) fn writes_lines(&mut self) -> bool {
        let graph = self.graph;
        let range = self.levels.iter().rev().map(|level| level.node).find(|&node| graph.op(node) == Op::Range);
        let Some(range) = range else { return true };
        if let Some(&known) = self.lines.get(&range) {
            return known;
        }
        let instructions = graph.sources(self.kernel.linear);
        let body = instructions.iter().copied().skip_while(|&node| node != range).skip(1);
        let is_end = |node: NodeId| graph.op(node) == Op::End && graph.source(node, 1) == range;
        let stores: Vec<NodeId> = body.take_while(|&node| !is_end(node)).collect();
        let whole = self.open_lines(&stores) <= MOST_OPEN;
        self.lines.insert(range, whole);
        whole
    }

    /// Runs of stores side by side that are no multiple of a line.
    fn open_lines(&self, instructions: &[NodeId]) -> usize {
        let graph = self.graph;
        let streams = |node: &NodeId| graph.op(*node) == Op::Store && *graph.arg(*node) == Arg::Streaming;
        let mut pieces: Vec<(NodeId, Vec<(NodeId, i64)>, i64, i64)> = Vec::new();
        for &store in instructions.iter().filter(|node| streams(node)) {
            let (place, value) = (graph.source(store, 0), graph.source(store, 1));
            let Some((buffer, sum)) = self.place(place) else { continue };
            let lanes = self.lanes(value).unwrap_or(1).max(self.lanes(place).unwrap_or(1));
            let size = graph.dtype(buffer).size() as i64;
            pieces.push((buffer, sum.terms, sum.constant.saturating_mul(size), i64::from(lanes) * size));
        }
        pieces.sort_unstable();
        let mut open = 0;
        let mut rest = &pieces[..];
        while let Some(((buffer, terms, start, first), others)) = rest.split_first() {
            let mut length = *first;
            let mut next = others;
            while let Some(((other, same, place, bytes), after)) = next.split_first()
                && (other, same, *place) == (buffer, terms, start + length)
            {
                length += bytes;
                next = after;
            }
            open += usize::from(length % LINE != 0);
            rest = next;
        }
        open
    }
}
