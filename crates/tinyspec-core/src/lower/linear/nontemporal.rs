//! Turns non-temporal stores that would leave lines half written into ordinary ones. The processor combines the stores to a line in
//! one of a few write-combining buffers. Evicting a buffer before its line is full costs a transaction for each part, many times
//! what reading the line first would have cost. That happens if a loop writes to more lines than there are buffers, and if
//! ordinary stores write part of a line.

use super::{Instructions, LINE};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use tinyspec_backends::Target;
use tinyspec_ir::address::{behind_after, in_param};
use tinyspec_ir::affine::Affine;
use tinyspec_ir::instructions::{condition, is_otherwise, lanes};
use tinyspec_ir::{Arg, Graph, NodeId, Op, Result};

/// Bytes of the shortest non-temporal store.
const LEAST_NONTEMPORAL: i64 = 16;
/// The number of write-combining buffers to rely on; some processors have no more.
const BUFFERS: usize = 4;
/// The number of trips simulated: a trip may fill the line that the previous one left unfinished.
const TRIPS: i64 = 4;
/// One line in this many may be evicted before it is full, which takes about as long as reading this many lines
/// (measured).
const LINES_OF_ONE_HALF: usize = 128;

/// The bytes that one store writes: from `start` in its region, `step` further in each trip.
struct Piece {
    buffer: NodeId,
    /// Its address without the constant.
    place: Affine,
    start: i64,
    bytes: i64,
    step: i64,
    /// Whether the processor has a non-temporal store for it.
    can_stream: bool,
}

/// Bytes of a line that have been written.
#[derive(Default)]
struct Written {
    all: i64,
    streamed: i64,
}

/// The number of lines of a buffer that were evicted full, and before they were full.
#[derive(Default)]
struct Count {
    full: usize,
    half: usize,
}

/// Emits ordinary stores for non-temporal ones that would leave too many lines half written.
///
/// # Errors
/// When [`tinyspec_ir::derive()`] rejects a node, which would be a bug in this pass.
pub fn nontemporal(graph: &mut Graph, linear: NodeId, target: &Target) -> Result<NodeId> {
    let list = graph.sources(linear).to_vec();
    if target.workgroups.is_some() || !list.iter().any(|&node| is_nontemporal(graph, node)) {
        return Ok(linear);
    }
    let mut left: FxHashMap<NodeId, FxHashSet<NodeId>> = FxHashMap::default();
    let mut open: Vec<NodeId> = Vec::new();
    let mut ordinary: FxHashSet<NodeId> = FxHashSet::default();
    for (position, &node) in list.iter().enumerate() {
        match graph.op(node) {
            Op::Range => {
                open.push(node);
                let (pieces, mut ends) = pieces(graph, &list[position..]);
                ends.extend(buffers_left_half(&pieces));
                left.insert(node, ends);
            }
            Op::End => drop(open.pop()),
            Op::Store if is_nontemporal(graph, node) => {
                let left = open.last().and_then(|range| left.get(range));
                if buffer_of(graph, node).zip(left).is_some_and(|(buffer, left)| left.contains(&buffer)) {
                    ordinary.insert(node);
                }
            }
            _ => {}
        }
    }
    if ordinary.is_empty() {
        return Ok(linear);
    }
    let mut instructions = Instructions::default();
    for &node in &list {
        if ordinary.contains(&node) {
            let sources: Vec<NodeId> = graph.sources(node).iter().map(|&source| instructions.now(source)).collect();
            instructions.copy_as(graph, node, Op::Store, &sources, Arg::None)?;
        } else {
            instructions.copy(graph, node)?;
        }
    }
    instructions.linear(graph)
}

fn is_nontemporal(graph: &Graph, node: NodeId) -> bool {
    graph.op(node) == Op::Store && *graph.arg(node) == Arg::Nontemporal
}

/// The non-temporal stores of the loop that begins here, in order, except those in the second version of a body; and the buffers that
/// a second version stores to if it is not rare.
fn pieces(graph: &Graph, list: &[NodeId]) -> (Vec<Piece>, FxHashSet<NodeId>) {
    let (mut pieces, mut ends) = (Vec::new(), FxHashSet::default());
    let Some((&range, rest)) = list.split_first() else { return (pieces, ends) };
    let is_end = |node: NodeId| graph.op(node) == Op::End && graph.source(node, 1) == range;
    // The second version of a body that the walk is inside of, and whether it runs rarely.
    let mut second: Option<(NodeId, bool)> = None;
    for (&node, &before) in rest.iter().zip(list).take_while(|&(&node, _)| !is_end(node)) {
        match (graph.op(node), second) {
            (Op::If, None) if is_otherwise(graph, before, node) => second = Some((node, is_rare(graph, node))),
            (Op::Endif, Some((open, _))) if open == graph.source(node, 0) => second = None,
            (Op::Store, Some((_, false))) if is_nontemporal(graph, node) => ends.extend(buffer_of(graph, node)),
            (Op::Store, None) if is_nontemporal(graph, node) => pieces.extend(piece(graph, node, range)),
            _ => {}
        }
    }
    (pieces, ends)
}

/// The bytes that a store in this loop writes.
fn piece(graph: &Graph, store: NodeId, range: NodeId) -> Option<Piece> {
    let (place, value) = (graph.source(store, 0), graph.source(store, 1));
    let (buffer, sum) = in_param(graph, place)?;
    let size = graph.dtype(buffer).size() as i64;
    let step = sum.coefficient(range);
    let elements = lanes(graph, value).max(lanes(graph, place));
    let [start, bytes, step] = [sum.constant(), elements, step].map(|elements| elements.saturating_mul(size));
    let factors = sum.terms().iter().map(|&(_, factor)| alignment(factor.saturating_mul(size)));
    let alignment = factors.fold(alignment(start), i64::min);
    // Alignment to half a vector suffices.
    let is_whole = bytes.count_ones() == 1 && bytes.min(alignment) >= LEAST_NONTEMPORAL.max(bytes / 2);
    let can_stream = graph.sources(store).len() == 2 && is_whole;
    Some(Piece { buffer, place: sum.without_constant(), start, bytes, step, can_stream })
}

fn buffer_of(graph: &Graph, store: NodeId) -> Option<NodeId> {
    in_param(graph, behind_after(graph, graph.source(store, 0))).map(|(buffer, _)| buffer)
}

/// Whether the second version of a body runs in few trips of the loops that its condition depends on: it does at their ends. A row
/// ends within a line, in which the next row may begin with non-temporal stores.
fn is_rare(graph: &Graph, block: NodeId) -> bool {
    let trips = graph.reachable(&[condition(graph, block)]).into_iter().filter(|&node| graph.op(node) == Op::Range);
    let trips = trips.map(|range| graph.as_int(graph.source(range, 0)).unwrap_or(1));
    trips.fold(1, i128::saturating_mul) >= LINES_OF_ONE_HALF as i128
}

/// The largest power of two that divides a number of bytes, at most a line.
fn alignment(bytes: i64) -> i64 {
    if bytes == 0 { LINE } else { (bytes & bytes.wrapping_neg()).clamp(1, LINE) }
}

/// The buffers that would have too many lines evicted before they are full, given that the stores to all of these
/// become ordinary.
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

/// Counts the lines that some trips write, by buffer. A line that exceeds the processor's buffers evicts the oldest.
fn lines_written<'p>(pieces: impl Iterator<Item = &'p Piece> + Clone) -> FxHashMap<NodeId, Count> {
    let mut counts: FxHashMap<NodeId, Count> = FxHashMap::default();
    let mut count = |buffer: NodeId, line: Written| match line.streamed {
        0 => {}
        streamed if streamed == line.all && streamed >= LINE => counts.entry(buffer).or_default().full += 1,
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
                    (other.buffer, number) == (piece.buffer, line) && other.place == piece.place
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
