//! Verifies kernels written by hand: every access is in bounds, and iterations of parallel loops do not race.
//!
//! Proofs hold for all dims. Indices are checked axis by axis, as sums of products of dims and loop variables, under
//! the conditions that gate the access. The macro runs this at compile time, and the library again after decoding.

mod meeting;
mod poly;
mod prover;
mod races;

pub(super) use meeting::gcd;

use crate::address::behind_after;
use crate::{AddrSpace, Builder, Graph, NodeId, Op};
use poly::Poly;
use prover::Prover;
use rustc_hash::FxHashMap;

/// A property of an access that could not be proved.
#[derive(Clone, PartialEq, Debug)]
pub struct Problem {
    /// The Load, Store or AtomicAdd.
    pub node: NodeId,
    /// The kind of problem.
    pub kind: ProblemKind,
}

/// See [`Problem`].
#[derive(Clone, PartialEq, Debug)]
pub enum ProblemKind {
    /// An index may be negative.
    BelowZero {
        /// Position of the index.
        axis: usize,
        /// Its least value, as text.
        least: Option<String>,
        /// Whether it may wrap at 64 bits.
        wraps: bool,
    },
    /// An index may reach the end of its axis.
    BeyondEnd {
        /// Position of the index.
        axis: usize,
        /// Its greatest value, as text.
        greatest: Option<String>,
        /// The size of the axis, as text.
        size: Option<String>,
        /// Whether the index may wrap at 64 bits.
        wraps: bool,
    },
    /// Another iteration of a parallel loop may store to the same element.
    Meets {
        /// The store of the other iteration.
        store: NodeId,
        /// The loop whose iterations race.
        range: NodeId,
    },
}

/// An access to memory.
pub(super) struct Access {
    node: NodeId,
    op: Op,
    /// Param or Buffer.
    memory: NodeId,
    indices: Vec<NodeId>,
    gate: Option<NodeId>,
    /// Loops around it, outer ones first.
    ranges: Vec<NodeId>,
}

impl Access {
    fn stores(&self) -> bool {
        self.op != Op::Load
    }

    /// Tells the prover everything known at the access.
    fn facts(&self, prover: &mut Prover, other: bool) {
        for &range in &self.ranges {
            prover.range(range, other);
        }
        if let Some(gate) = self.gate {
            let mut facts = Vec::new();
            prover.conditions(gate, true, other, &mut facts);
            prover.facts.extend(facts);
        }
    }
}

/// Everything that cannot be proved about a kernel, in order of the accesses. `name` gives the names of dims and
/// Ranges; `vouched` accesses may race.
pub fn problems(
    graph: &Graph,
    sink: NodeId,
    name: &dyn Fn(NodeId) -> Option<String>,
    vouched: &dyn Fn(NodeId) -> bool,
) -> Vec<Problem> {
    let accesses = accesses(graph, sink);
    let mut problems = Vec::new();
    for access in &accesses {
        bounds(graph, access, name, &mut problems);
    }
    races::races(graph, sink, &accesses, vouched, &mut problems);
    problems.sort_by_key(|problem| problem.node);
    problems
}

fn bounds(graph: &Graph, access: &Access, name: &dyn Fn(NodeId) -> Option<String>, problems: &mut Vec<Problem>) {
    let shape = graph.sources(graph.source(access.memory, 0)).to_vec();
    let mut prover = Prover::new(graph, []);
    access.facts(&mut prover, false);
    for (axis, (&index, dim)) in access.indices.iter().zip(shape).enumerate() {
        let wraps = prover.poly(index, false) != prover.machine(index, false);
        let index = index_in_bounds(&mut prover, index, dim, false);
        let size = prover.poly(dim, false);
        if !prover.holds(&index) {
            let least = prover.extreme(&index, false);
            let kind = ProblemKind::BelowZero { axis, least: prover.show(&least, name), wraps };
            problems.push(Problem { node: access.node, kind });
        }
        if !prover.holds(&size.offset(-1).minus(&index)) {
            let greatest = prover.extreme(&index, true);
            let (greatest, size) = (prover.show(&greatest, name), prover.show(&size, name));
            problems.push(Problem { node: access.node, kind: ProblemKind::BeyondEnd { axis, greatest, size, wraps } });
        }
    }
}

/// The index that is proved to be in bounds, if one is: the mathematical sum, or its machine value.
fn index_in_bounds(prover: &mut Prover, index: NodeId, dim: NodeId, other: bool) -> Poly {
    let (written, machine) = (prover.poly(index, other), prover.machine(index, other));
    if written == machine {
        return written;
    }
    let size = prover.poly(dim, other);
    let is_inside =
        |prover: &mut Prover, index: &Poly| prover.holds(index) && prover.holds(&size.offset(-1).minus(index));
    if !is_inside(prover, &written) && is_inside(prover, &machine) { machine } else { written }
}

/// All accesses to Params and LOCAL Buffers.
fn accesses(graph: &Graph, sink: NodeId) -> Vec<Access> {
    let open = open_ranges(graph, sink);
    let mut accesses = Vec::new();
    for node in graph.reachable(&[sink]) {
        let op = graph.op(node);
        if !matches!(op, Op::Load | Op::Store | Op::AtomicAdd) || graph.op(graph.source(node, 0)) != Op::Index {
            continue;
        }
        let place = graph.sources(graph.source(node, 0));
        let memory = behind_after(graph, place[0]);
        if !matches!(graph.props(memory).addrspace, Some(AddrSpace::Global | AddrSpace::Local)) {
            continue;
        }
        accesses.push(Access {
            node,
            op,
            memory,
            indices: place[1..].to_vec(),
            gate: graph.sources(node).get(2).copied(),
            ranges: open.get(&node).cloned().unwrap_or_default(),
        });
    }
    accesses
}

/// The Ranges that a node depends on and that no End or Reduce below it closes, outer ones first.
pub(super) fn open_ranges(graph: &Graph, sink: NodeId) -> FxHashMap<NodeId, Vec<NodeId>> {
    let mut open: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
    for node in graph.reachable(&[sink]) {
        let sources = graph.sources(node);
        let mut ranges: Vec<NodeId> = sources.iter().filter_map(|source| open.get(source)).flatten().copied().collect();
        match graph.op(node) {
            Op::Range => ranges.push(node),
            Op::End | Op::Reduce => ranges.retain(|range| !sources[1..].contains(range)),
            _ => {}
        }
        ranges.sort_unstable();
        ranges.dedup();
        open.insert(node, ranges);
    }
    open
}
