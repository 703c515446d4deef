//! Reduces over the same Ranges are made by one loop. Where that loop would have to be over before itself, because one of
//! its Reduces needs the result of another, directly or through the loops of others, it becomes several, each with
//! Ranges of its own.

use crate::lower::live::{Live, RangeSet, next_range_id};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::{Arg, Builder, Error, ErrorKind, Graph, NodeId, Op, Result};

/// Gives every loop over Reduces Ranges that no other loop has.
///
/// # Errors
/// When the kernel has too many loops.
pub(in super::super) fn rename(graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
    let mut sink = sink;
    // A loop that is there twice has its inner loops twice, which the next round tells apart.
    while let Some(apart) = round(graph, sink)? {
        sink = apart;
    }
    Ok(sink)
}

/// The kernel with other Ranges for loops that share some; `None` where none do.
fn round(graph: &mut Graph, sink: NodeId) -> Result<Option<NodeId>> {
    let order = graph.reachable(&[sink]);
    if order.iter().filter(|&&node| graph.op(node) == Op::Reduce).count() < 2 {
        return Ok(None);
    }
    let live = Live::new(graph, &order)?;
    let loops = Loops::of(graph, &order, &live)?;
    if loops.all.iter().all(|own| !own.is_renamed) {
        return Ok(None);
    }
    let mut next = next_range_id(graph, live.ranges.iter().copied());
    let mut ids = Vec::with_capacity(loops.all.len());
    for own in &loops.all {
        ids.push(next);
        next += own.ranges.len() as u32;
    }
    let mut new: Vec<NodeId> = (0..graph.len() as u32).map(NodeId).collect();
    for &node in &order {
        let own = loops.of.get(&node).filter(|&&own| loops.all[own].is_renamed);
        let map = match own {
            Some(&own) => Some(renamed(graph, &live, &order, node, (&loops.all[own], ids[own]), &new)?),
            None => None,
        };
        let map = map.as_ref().unwrap_or(&new);
        let sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|source| map[source.index()]).collect();
        let arg = graph.arg(node).clone();
        new[node.index()] = graph.add(graph.op(node), &sources, arg)?;
    }
    Ok(Some(new[sink.index()]))
}

/// Loops, as a set of their numbers.
type LoopSet = u128;

/// Reduces that one loop computes.
struct Loop {
    ranges: SmallVec<[NodeId; 4]>,
    /// Ranges around it.
    outer: RangeSet,
    /// Loops that end before this one starts.
    before: LoopSet,
    /// Whether another loop has these Ranges.
    is_renamed: bool,
}

struct Loops {
    all: Vec<Loop>,
    /// The loop of each Reduce.
    of: FxHashMap<NodeId, usize>,
}

impl Loops {
    /// Each Reduce joins the first loop over its Ranges that need not end before it starts.
    fn of(graph: &Graph, order: &[NodeId], live: &Live) -> Result<Loops> {
        let mut loops = Loops { all: Vec::new(), of: FxHashMap::default() };
        let mut below: Vec<LoopSet> = vec![0; graph.len()];
        // Ranges of the loops so far.
        let mut taken: RangeSet = 0;
        for &node in order {
            let direct = graph.sources(node).iter().fold(0, |set, source| set | below[source.index()]);
            below[node.index()] = direct;
            if graph.op(node) != Op::Reduce || graph.sources(node).len() < 2 {
                continue;
            }
            let ranges = &graph.sources(node)[1..];
            let before = loops.closure(direct);
            let outer = live.of(node);
            let joins = |(number, own): &(usize, &Loop)| {
                own.ranges[..] == *ranges && own.outer == outer && before >> number & 1 == 0
            };
            let joined = loops.all.iter().enumerate().find(joins).map(|(number, _)| number);
            let number = joined.unwrap_or(loops.all.len());
            if number == LoopSet::BITS as usize {
                let message = format!("more than {number} loops in one kernel");
                return Err(
                    Error::new(ErrorKind::Unsupported, "reduce", message).help("realize an intermediate result")
                );
            }
            if joined.is_none() {
                let own = ranges.iter().fold(0, |set, &range| set | live.bit(range));
                loops.all.push(Loop { ranges: ranges.into(), outer, before: 0, is_renamed: taken & own != 0 });
                taken |= own;
            }
            // Loops that wait for this loop also wait for those before it.
            for (other, own) in loops.all.iter_mut().enumerate() {
                if other == number || own.before >> number & 1 == 1 {
                    own.before |= before;
                }
            }
            loops.of.insert(node, number);
            below[node.index()] |= 1 << number;
        }
        Ok(loops)
    }

    /// Those loops, and all before them.
    fn closure(&self, set: LoopSet) -> LoopSet {
        let members = self.all.iter().enumerate().filter(|(number, _)| set >> number & 1 == 1);
        members.fold(set, |all, (_, own)| all | own.before)
    }
}

/// The nodes below `reduce` inside its loop, over the Ranges that start with this number.
fn renamed(
    graph: &mut Graph,
    live: &Live,
    order: &[NodeId],
    reduce: NodeId,
    (own, first): (&Loop, u32),
    new: &[NodeId],
) -> Result<Vec<NodeId>> {
    let mut map = new.to_vec();
    let shared = own.ranges.iter().fold(0, |set, &range| set | live.bit(range));
    for &node in order.iter().take_while(|&&node| node < reduce) {
        if live.of(node) & shared == 0 {
            continue;
        }
        let mut arg = graph.arg(node).clone();
        if let Arg::Range { id, .. } = &mut arg
            && let Some(position) = own.ranges.iter().position(|&range| range == node)
        {
            *id = first + position as u32;
        }
        let sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|source| map[source.index()]).collect();
        map[node.index()] = graph.add(graph.op(node), &sources, arg)?;
    }
    Ok(map)
}
