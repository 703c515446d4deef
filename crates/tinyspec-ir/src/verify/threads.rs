//! Threads of a workgroup: data passed between them must be protected by a Barrier, and every Barrier must be reached
//! by all of them.
//!
//! Like bounds, conflicts are searched for by trying iterations: two threads that access the same element in the same
//! iteration of the enclosing loops, or in successive ones, without a Barrier in between. Nothing valid is refused.

use super::access::open_ranges;
use super::arithmetic::{Arithmetic, Dice, run};
use super::conditions::Conditions;
use super::order::accesses;
use super::refuse;
use crate::special::SpecialIndex;
use crate::{AddrSpace, Arg, AxisType, Builder, Graph, NodeId, Op, Result};
use rustc_hash::FxHashMap;

/// The number of iterations to try for a pair of accesses.
const TRIALS: usize = 3;
/// The most threads of a workgroup to try: the first ones along each dimension.
const THREADS: u64 = 256;

/// Checks a kernel whose indices are Specials and whose nodes are `live`, sources before users.
///
/// # Errors
/// Names an access that races with another thread's, or a Barrier that not all threads reach.
pub(super) fn threads(stage: &str, graph: &Graph, root: NodeId, live: &[NodeId]) -> Result<()> {
    let is_thread = |node: &NodeId| SpecialIndex::of(graph, *node).is_some_and(SpecialIndex::is_thread);
    if !live.iter().any(is_thread) {
        return Ok(());
    }
    let (open, conditions) = (open_ranges(graph, root), Conditions::new(graph, root));
    let around = |node: NodeId| open.get(&node).map(Vec::as_slice).unwrap_or_default();
    for &barrier in live.iter().filter(|&&node| graph.op(node) == Op::Barrier) {
        if let Some(range) = around(barrier).iter().find(|&&range| !is_uniform(graph, graph.source(range, 0))) {
            let why = format!("stands in a loop whose trips differ from thread to thread, %{}", range.0);
            return refuse(stage, graph, barrier, why);
        }
        if let Some(gate) = conditions.around(barrier).iter().find(|&&gate| !is_uniform(graph, gate)) {
            let why = format!("stands in a condition that differs from thread to thread, %{}", gate.0);
            return refuse(stage, graph, barrier, why);
        }
    }
    let mut accesses = accesses(graph, live);
    accesses.retain(|access| graph.props(access.memory).addrspace != Some(AddrSpace::Reg));
    let barriers: Vec<NodeId> = live.iter().copied().filter(|&node| graph.op(node) == Op::Barrier).collect();
    for first in &accesses {
        // Which nodes depend on the access: at all, and through a Barrier.
        let (mut below, mut behind) = (vec![false; graph.len()], vec![false; graph.len()]);
        for &node in live {
            let sources = graph.sources(node);
            let any = |set: &[bool]| sources.iter().any(|source| set[source.index()]);
            let (from, through) = (any(&below), any(&behind));
            below[node.index()] = from || node == first.node;
            behind[node.index()] = if graph.op(node) == Op::Barrier { from } else { through };
        }
        for second in accesses.iter().filter(|second| second.memory == first.memory) {
            let both_add = [first, second].iter().all(|access| graph.op(access.node) == Op::AtomicAdd);
            if both_add || !first.writes && !second.writes {
                continue;
            }
            let at = second.node.index();
            let follows = second.node == first.node || below[at];
            let mut meets = follows && !behind[at] && meet(graph, first.node, second.node, None, &open, &conditions);
            // A Barrier that the second access waits for in each trip, or that waits for the first.
            let passed = |range: NodeId| {
                let mut inside = barriers.iter().filter(|&&barrier| around(barrier).contains(&range));
                inside.any(|&barrier| below[barrier.index()] || graph.reachable(&[second.node]).contains(&barrier))
            };
            for &range in around(first.node) {
                let is_serial = matches!(graph.arg(range), Arg::Range { axis: AxisType::Loop | AxisType::Reduce, .. });
                if meets || !is_serial || !around(second.node).contains(&range) || passed(range) {
                    continue;
                }
                meets = meet(graph, first.node, second.node, Some(range), &open, &conditions);
            }
            if meets {
                let why = format!("meets %{} of another thread without a Barrier between", first.node.0);
                return refuse(stage, graph, second.node, why);
            }
        }
    }
    Ok(())
}

/// Whether a value is the same for all threads of a workgroup.
pub(super) fn is_uniform(graph: &Graph, node: NodeId) -> bool {
    graph.reachable(&[node]).into_iter().all(|below| {
        !SpecialIndex::of(graph, below).is_some_and(SpecialIndex::is_thread) && graph.op(below) != Op::Load
    })
}

/// Whether two threads access the same element: the second in the same iteration as the first, or in the next one of
/// `later`.
fn meet(
    graph: &Graph,
    first: NodeId,
    second: NodeId,
    later: Option<NodeId>,
    open: &FxHashMap<NodeId, Vec<NodeId>>,
    conditions: &Conditions,
) -> bool {
    let mut dice = Dice::new();
    let trial = || -> Option<bool> {
        let ((from, length), (to, count)) = (run(graph, first)?, run(graph, second)?);
        let gates = [first, second].map(|access| conditions.gates(graph, access));
        let around = [first, second].into_iter().flat_map(|access| open.get(&access).into_iter().flatten().copied());
        let roots = [from, to].into_iter().chain(gates.iter().flatten().copied()).chain(around);
        let mut arithmetic = Arithmetic::new(graph, roots)?;
        let kinds: Vec<(usize, Option<SpecialIndex>, NodeId, u64)> = (arithmetic.counters.iter().enumerate())
            .map(|(number, counter)| (number, SpecialIndex::of(graph, counter.node), counter.node, counter.count))
            .collect();
        let threads: Vec<(usize, u64)> = kinds
            .iter()
            .filter(|kind| kind.1.is_some_and(SpecialIndex::is_thread))
            .map(|kind| (kind.0, kind.3))
            .collect();
        // Threads along dimensions that neither index depends on are different threads, too.
        let unknown = (graph.nodes())
            .filter(|&node| SpecialIndex::of(graph, node).is_some_and(SpecialIndex::is_thread))
            .any(|node| !kinds.iter().any(|kind| kind.2 == node) && graph.as_int(graph.source(node, 0)) != Some(1));
        for _ in 0..TRIALS {
            let mut iteration: Vec<(usize, u64)> = Vec::new();
            for &(number, special, node, count) in &kinds {
                if special.is_some_and(SpecialIndex::is_thread) {
                    continue;
                }
                let last = if later == Some(node) { count.checked_sub(1).filter(|&rest| rest > 0)? } else { count };
                iteration.push((number, dice.choose(last)));
            }
            let mut places: [Vec<(i128, u64)>; 2] = [Vec::new(), Vec::new()];
            let size = threads.iter().map(|thread| thread.1).product::<u64>().min(THREADS);
            for (which, places) in places.iter_mut().enumerate() {
                for &(number, value) in &iteration {
                    let is_next = which == 1 && later == Some(arithmetic.counters[number].node);
                    arithmetic.set(number, value + is_next as u64);
                }
                for thread in 0..size {
                    let mut rest = thread;
                    for &(number, count) in &threads {
                        arithmetic.set(number, rest % count);
                        rest /= count;
                    }
                    let happens = arithmetic.run()?;
                    let is_closed = gates[which].iter().any(|&gate| arithmetic.value(gate) == Some(0));
                    if happens && !is_closed {
                        places.push((arithmetic.value(if which == 0 { from } else { to })?, thread));
                    }
                }
            }
            let [mut before, mut after] = places;
            before.sort_unstable();
            after.sort_unstable();
            let overlaps = |&(place, thread): &(i128, u64)| {
                let start = after.partition_point(|other| other.0 + count <= place);
                let inside = after[start..].iter().take_while(|other| other.0 < place + length);
                inside.clone().count() > 0 && (unknown || inside.into_iter().any(|other| other.1 != thread))
            };
            if before.iter().any(overlaps) {
                return Some(true);
            }
        }
        Some(false)
    };
    let mut trial = trial;
    trial().unwrap_or(false)
}
