//! Running reductions: iteration `i` of a parallel loop reduces the terms up to `i`, which no iteration changes. Written over all terms
//! with the others masked, and in order, they are loop-carried by Select: one term each instead of a loop.

use super::vectorize::{Kernel, axis, depends, new_range, position};
use crate::lower::fold::identity;
use crate::lower::live::{Live, trips};
use rustc_hash::{FxHashMap, FxHashSet};
use tinyspec_backends::Target;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::rewrite::{substitute, transform};
use tinyspec_ir::{Arg, AxisType, Builder, Graph, NodeId, Op, Result};

/// The kernel with its running reductions in order, and the Ranges of these.
pub(super) fn in_order(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<(NodeId, FxHashSet<NodeId>)> {
    let (mut sink, mut ranges) = (sink, FxHashSet::default());
    let live = graph.reachable(&[sink]);
    // The loop that threads share has no order.
    let is_member = |node: &NodeId| matches!(axis(graph, *node), Some(AxisType::Global | AxisType::Local));
    let members: Vec<NodeId> = live.into_iter().filter(is_member).collect();
    for around in members {
        let found = Running::of(graph, sink, around)?;
        if found.is_empty() {
            continue;
        }
        let mut new: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        for running in found {
            ranges.insert(running.all);
            new.insert(running.node, running.masked(graph)?);
        }
        let sums = substitute(graph, &[sink], &new)?[0];
        sink = serial(graph, sums, around, target)?;
    }
    Ok((sink, ranges))
}

/// A Reduce whose last term follows from an iteration.
struct Running {
    node: NodeId,
    /// The number of its terms in an iteration.
    bound: NodeId,
    /// The Range over all terms.
    all: NodeId,
    /// The terms, as a function of that Range.
    terms: NodeId,
}

impl Running {
    /// Those of a parallel loop.
    fn of(graph: &mut Graph, sink: NodeId, around: NodeId) -> Result<Vec<Running>> {
        let live = graph.reachable(&[sink]);
        let mut found = Vec::new();
        let Some(end) = end_of(graph, &live, around).filter(|_| trips(graph, around).is_some()) else {
            return Ok(found);
        };
        let outside = loops_around(graph, &live, end);
        let inside = depends(graph, &live, around);
        let is_store = |node: &&NodeId| matches!(graph.op(**node), Op::Store | Op::AtomicAdd) && inside.contains(node);
        let written: FxHashSet<NodeId> =
            live.iter().filter(is_store).filter_map(|&node| graph.memory(graph.source(node, 0))).collect();
        for &node in live.iter().filter(|&node| inside.contains(node)) {
            let (Op::Reduce, &[value, range]) = (graph.op(node), graph.sources(node)) else { continue };
            let bound = graph.source(range, 0);
            let form = Affine::of(graph, bound);
            let most = graph.props(bound).interval.int().and_then(|(_, most)| i64::try_from(most).ok());
            let Some(most) = most.filter(|_| form.terms() == [(around, 1)] && form.constant() <= 1) else { continue };
            let all = new_range(graph, most, AxisType::Reduce)?;
            let terms = substitute(graph, &[value], &FxHashMap::from_iter([(range, all)]))?[0];
            let below = graph.reachable(&[terms]);
            let open = Live::new(graph, &below)?;
            let is_carried = open.members(open.of(terms)).all(|range| range == all || outside.contains(&range));
            let is_read = |&&node: &&NodeId| {
                graph.op(node) == Op::Load
                    && graph.memory(graph.source(node, 0)).is_none_or(|memory| written.contains(&memory))
            };
            if is_carried && !below.contains(&around) && !below.iter().any(|node| is_read(&node)) {
                found.push(Running { node, bound, all, terms });
            }
        }
        Ok(found)
    }

    fn masked(&self, graph: &mut Graph) -> Result<NodeId> {
        let arg = graph.arg(self.node).clone();
        let Arg::Reduce { op, .. } = arg else { return Ok(self.node) };
        let is_term = graph.alu(Op::CmpLt, &[self.all, self.bound])?;
        let nothing = identity(graph, op, graph.dtype(self.terms));
        let terms = graph.alu(Op::Where, &[is_term, self.terms, nothing])?;
        graph.add(Op::Reduce, &[terms, self.all], arg)
    }
}

fn end_of(graph: &Graph, live: &[NodeId], range: NodeId) -> Option<NodeId> {
    live.iter().copied().find(|&node| graph.op(node) == Op::End && graph.source(node, 1) == range)
}

/// The loops that an End is in.
fn loops_around(graph: &Graph, live: &[NodeId], end: NodeId) -> FxHashSet<NodeId> {
    let (mut inside, mut found) = (FxHashSet::from_iter([end]), FxHashSet::default());
    for &node in live {
        let sources = graph.sources(node);
        let contains = match graph.op(node) {
            Op::End => inside.contains(&sources[0]),
            Op::Group => sources.iter().any(|source| inside.contains(source)),
            _ => false,
        };
        if contains {
            inside.insert(node);
            found.extend(sources.get(1).filter(|_| graph.op(node) == Op::End));
        }
    }
    found
}

/// Runs a parallel loop in order, by vectors if its accesses allow that; lanes behind its last iteration access nothing.
fn serial(graph: &mut Graph, sink: NodeId, range: NodeId, target: &Target) -> Result<NodeId> {
    let kernel = Kernel::new(graph, sink, target);
    let Some(end) = end_of(graph, &kernel.live, range) else { return Ok(sink) };
    let body = graph.source(end, 0);
    let (Some(all), Some(_)) = (trips(graph, range), kernel.tile(graph, end)) else {
        let bound = graph.source(range, 0);
        let ordered = super::vectorize::bounded_range(graph, bound, AxisType::Loop)?;
        let body = substitute(graph, &[body], &FxHashMap::from_iter([(range, ordered)]))?[0];
        let new = graph.add(Op::End, &[body, ordered], Arg::None)?;
        return Ok(substitute(graph, &[sink], &FxHashMap::from_iter([(end, new)]))?[0]);
    };
    let outer = new_range(graph, (all + kernel.lanes - 1) / kernel.lanes, AxisType::Loop)?;
    let inner = new_range(graph, kernel.lanes, AxisType::Upcast)?;
    let at = position(graph, Some((outer, kernel.lanes)), inner, 0)?;
    let mut body = substitute(graph, &[body], &FxHashMap::from_iter([(range, at)]))?[0];
    if all % kernel.lanes != 0 {
        let all = graph.index(all);
        let gate = graph.alu(Op::CmpLt, &[at, all])?;
        body = gated(graph, body, inner, gate)?;
    }
    let tile = graph.add(Op::End, &[body, inner], Arg::None)?;
    let new = graph.add(Op::End, &[tile, outer], Arg::None)?;
    Ok(substitute(graph, &[sink], &FxHashMap::from_iter([(end, new)]))?[0])
}

/// Makes accesses that depend on `lane` happen only where `gate` holds.
fn gated(graph: &mut Graph, body: NodeId, lane: NodeId, gate: NodeId) -> Result<NodeId> {
    let live = graph.reachable(&[body]);
    let depends = depends(graph, &live, lane);
    let bodies = transform(graph, &[body], |graph, old, new| {
        let is_access = matches!(graph.op(old), Op::Load | Op::Store)
            && graph.op(graph.source(old, 0)) == Op::Index
            && depends.contains(&graph.source(old, 0));
        if !is_access {
            return Ok(new);
        }
        let (op, arg) = (graph.op(new), graph.arg(new).clone());
        let mut sources = graph.sources(new).to_vec();
        if op == Op::Load && sources.len() == 1 {
            sources.push(identity(graph, Op::Add, graph.dtype(new)));
        }
        let gate = match sources.get(2).copied() {
            Some(own) => graph.alu(Op::And, &[own, gate])?,
            None => gate,
        };
        sources.truncate(2);
        sources.push(gate);
        graph.add(op, &sources, arg)
    })?;
    Ok(bodies[0])
}
