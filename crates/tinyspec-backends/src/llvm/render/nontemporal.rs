//! Which stores are non-temporal. The processor combines the stores to a line in one of a few write-combining buffers. A
//! buffer that is evicted before its line is full costs a transaction for each part, many times what reading the line first
//! would have cost. That happens where a loop writes to more lines than there are buffers, and where ordinary stores write
//! part of a line.

use super::Renderer;
use super::memory::LEAST_NONTEMPORAL;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use tinyspec_ir::address::in_param;
use tinyspec_ir::{Arg, NodeId, Op};

const LINE: i64 = 64;
/// Write-combining buffers to count on: some processors have no more.
const BUFFERS: usize = 4;
/// Trips of the loop that are simulated: one may fill the line that the last left unfinished.
const TRIPS: i64 = 4;
/// One line in so many may be evicted before it is full.
const LINES_OF_ONE_HALF: usize = 8;

/// What one store writes: `bytes` at `start` from the beginning of a region, `step` bytes further in each trip.
struct Piece {
    buffer: NodeId,
    terms: Vec<(NodeId, i64)>,
    start: i64,
    bytes: i64,
    step: i64,
    /// There is a non-temporal store for it.
    can_stream: bool,
}

/// Bytes of a line that have been written.
#[derive(Default)]
struct Written {
    all: i64,
    streamed: i64,
}

/// Lines of a buffer that were written full, and half.
#[derive(Default)]
struct Count {
    full: usize,
    half: usize,
}

impl Renderer<'_, '_> {
    /// Does the innermost loop fill nearly all lines of the buffer that it streams to?
    pub(super) fn fills_lines(&mut self, buffer: NodeId) -> bool {
        let graph = self.graph;
        let range = self.levels.iter().rev().map(|level| level.node).find(|&node| graph.op(node) == Op::Range);
        let Some(range) = range else { return true };
        if !self.left_half.contains_key(&range) {
            let left = buffers_left_half(&self.pieces(range));
            self.left_half.insert(range, left);
        }
        !self.left_half[&range].contains(&buffer)
    }

    /// The stores of a loop to what may be streamed, in order.
    fn pieces(&self, range: NodeId) -> Vec<Piece> {
        let graph = self.graph;
        let body = graph.sources(self.kernel.linear).iter().copied().skip_while(|&node| node != range).skip(1);
        let is_end = |node: NodeId| graph.op(node) == Op::End && graph.source(node, 1) == range;
        let is_nontemporal = |&node: &NodeId| graph.op(node) == Op::Store && *graph.arg(node) == Arg::Nontemporal;
        let stores = body.take_while(|&node| !is_end(node)).filter(is_nontemporal);
        let piece = |store: NodeId| {
            let (place, value) = (graph.source(store, 0), graph.source(store, 1));
            let (buffer, sum) = in_param(graph, place)?;
            let gate = graph.sources(store).get(2).map(|&gate| self.is_open(gate));
            if gate == Some(Some(false)) {
                return None;
            }
            let size = graph.dtype(buffer).size() as i64;
            let lanes = i64::from(self.lanes(value).unwrap_or(1).max(self.lanes(place).unwrap_or(1)));
            let step = sum.terms.iter().find(|(term, _)| *term == range).map_or(0, |(_, step)| *step);
            let [start, bytes, step] = [sum.constant, lanes, step].map(|elements| elements.saturating_mul(size));
            let can_stream = gate != Some(None) && bytes >= i64::from(LEAST_NONTEMPORAL);
            Some(Piece { buffer, terms: sum.terms, start, bytes, step, can_stream })
        };
        stores.filter_map(piece).collect()
    }
}

/// Buffers of which too many lines are written before they are full, even if the stores to the others of these are not
/// streamed.
fn buffers_left_half(pieces: &[Piece]) -> FxHashSet<NodeId> {
    let mut left: FxHashSet<NodeId> = FxHashSet::default();
    loop {
        let written = lines_written(pieces.iter().filter(|piece| !left.contains(&piece.buffer)));
        let before = left.len();
        left.extend(
            written
                .into_iter()
                .filter(|(_, count)| count.half * LINES_OF_ONE_HALF > count.full + count.half)
                .map(|(buffer, _)| buffer),
        );
        if left.len() == before {
            return left;
        }
    }
}

/// Lines that some trips write, by buffer. When one more is begun than there are buffers in the
/// processor, the oldest makes room.
fn lines_written<'p>(pieces: impl Iterator<Item = &'p Piece> + Clone) -> FxHashMap<NodeId, Count> {
    let mut counts: FxHashMap<NodeId, Count> = FxHashMap::default();
    let mut count = |buffer: NodeId, line: Written| match line.streamed {
        0 => {}
        LINE.. => counts.entry(buffer).or_default().full += 1,
        _ => counts.entry(buffer).or_default().half += 1,
    };
    let mut open: VecDeque<((&Piece, i64), Written)> = VecDeque::new();
    for trip in 0..TRIPS {
        for piece in pieces.clone() {
            let mut at = piece.start.saturating_add(piece.step.saturating_mul(trip));
            let end = at.saturating_add(piece.bytes);
            while at < end {
                let line = at.div_euclid(LINE);
                let next = end.min((line + 1).saturating_mul(LINE));
                let is_this = |(other, number): (&Piece, i64)| {
                    (other.buffer, number) == (piece.buffer, line) && other.terms == piece.terms
                };
                let found = open.iter().position(|(key, _)| is_this(*key)).and_then(|found| open.remove(found));
                let mut written = found.map_or(Written::default(), |(_, written)| written);
                written.all += next - at;
                written.streamed += if piece.can_stream { next - at } else { 0 };
                if written.all >= LINE {
                    count(piece.buffer, written);
                } else {
                    if open.len() == BUFFERS
                        && let Some(((oldest, _), written)) = open.pop_front()
                    {
                        count(oldest.buffer, written);
                    }
                    open.push_back(((piece, line), written));
                }
                at = next;
            }
        }
    }
    counts
}
