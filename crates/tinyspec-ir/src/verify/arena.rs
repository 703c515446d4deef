//! The arena of a command buffer: temporaries may share memory if they are not needed at the same time.

use super::calls::Touched;
use super::refuse;
use crate::commands::{base, linear};
use crate::{Builder, Dim, Graph, NodeId, Op, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

/// Values that lie in the arena.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Temporary {
    /// A Buffer that Calls pass to each other.
    Buffer(NodeId),
    /// The temporaries that the kernels of one Call pass to each other, by the number of the Call.
    Within(usize),
}

/// The bytes of the arena that hold a temporary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// The temporary that they hold.
    pub of: Temporary,
    /// Where.
    pub bytes: Range<usize>,
}

/// Checks the layout of the temporaries of a [command buffer](crate::commands) that [`commands`](super::commands()) accepts, for
/// these values of its named dims: an arena of so many bytes. Live ranges of temporaries follow from the Calls alone.
///
/// # Errors
/// Names the temporary, or its Call, that has no place or one that is too small, not aligned, beyond the arena, or shared with a
/// temporary that is needed at the same time.
pub fn arena(
    graph: &Graph,
    root: NodeId,
    layout: &[Placed],
    bytes: usize,
    value: &impl Fn(u32) -> Option<Dim>,
) -> Result<()> {
    let stage = "verify arena";
    let calls = graph.sources(linear(graph, root)?);
    let results: FxHashSet<NodeId> = graph.sources(root).iter().map(|&result| base(graph, result)).collect();
    let touched = Touched::of(stage, graph, calls)?;
    // The first and the last Call that needs each temporary.
    let mut missing: FxHashMap<NodeId, Range<usize>> = FxHashMap::default();
    for (&buffer, touches) in &touched.0 {
        let numbers = touches.iter().map(|touch| touch.call);
        if let (Some(first), Some(last)) = (numbers.clone().min(), numbers.max())
            && graph.op(buffer) == Op::Buffer
            && !results.contains(&buffer)
        {
            missing.insert(buffer, first..last);
        }
    }
    let mut needed: Vec<(Range<usize>, Range<usize>, NodeId)> = Vec::with_capacity(layout.len());
    let mut known: FxHashSet<NodeId> = FxHashSet::default();
    for Placed { of, bytes: place } in layout {
        let (node, life) = match *of {
            Temporary::Buffer(node) => (node, missing.remove(&node)),
            Temporary::Within(call) if call < calls.len() => (calls[call], Some(call..call)),
            Temporary::Within(call) => {
                return refuse(stage, graph, root, format!("it has no Call {call}"));
            }
        };
        if place.start > place.end || place.end > bytes {
            return refuse(stage, graph, node, format!("takes bytes {place:?} of an arena of {bytes}"));
        }
        if let Temporary::Buffer(buffer) = *of {
            if !known.insert(buffer) {
                return refuse(stage, graph, buffer, "has two places in the arena");
            }
            let size = graph.dtype(buffer).size();
            let count = graph.props(buffer).element_count().substitute(value);
            let fits =
                |count: i64| usize::try_from(count.max(0)).ok()?.checked_mul(size).filter(|&all| all <= place.len());
            if count.as_const().and_then(fits).is_none() {
                let message = format!("has {} bytes of the arena for {count} elements of {size}", place.len());
                return refuse(stage, graph, buffer, message);
            }
            if place.start % size.max(1) != 0 {
                return refuse(stage, graph, buffer, format!("begins at byte {}: it is not aligned", place.start));
            }
        }
        needed.extend(life.filter(|_| !place.is_empty()).map(|life| (life, place.clone(), node)));
    }
    let unplaced =
        missing.into_iter().filter(|(buffer, _)| !graph.props(*buffer).element_count().substitute(value).is(0));
    if let Some((buffer, _)) = unplaced.min_by_key(|(buffer, _)| *buffer) {
        return refuse(stage, graph, buffer, "has no place in the arena");
    }
    needed.sort_by_key(|(life, place, _)| (life.start, place.start));
    // The live temporaries, by first byte; they do not overlap. The one whose last Call comes first is on top of the heap.
    let mut now: BTreeMap<usize, (usize, NodeId)> = BTreeMap::new();
    let mut ends: BinaryHeap<Reverse<(usize, usize)>> = BinaryHeap::new();
    for (life, place, node) in needed {
        while let Some(&Reverse((last, start))) = ends.peek()
            && last < life.start
        {
            ends.pop();
            now.remove(&start);
        }
        let before = now.range(..place.end).next_back();
        if let Some((&start, &(end, other))) = before
            && end > place.start
        {
            let both = start.max(place.start)..end.min(place.end);
            let message =
                format!("shares bytes {both:?} of the arena with %{}, which is needed at the same time", other.0);
            return refuse(stage, graph, node, message);
        }
        now.insert(place.start, (place.end, node));
        ends.push(Reverse((life.end, place.start)));
    }
    Ok(())
}
