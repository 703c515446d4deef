//! Two iterations of a parallel loop must not meet at an element that one of them stores to.
//!
//! Let one iteration do the store and another the access, each with variables of its own, and let both go to the same
//! element. If that forces the loops' variables to be equal, axis by axis as in mixed radix, they are one iteration.

use super::poly::Poly;
use super::prover::Prover;
use super::{Access, Problem, ProblemKind};
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
            // Each pair of stores once; a pair of atomic additions is what they are for.
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

/// Loops that local loops stand in.
fn around_locals(graph: &Graph, sink: NodeId) -> FxHashSet<NodeId> {
    let open = super::open_ranges(graph, sink);
    let mut around = FxHashSet::default();
    for node in graph.reachable(&[sink]) {
        if graph.op(node) == Op::End && axis(graph, graph.source(node, 1)) == Some(AxisType::Local) {
            around.extend(open[&node].iter().copied().filter(|&range| axis(graph, range) != Some(AxisType::Local)));
        }
    }
    around
}

/// The parallel loop of this level whose iterations may meet in the two accesses.
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
        // One after the other, or not in parallel at all.
        return None;
    }
    // Loops around a workgroup are in the same iteration for all of its members.
    let common = |range: &NodeId| level == AxisType::Local && around_locals.contains(range);
    let all = store.ranges.iter().chain(&access.ranges).copied();
    let copied: FxHashSet<NodeId> = all.filter(|range| !common(range)).collect();
    let mut prover = Prover::new(graph, copied);
    store.facts(&mut prover, false);
    access.facts(&mut prover, true);
    let mut equal: Vec<Poly> = Vec::new();
    for (&a, &b) in store.indices.iter().zip(&access.indices) {
        equal.push(prover.poly(a, false).minus(&prover.poly(b, true)));
    }
    if equal
        .iter()
        .any(|difference| prover.holds(&difference.offset(-1)) || prover.holds(&difference.negated().offset(-1)))
    {
        return None;
    }
    // What one axis says of a quotient holds in the others.
    for position in 0..equal.len() {
        let Some((symbol, value)) = prover.solve(&equal[position]) else { continue };
        for (other, difference) in equal.iter_mut().enumerate() {
            if other != position {
                *difference = difference.substitute(symbol, &value);
            }
        }
    }
    let mut apart: Vec<NodeId> = parallel;
    loop {
        let before = apart.len();
        for position in (0..apart.len()).rev() {
            let (mine, others) = (prover.range(apart[position], false), prover.range(apart[position], true));
            let gap = Poly::symbol(mine).minus(&Poly::symbol(others));
            // A gate such as `i == 0` leaves one iteration.
            let is_one = prover.holds(&gap) && prover.holds(&gap.negated());
            let is_one = is_one
                || equal.iter().any(|difference| {
                    let Some((coefficient, rest)) = difference.linear_in(mine) else { return false };
                    let Some((opposite, rest)) = rest.linear_in(others) else { return false };
                    if coefficient.0.is_empty() || coefficient.plus(&opposite) != Poly::default() {
                        return false;
                    }
                    // c·(i - i') + rest = 0 with |rest| < |c| leaves only i = i'.
                    [coefficient.clone(), coefficient.negated()].iter().any(|size| {
                        let room = size.offset(-1);
                        prover.holds(&room) && prover.holds(&room.minus(&rest)) && prover.holds(&room.plus(&rest))
                    })
                });
            if is_one {
                let value = Poly::symbol(mine);
                for difference in &mut equal {
                    *difference = difference.substitute(others, &value);
                }
                for fact in &mut prover.facts {
                    *fact = fact.substitute(others, &value);
                }
                apart.remove(position);
            }
        }
        if apart.is_empty() {
            return None;
        }
        if apart.len() == before {
            return apart.first().copied();
        }
    }
}
