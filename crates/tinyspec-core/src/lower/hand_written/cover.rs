//! The buffers that a kernel fills completely before it reads them.

use super::Before;
use crate::lower::live;
use rustc_hash::{FxHashMap, FxHashSet};
use tinyspec_ir::address::behind_after;
use tinyspec_ir::affine::{Affine, Footprint};
use tinyspec_ir::kernel::WrittenKernel;
use tinyspec_ir::rewrite::transform;
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, Graph, NodeId, Op, Result};

/// If a kernel overwrites all of a buffer, reads of its old contents go to a Param of their own, so that no copy is
/// needed.
pub(super) fn separate(graph: &mut Graph, sink: NodeId, kernel: &WrittenKernel) -> Result<(NodeId, Vec<Before>)> {
    let mut before = Vec::new();
    let mut next = kernel.buffers.len() as u32;
    let mut slots: FxHashMap<NodeId, u32> = FxHashMap::default();
    let live = graph.reachable(&[sink]);
    for slot in 0..kernel.outputs as u32 {
        let uses = Uses::new(graph, &live, slot);
        before.push(match uses.reads.as_slice() {
            _ if !uses.covered || uses.adds => Before::Kept,
            [] => Before::Ignored,
            _ if uses.is_filled_first(graph) => Before::Ignored,
            // In a vouched kernel, iterations may see what others stored.
            _ if kernel.vouched || !uses.reads_are_first(graph) => Before::Kept,
            reads => {
                slots.extend(reads.iter().map(|&load| (load, next)));
                next += 1;
                Before::Read(next - 1)
            }
        });
    }
    // The index or gate of one read may contain another read.
    let roots = transform(graph, &[sink], |graph, old, new| match slots.get(&old) {
        Some(&slot) => as_input(graph, new, slot),
        None => Ok(new),
    })?;
    Ok((roots[0], before))
}

/// The Load from the old contents of the buffer.
fn as_input(graph: &mut Graph, load: NodeId, slot: u32) -> Result<NodeId> {
    let mut sources = graph.sources(load).to_vec();
    let index = graph.source(sources[0], 1);
    let buffer = behind_after(graph, graph.source(sources[0], 0));
    let (shape, dtype) = (graph.source(buffer, 0), graph.dtype(buffer));
    let arg = Arg::Param { slot, dtype, device: None, addrspace: Some(AddrSpace::Global) };
    let buffer = graph.add(Op::Param, &[shape], arg)?;
    sources[0] = graph.add(Op::Index, &[buffer, index], Arg::None)?;
    let arg = graph.arg(load).clone();
    graph.add(Op::Load, &sources, arg)
}

/// The accesses of a kernel to a written buffer.
struct Uses {
    reads: Vec<NodeId>,
    stores: Vec<NodeId>,
    /// AtomicAdds.
    adds: bool,
    /// Whether every element is stored unconditionally.
    covered: bool,
    /// For each store that covers all elements by itself, the Ends of the serial loops around it: a read after them
    /// sees every element. Parallel iterations see their own elements.
    covering: Vec<Vec<NodeId>>,
}

impl Uses {
    fn new(graph: &Graph, live: &[NodeId], slot: u32) -> Uses {
        let is_buffer = |node: NodeId| {
            let node = behind_after(graph, node);
            matches!(graph.arg(node), Arg::Param { slot: other, addrspace: Some(_), .. } if *other == slot)
        };
        let mut uses = Uses { reads: vec![], stores: vec![], adds: false, covered: false, covering: vec![] };
        let mut size = None;
        for &node in live {
            let op = graph.op(node);
            if !matches!(op, Op::Load | Op::Store | Op::AtomicAdd) || graph.op(graph.source(node, 0)) != Op::Index {
                continue;
            }
            let place = graph.source(node, 0);
            if !is_buffer(graph.source(place, 0)) {
                continue;
            }
            match op {
                Op::Load => uses.reads.push(node),
                Op::AtomicAdd => uses.adds = true,
                _ => {
                    uses.stores.push(node);
                    size = graph.props(graph.source(place, 0)).element_count().as_const();
                    let covers = size.is_some_and(|size| walk_all(graph, live, &[node], size));
                    uses.covering.extend(covers.then(|| serial_ends(graph, live, node)));
                    uses.covered |= covers;
                }
            }
        }
        uses.covered |= size.is_some_and(|size| uses.are_parts(graph, live, size));
        uses
    }

    /// Whether stores that differ by a constant, as those of an unrolled loop do, cover all elements together.
    fn are_parts(&self, graph: &Graph, live: &[NodeId], size: i64) -> bool {
        let form = |store: NodeId| Affine::of(graph, graph.source(graph.source(store, 0), 1)).without_constant();
        self.stores.iter().any(|&first| {
            let own = form(first);
            let group: Vec<NodeId> = self.stores.iter().copied().filter(|&store| form(store) == own).collect();
            group.first() == Some(&first) && group.len() > 1 && walk_all(graph, live, &group, size)
        })
    }

    /// Whether every read comes after a store to all elements.
    fn is_filled_first(&self, graph: &Graph) -> bool {
        let is_after = |&load: &NodeId| {
            let before: FxHashSet<NodeId> = graph.reachable(&[load]).into_iter().collect();
            self.covering.iter().any(|ends| ends.iter().all(|end| before.contains(end)))
        };
        self.reads.iter().all(is_after)
    }

    /// Whether no read sees what the kernel stored: none comes after a store, in the same iteration or a later one.
    fn reads_are_first(&self, graph: &Graph) -> bool {
        let is_serial = |node: &NodeId| {
            matches!(graph.arg(*node), Arg::Range { axis: AxisType::Loop, .. }) && graph.op(*node) == Op::Range
        };
        let below = |node: NodeId| -> FxHashSet<NodeId> { graph.reachable(&[node]).into_iter().collect() };
        let stored: Vec<FxHashSet<NodeId>> = self.stores.iter().map(|&store| below(store)).collect();
        self.reads.iter().all(|&load| {
            let read = below(load);
            self.stores.iter().all(|store| !read.contains(store))
                && stored.iter().all(|store| !store.iter().any(|node| is_serial(node) && read.contains(node)))
        })
    }
}

/// Whether the indices of unconditional stores, which differ by a constant, take each value from 0 to `size` once as the loops
/// around the stores run.
fn walk_all(graph: &Graph, live: &[NodeId], stores: &[NodeId], size: i64) -> bool {
    let index = |store: NodeId| Affine::of(graph, graph.source(graph.source(store, 0), 1));
    let Some(&first) = stores.first() else { return false };
    let mut starts: Vec<i64> = stores.iter().map(|&store| index(store).constant()).collect();
    starts.sort_unstable();
    let apart = starts.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    let apart: Vec<i64> = apart.collect();
    let is_even = apart.windows(2).all(|pair| pair[0] == pair[1]) && apart.first() != Some(&0);
    let step = |&(range, step): &(NodeId, i64)| {
        let is_counter = graph.op(range) == Op::Range && step > 0;
        live::trips(graph, range).filter(|_| is_counter).map(|trips| (step, trips))
    };
    let steps = index(first).terms().iter().map(step).collect::<Option<Vec<(i64, i64)>>>();
    let Some(mut steps) = steps.filter(|_| is_even) else { return false };
    steps.extend(apart.first().map(|&step| (step, starts.len() as i64)));
    let trips = steps.iter().try_fold(1i64, |trips, step| trips.checked_mul(step.1));
    let Footprint { run, rows } = Footprint::of(steps);
    let happens =
        |&store: &NodeId| graph.sources(store).len() == 2 && around(graph, live, store).all(|range| runs(graph, range));
    starts.first() == Some(&0) && rows.is_empty() && run == size && trips == Some(size) && stores.iter().all(happens)
}

/// The store, and the ends of the serial loops around it.
fn serial_ends(graph: &Graph, live: &[NodeId], store: NodeId) -> Vec<NodeId> {
    let around: FxHashSet<NodeId> = around(graph, live, store).collect();
    let is_serial = |range: NodeId| matches!(graph.arg(range), Arg::Range { axis: AxisType::Loop, .. });
    let is_end = |&&node: &&NodeId| {
        graph.op(node) == Op::End && around.contains(&graph.source(node, 1)) && is_serial(graph.source(node, 1))
    };
    std::iter::once(store).chain(live.iter().filter(is_end).copied()).collect()
}

/// The loops around the store.
fn around<'a>(graph: &'a Graph, live: &'a [NodeId], store: NodeId) -> impl Iterator<Item = NodeId> + 'a {
    let mut inside: FxHashSet<NodeId> = FxHashSet::from_iter([store]);
    live.iter().filter_map(move |&node| match (graph.op(node), graph.sources(node)) {
        (Op::End, &[body, range]) if inside.contains(&body) => {
            inside.insert(node);
            Some(range)
        }
        (Op::Group, sources) if sources.iter().any(|source| inside.contains(source)) => {
            inside.insert(node);
            None
        }
        _ => None,
    })
}

/// Whether the loop runs at least once.
fn runs(graph: &Graph, range: NodeId) -> bool {
    graph.as_int(graph.source(range, 0)).is_some_and(|trips| trips > 0)
}
