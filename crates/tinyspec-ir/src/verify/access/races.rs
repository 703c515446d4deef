//! Checks for data races: two iterations of a parallel loop must not access the same element if one of them stores to
//! it.
//!
//! Let one iteration store and another one access, each with its own variables, and let both indices be equal:
//! `meeting` decides whether the resulting equations force the two to be the same iteration.

use super::meeting::Meeting;
use super::poly::Poly;
use super::prover::Prover;
use super::{Access, Problem, ProblemKind, index_in_bounds};
use crate::{AddrSpace, Arg, AxisType, Builder, Graph, NodeId, Op};
use rustc_hash::FxHashSet;

pub(super) fn races(
    graph: &Graph,
    sink: NodeId,
    accesses: &[Access],
    vouched: &dyn Fn(NodeId) -> bool,
    problems: &mut Vec<Problem>,
) {
    let around_locals = around_locals(graph, sink);
    let mut reported: FxHashSet<NodeId> = FxHashSet::default();
    for store in accesses.iter().filter(|access| access.stores()) {
        for access in accesses.iter().filter(|access| access.memory == store.memory) {
            // Each pair of stores is checked once; a pair of atomic additions is allowed.
            let pair_seen = access.stores() && access.node < store.node;
            let atomic = access.op == Op::AtomicAdd && store.op == Op::AtomicAdd;
            if pair_seen || atomic || vouched(access.node) || vouched(store.node) || reported.contains(&access.node) {
                continue;
            }
            for level in [AxisType::Global, AxisType::Local] {
                let is_local = graph.props(store.memory).addrspace == Some(AddrSpace::Local);
                if is_local && level == AxisType::Global {
                    continue;
                }
                if let Some(range) = meeting(graph, store, access, level, &around_locals) {
                    let kind = ProblemKind::Meets { store: store.node, range };
                    problems.push(Problem { node: access.node, kind });
                    reported.insert(access.node);
                    break;
                }
            }
        }
    }
}

fn axis(graph: &Graph, range: NodeId) -> Option<AxisType> {
    match graph.arg(range) {
        Arg::Range { axis, .. } => Some(*axis),
        _ => None,
    }
}

/// Loops around local loops that are in no local loop themselves: the members of a workgroup run them in step.
fn around_locals(graph: &Graph, sink: NodeId) -> FxHashSet<NodeId> {
    let open = super::open_ranges(graph, sink);
    let is_local = |range: NodeId| axis(graph, range) == Some(AxisType::Local);
    let mut around = FxHashSet::default();
    for node in graph.reachable(&[sink]) {
        if graph.op(node) == Op::End && is_local(graph.source(node, 1)) {
            around.extend(open[&node].iter().copied().filter(|&range| !is_local(range)));
        }
    }
    for node in graph.reachable(&[sink]) {
        if graph.op(node) == Op::End && open[&node].iter().any(|&range| is_local(range)) {
            around.remove(&graph.source(node, 1));
        }
    }
    around
}

/// The parallel loop of this level whose iterations may race in the two accesses.
fn meeting(
    graph: &Graph,
    store: &Access,
    access: &Access,
    level: AxisType,
    around_locals: &FxHashSet<NodeId>,
) -> Option<NodeId> {
    let is_shared = |range: &&NodeId| access.ranges.contains(range);
    let parallel: Vec<NodeId> =
        store.ranges.iter().filter(is_shared).copied().filter(|&range| axis(graph, range) == Some(level)).collect();
    if parallel.is_empty() {
        // Sequential, or not parallel at all.
        return None;
    }
    // All members of a workgroup are in the same iteration of the loops around it.
    let common = |range: &NodeId| level == AxisType::Local && around_locals.contains(range);
    let all = store.ranges.iter().chain(&access.ranges).copied();
    let copied: FxHashSet<NodeId> = all.filter(|range| !common(range)).collect();
    let mut prover = Prover::new(graph, copied);
    store.facts(&mut prover, false);
    access.facts(&mut prover, true);
    let mut zeros: Vec<Poly> = prover.equalities();
    let dims = graph.sources(graph.source(store.memory, 0));
    for ((&a, &b), &dim) in store.indices.iter().zip(&access.indices).zip(dims) {
        let (a, b) = (index_in_bounds(&mut prover, a, dim, false), index_in_bounds(&mut prover, b, dim, true));
        zeros.push(a.minus(&b));
    }
    Meeting { prover, zeros }.differing_loop(&parallel)
}
