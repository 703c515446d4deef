//! Special: on a GPU the trips of GLOBAL and LOCAL Ranges are workgroups and their threads ("Codegen Ops").
//!
//! The result is a program for one thread, which gets its position from `gidx` and `lidx`. In range form the members of
//! a workgroup wait where a LOCAL loop ends; here that becomes a Barrier before every use of the loop's effects.
//!
//! * An effect that does not distinguish some threads is gated to one of them.
//! * Loops of fewer trips than a dimension of the launch have their effects and reads gated.
//! * A Reduce that a workgroup shares goes through LOCAL memory (`group.rs`).

mod axes;
mod group;
mod indices;
mod merge;

use crate::lower::fold::{self, both, identity};
use crate::lower::live::{Live, RangeSet};
use axes::Axes;
use indices::Indices;
use smallvec::SmallVec;
use tinyspec_backends::Target;
use tinyspec_ir::{AddrSpace, Arg, Builder, DType, Graph, NodeId, Op, Result};

/// The kernel of one thread: its new `Sink`. Unchanged if the target has no workgroups.
///
/// # Errors
/// When the kernel is not in range form.
pub fn special(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<NodeId> {
    let Some(workgroups) = &target.workgroups else { return Ok(sink) };
    let sink = axes::fitting(graph, sink, workgroups)?;
    let order = graph.reachable(&[sink]);
    let live = Live::new(graph, &order)?;
    let axes = Axes::new(graph, &order, &live);
    let groups = Indices::groups(graph, &axes, workgroups)?;
    let threads = Indices::threads(graph, &axes, workgroups)?;
    let next_local = order.iter().filter_map(|&node| local_slot(graph, node)).max().map_or(0, |slot| slot + 1);
    let new = (0..graph.len() as u32).map(NodeId).collect();
    let shared = shared_params(graph, &order);
    let mut stage =
        Stage { around: axes.around(graph, &order, &live), shared, live, axes, groups, threads, new, next_local };
    for node in order {
        let made = stage.node(graph, node)?;
        stage.new[node.index()] = made;
    }
    merge::merge(graph, stage.new[sink.index()])
}

fn local_slot(graph: &Graph, node: NodeId) -> Option<u32> {
    match graph.arg(node) {
        Arg::Buffer { slot, addrspace: AddrSpace::Local, .. } => Some(*slot),
        _ => None,
    }
}

/// Params through which one access may pass data to another.
fn shared_params(graph: &Graph, order: &[NodeId]) -> SmallVec<[NodeId; 4]> {
    let mut accesses: SmallVec<[(NodeId, bool); 16]> = SmallVec::new();
    for &node in order {
        if matches!(graph.op(node), Op::Load | Op::Store | Op::AtomicAdd)
            && let Some(memory) = graph.memory(graph.source(node, 0))
        {
            accesses.push((memory, graph.op(node) != Op::Load));
        }
    }
    let is_shared = |memory: NodeId| {
        let own = accesses.iter().filter(|access| access.0 == memory);
        own.clone().count() > 1 && own.into_iter().any(|access| access.1)
    };
    let mut shared: SmallVec<[NodeId; 4]> = accesses.iter().map(|access| access.0).collect();
    shared.sort_unstable();
    shared.dedup();
    shared.retain(|memory| graph.op(*memory) == Op::Param && is_shared(*memory));
    shared
}

struct Stage {
    live: Live,
    axes: Axes,
    groups: Indices,
    threads: Indices,
    /// Serial loops around loops of workgroups.
    around: RangeSet,
    /// Params through which accesses pass data.
    shared: SmallVec<[NodeId; 4]>,
    new: Vec<NodeId>,
    next_local: u32,
}

impl Stage {
    fn node(&mut self, graph: &mut Graph, node: NodeId) -> Result<NodeId> {
        let op = graph.op(node);
        let mut sources: SmallVec<[NodeId; 4]> =
            graph.sources(node).iter().map(|source| self.new[source.index()]).collect();
        let arg = graph.arg(node).clone();
        match op {
            Op::Range if let Some(index) = self.index(node) => return Ok(index),
            Op::End if self.index(graph.source(node, 1)).is_some() => return Ok(sources[0]),
            Op::Reduce if self.axes.is_grouped(graph, node) => return self.group_reduce(graph, node),
            Op::After => return self.after(graph, node),
            Op::Barrier if !self.threads.has_several() => return graph.add(Op::Group, &sources, Arg::None),
            Op::Load | Op::Store | Op::AtomicAdd => {
                let space = graph.props(sources[0]).addrspace;
                if matches!(space, Some(AddrSpace::Global | AddrSpace::Local)) {
                    sources[0] = self.place(graph, node, sources[0])?;
                    self.guard(graph, node, &mut sources)?;
                }
            }
            _ if op.is_elementwise() => return fold::elementwise(graph, op, &sources, arg),
            _ => {}
        }
        if op == Op::Load && sources.len() == 3 && graph.as_int(sources[2]) == Some(0) {
            return Ok(sources[1]);
        }
        graph.add(op, &sources, arg)
    }

    /// The index that replaces a parallel Range.
    fn index(&self, range: NodeId) -> Option<NodeId> {
        self.groups.of(range).or_else(|| self.threads.of(range))
    }

    /// The address of an access. In a serial loop around those of the workgroup, no thread may start the next trip
    /// before all have finished this one.
    fn place(&mut self, graph: &mut Graph, access: NodeId, address: NodeId) -> Result<NodeId> {
        let around: SmallVec<[NodeId; 4]> = self.live.members(self.live.of(access) & self.around).collect();
        let old = graph.memory(graph.source(access, 0));
        let is_shared = old.is_some_and(|memory| graph.op(memory) == Op::Buffer || self.shared.contains(&memory));
        if around.is_empty() || !is_shared || !self.threads.has_several() {
            return Ok(address);
        }
        let around: SmallVec<[NodeId; 4]> = around.iter().map(|range| self.new[range.index()]).collect();
        let barrier = graph.add(Op::Barrier, &around, Arg::None)?;
        let (op, arg) = (graph.op(address), graph.arg(address).clone());
        let mut sources: SmallVec<[NodeId; 4]> = graph.sources(address).into();
        sources[0] = graph.add(Op::After, &[sources[0], barrier], Arg::None)?;
        graph.add(op, &sources, arg)
    }

    /// Gates a memory access: off where its loops have no such trip, and an effect also for all but one of the threads
    /// that it does not distinguish.
    fn guard(&self, graph: &mut Graph, access: NodeId, sources: &mut SmallVec<[NodeId; 4]>) -> Result<()> {
        let (open, is_read) = (self.live.of(access), graph.op(access) == Op::Load);
        let mut gate = None;
        // Each workgroup has its own LOCAL memory.
        let is_local = graph.props(sources[0]).addrspace == Some(AddrSpace::Local);
        for (indices, once) in [(&self.groups, !is_read && !is_local), (&self.threads, !is_read)] {
            let own = indices.gate(graph, open, once)?;
            gate = both(graph, gate, own)?;
        }
        let Some(gate) = gate.filter(|&gate| graph.as_int(gate).is_none()) else { return Ok(()) };
        if is_read && sources.len() == 1 {
            let nothing = identity(graph, Op::Add, graph.dtype(access));
            sources.push(nothing);
        }
        match sources.get(2).copied() {
            Some(own) => sources[2] = both(graph, Some(own), Some(gate))?.unwrap_or(gate),
            None => sources.push(gate),
        }
        Ok(())
    }

    /// Users of the effects of a workgroup's loop wait for all of its threads.
    fn after(&mut self, graph: &mut Graph, node: NodeId) -> Result<NodeId> {
        let old: SmallVec<[NodeId; 4]> = graph.sources(node).into();
        let mut sources: SmallVec<[NodeId; 4]> = SmallVec::from_iter([self.new[old[0].index()]]);
        let is_private = graph.props(old[0]).addrspace.is_none_or(|space| space == AddrSpace::Reg);
        for &dependency in &old[1..] {
            let new = self.new[dependency.index()];
            let specials = self.groups.specials_of(dependency).or_else(|| self.threads.specials_of(dependency));
            if let Some(specials) = specials {
                sources.extend_from_slice(specials);
                continue;
            }
            let is_effect = graph.dtype(dependency) == DType::Void && graph.op(new) != Op::Barrier;
            let is_closed = self.live.of(dependency) & self.axes.members == 0;
            if is_effect && is_closed && !is_private && self.threads.has_several() {
                sources.push(graph.add(Op::Barrier, &[new], Arg::None)?);
            } else {
                sources.push(new);
            }
        }
        if sources.len() == 1 { Ok(sources[0]) } else { graph.add(Op::After, &sources, Arg::None) }
    }
}
