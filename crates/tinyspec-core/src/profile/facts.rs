//! Facts about a kernel, from its range form: a name, its axes, and its work.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::{Arg, AxisType, Builder, DType, Graph, NodeId, Op};

/// Name and work of a kernel in range form.
pub(crate) struct Facts {
    /// Kind and bounds of the axes, such as `reduce_64_10_64`.
    pub name: String,
    /// Operations on elements.
    pub work: u64,
}

/// With more Ranges than bits, the work is an estimate.
type Ranges = u64;

impl Facts {
    /// Counts every op once for each trip of the Ranges that it depends on.
    pub fn of(graph: &Graph, sink: NodeId) -> Facts {
        let mut ranges: SmallVec<[(NodeId, u64, AxisType); 8]> = SmallVec::new();
        let mut depends: Vec<Ranges> = vec![0; graph.len()];
        let trips = |ranges: &[(NodeId, u64, AxisType)], set: Ranges| {
            let inside = ranges.iter().enumerate().filter(|(bit, _)| set & (1 << (bit % 64)) != 0);
            inside.fold(1u64, |trips, (_, (_, bound, _))| trips.saturating_mul(*bound))
        };
        let mut work = 0u64;
        for node in graph.reachable(&[sink]) {
            let sources = graph.sources(node);
            let mut set = sources.iter().fold(0, |set, source| set | depends[source.index()]);
            match (graph.op(node), graph.arg(node)) {
                (Op::Range, Arg::Range { axis, .. }) => {
                    set |= 1 << (ranges.len() % 64);
                    let bound = graph.props(graph.source(node, 0)).interval.int().map_or(1, |(_, bound)| bound.max(0));
                    ranges.push((node, bound as u64, *axis));
                }
                // Users of a Reduce or a loop do not depend on its Ranges.
                (Op::Reduce | Op::End, _) => {
                    if graph.op(node) == Op::Reduce {
                        work = work.saturating_add(trips(&ranges, set));
                    }
                    for source in &sources[1..] {
                        set &= !depends[source.index()];
                    }
                }
                (op, _) if op.is_elementwise() && !graph.dtype(node).is_int() => {
                    work = work.saturating_add(trips(&ranges, set));
                }
                _ => {}
            }
            depends[node.index()] = set;
        }
        let kind = if ranges.iter().any(|(_, _, axis)| axis.is_reduce()) { "reduce" } else { "elementwise" };
        let bounds: Vec<String> = ranges.iter().map(|(_, bound, _)| bound.to_string()).collect();
        let name = if bounds.is_empty() { format!("{kind}_scalar") } else { format!("{kind}_{}", bounds.join("_")) };
        Facts { name, work: work.max(1) }
    }
}

/// Bytes that a kernel in range form reads and writes: each element that its accesses can reach counts once.
pub(crate) fn touched(graph: &Graph, sink: NodeId) -> u64 {
    let order = graph.reachable(&[sink]);
    // An index reaches as many elements as the product of the bounds of the loops that it depends on.
    let mut ranges: FxHashMap<NodeId, SmallVec<[NodeId; 4]>> = FxHashMap::default();
    let mut places: FxHashMap<(u32, bool), (u64, u64)> = FxHashMap::default();
    for &node in &order {
        if graph.dtype(node) == DType::Index || graph.op(node) == Op::Index {
            let mut below: SmallVec<[NodeId; 4]> = graph
                .sources(node)
                .iter()
                .flat_map(|source| ranges.get(source).into_iter().flatten().copied())
                .collect();
            if graph.op(node) == Op::Range {
                below.push(node);
            }
            below.sort_unstable();
            below.dedup();
            ranges.insert(node, below);
        }
        let op = graph.op(node);
        let is_access = matches!(op, Op::Load | Op::Store | Op::AtomicAdd);
        let (Some(&place), true) = (graph.sources(node).first(), is_access) else { continue };
        let Some(&memory) = graph.sources(place).first() else { continue };
        let Arg::Param { slot, dtype, .. } = *graph.arg(memory) else { continue };
        let bound = |range: &NodeId| graph.props(graph.source(*range, 0)).interval.int().map_or(1, |(_, bound)| bound);
        let trips = ranges.get(&place).into_iter().flatten().map(|range| bound(range).max(0) as u64);
        let count = trips.fold(1, u64::saturating_mul);
        let all = graph.props(memory).element_count().as_const().unwrap_or(0).max(0) as u64;
        for writes in [false, true] {
            if op == Op::AtomicAdd || writes == (op == Op::Store) {
                let entry = places.entry((slot, writes)).or_insert((0, dtype.size() as u64));
                entry.0 = entry.0.saturating_add(count).min(all);
            }
        }
    }
    places.into_values().map(|(count, size)| count.saturating_mul(size)).fold(0, u64::saturating_add)
}

/// The axes of an optimised kernel, outer ones first: the spec's letter and the bound.
pub(crate) fn axes(graph: &Graph, sink: NodeId) -> String {
    let mut axes: Vec<(u32, String)> = Vec::new();
    for node in graph.reachable(&[sink]) {
        if let (Op::Range, Arg::Range { id, axis }) = (graph.op(node), graph.arg(node)) {
            let bound = graph.props(graph.source(node, 0)).interval.int().map_or(0, |(_, bound)| bound);
            axes.push((*id, format!("{}{bound}", axis.letter())));
        }
    }
    axes.sort();
    axes.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ")
}
