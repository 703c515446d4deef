//! Which stores bypass the caches. The processor puts lines together in a few buffers before it writes them: a loop that
//! leaves more lines half written than there are buffers would send each half to memory by itself, which takes several
//! times as long as to read the line first.

use super::Renderer;
use tinyspec_ir::{Arg, NodeId, Op};

const LINE: i64 = 64;
/// Lines that may stay half written, fewer than any processor has buffers for.
const MOST_OPEN: usize = 4;

/// What one store writes: `bytes` at `start`, counted from the terms of its place in the buffer.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    buffer: NodeId,
    terms: Vec<(NodeId, i64)>,
    start: i64,
    bytes: i64,
}

impl Piece {
    fn follows(&self, first: &Piece, bytes: i64) -> bool {
        (self.buffer, &self.terms, self.start) == (first.buffer, &first.terms, first.start.saturating_add(bytes))
    }
}

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
        let mut pieces: Vec<Piece> = Vec::new();
        for &store in instructions.iter().filter(|node| streams(node)) {
            let (place, value) = (graph.source(store, 0), graph.source(store, 1));
            let Some((buffer, sum)) = self.place(place) else { continue };
            let lanes = self.lanes(value).unwrap_or(1).max(self.lanes(place).unwrap_or(1));
            let size = graph.dtype(buffer).size() as i64;
            let (start, bytes) = (sum.constant.saturating_mul(size), i64::from(lanes) * size);
            pieces.push(Piece { buffer, terms: sum.terms, start, bytes });
        }
        pieces.sort_unstable();
        let mut open = 0;
        let mut rest = &pieces[..];
        while let Some((first, others)) = rest.split_first() {
            let mut length = first.bytes;
            let mut next = others;
            while let Some((piece, after)) = next.split_first()
                && piece.follows(first, length)
            {
                length += piece.bytes;
                next = after;
            }
            open += usize::from(length % LINE != 0);
            rest = next;
        }
        open
    }
}
