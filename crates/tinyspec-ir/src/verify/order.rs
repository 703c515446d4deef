//! Ordering of effects: if two accesses are to the same element and one writes, the graph must order them.
//!
//! The order is that of the graph, by values and by After; the linear order only refines it. So a missing After is
//! found even if the list happens to be right.

use super::access::{gcd, open_ranges};
use super::conditions::Conditions;
use super::conflicts::Conflicts;
use super::refuse;
use crate::address::behind_after;
use crate::{AddrSpace, Arg, AxisType, Builder, Graph, NodeId, Op, Result};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A Load, Store or AtomicAdd.
pub(super) struct Access {
    pub node: NodeId,
    /// Param or Buffer.
    pub memory: NodeId,
    pub writes: bool,
}

/// Checks a kernel of any form, whose nodes are `live`, sources before users.
///
/// # Errors
/// Names an access that is unordered, or that reads uninitialised memory.
pub(super) fn order(stage: &str, graph: &Graph, sink: NodeId, live: &[NodeId]) -> Result<()> {
    let accesses = accesses(graph, live);
    let (open, conditions) = (open_ranges(graph, sink), Conditions::new(graph, sink));
    let mut conflicts = Conflicts::new(graph, live, &open, &conditions);
    let mut is_written = vec![false; accesses.len()];
    let mut by_memory: FxHashMap<NodeId, Vec<usize>> = FxHashMap::default();
    for (number, access) in accesses.iter().enumerate() {
        by_memory.entry(access.memory).or_default().push(number);
    }
    // The accesses of a batch that each node depends on.
    let mut below = vec![0u64; graph.len()];
    for (block, firsts) in accesses.chunks(64).enumerate() {
        let mut own: FxHashMap<NodeId, u64> = FxHashMap::default();
        for (bit, access) in firsts.iter().enumerate() {
            own.insert(access.node, 1 << bit);
        }
        for &node in live {
            let sources = graph.sources(node);
            let from = sources.iter().fold(0, |bits, source| bits | below[source.index()]);
            below[node.index()] = from | own.get(&node).copied().unwrap_or(0);
        }
        for (bit, first) in firsts.iter().enumerate() {
            let number = block * 64 + bit;
            for &later in by_memory[&first.memory].iter().filter(|&&later| later > number) {
                let second = &accesses[later];
                if !first.writes && !second.writes {
                    continue;
                }
                let is_below = below[second.node.index()] >> bit & 1 == 1;
                is_written[later] |= is_below && first.writes;
                if is_below || both_add(graph, first, second) || are_side_by_side(graph, first, second) {
                    continue;
                }
                let needs_order = !may_be_disjoint(graph, &conditions, first, second);
                if needs_order || conflicts.unordered(first.node, second.node) {
                    let why = format!("is neither before nor after %{}, which touches the same memory", first.node.0);
                    return refuse(stage, graph, second.node, why);
                }
            }
        }
    }
    between_iterations(stage, graph, &accesses, &mut conflicts)?;
    for (access, is_written) in accesses.iter().zip(is_written) {
        let is_read = graph.op(access.node) != Op::Store;
        if is_read && !is_written && graph.op(access.memory) == Op::Buffer {
            return refuse(stage, graph, access.node, "reads a buffer that nothing has written before");
        }
    }
    Ok(())
}

/// Checks that an iteration of a parallel loop stores nothing that another one accesses. Of the elements of one tile,
/// only the first is tried.
fn between_iterations(stage: &str, graph: &Graph, accesses: &[Access], conflicts: &mut Conflicts) -> Result<()> {
    let in_param = |access: &&Access| graph.op(access.memory) == Op::Param;
    for (number, store) in accesses.iter().enumerate().filter(|(_, access)| access.writes && in_param(access)) {
        let others = accesses.iter().enumerate().filter(|&(other, access)| other >= number || !access.writes);
        for (other, access) in others.filter(|(_, access)| access.memory == store.memory) {
            let both_add = both_add(graph, store, access);
            let may_conflict = !both_add && (other == number || !are_of_one_tile(graph, store, access));
            if may_conflict && conflicts.between_iterations(store.node, access.node) {
                let why = format!("meets %{} of another iteration of a parallel loop", store.node.0);
                return refuse(stage, graph, access.node, why);
            }
        }
    }
    Ok(())
}

/// Checks that a register is used within one iteration of the parallel loops around it, where `open` gives the loops around each node.
pub(super) fn registers(
    stage: &str,
    graph: &Graph,
    live: &[NodeId],
    open: &FxHashMap<NodeId, Vec<NodeId>>,
) -> Result<()> {
    let mut homes: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
    for access in
        accesses(graph, live).iter().filter(|access| graph.props(access.memory).addrspace == Some(AddrSpace::Reg))
    {
        let around = open.get(&access.node).into_iter().flatten().copied();
        let parallel: Vec<NodeId> = around.filter(|&range| is_parallel(graph, range)).collect();
        if *homes.entry(access.memory).or_insert_with(|| parallel.clone()) != parallel {
            return refuse(stage, graph, access.node, "takes a register across the border of a parallel loop");
        }
    }
    Ok(())
}

fn is_parallel(graph: &Graph, range: NodeId) -> bool {
    matches!(graph.arg(range), Arg::Range { axis, .. } if axis.is_parallel() || matches!(axis, AxisType::Local | AxisType::Warp))
}

pub(super) fn accesses(graph: &Graph, live: &[NodeId]) -> Vec<Access> {
    let access = |&node: &NodeId| {
        let op = graph.op(node);
        if !matches!(op, Op::Load | Op::Store | Op::AtomicAdd) {
            return None;
        }
        Some(Access { node, memory: graph.memory(graph.source(node, 0))?, writes: op != Op::Load })
    };
    let all: Vec<Access> = live.iter().filter_map(access).collect();
    // Memory that is only read needs no order.
    let written: rustc_hash::FxHashSet<NodeId> =
        all.iter().filter(|access| access.writes).map(|access| access.memory).collect();
    let is_own = |memory: NodeId| graph.op(memory) == Op::Buffer;
    all.into_iter().filter(|access| written.contains(&access.memory) || is_own(access.memory)).collect()
}

fn both_add(graph: &Graph, a: &Access, b: &Access) -> bool {
    [a, b].iter().all(|access| graph.op(access.node) == Op::AtomicAdd)
}

/// Whether two accesses must be tried to find out if they overlap: different or conditional addresses in a Param, and
/// stores to different addresses of LOCAL memory.
fn may_be_disjoint(graph: &Graph, conditions: &Conditions, a: &Access, b: &Access) -> bool {
    let differ = graph.source(a.node, 0) != graph.source(b.node, 0);
    let both_write = a.writes && b.writes;
    // A lane beyond the end of its axis has the address of another row, and a closed gate.
    let gated = [a, b].iter().any(|access| access.writes && !conditions.gates(graph, access.node).is_empty());
    let in_param = graph.op(a.memory) == Op::Param && (differ || !both_write || gated);
    in_param || both_write && differ && graph.props(a.memory).addrspace == Some(AddrSpace::Local)
}

/// Whether two accesses are to different elements of one tile: terms that both offsets share cancel, the others are
/// multiples of a step, and the accesses are in different parts of that step.
fn are_side_by_side(graph: &Graph, a: &Access, b: &Access) -> bool {
    let (left, right) = (graph.source(a.node, 0), graph.source(b.node, 0));
    if constants_differ(graph, left, right) {
        return true;
    }
    let (Some(left), Some(right)) = (Elements::of(graph, left), Elements::of(graph, right)) else { return false };
    let mut terms = left.terms;
    for (node, factor) in right.terms {
        *terms.entry(node).or_default() -= factor;
    }
    let step = terms.into_values().fold(0, gcd);
    let are_disjoint = |behind: i128| match step {
        0 => behind >= left.length || -behind >= right.length,
        _ => behind.rem_euclid(step) >= left.length && (-behind).rem_euclid(step) >= right.length,
    };
    left.starts.iter().all(|left| right.starts.iter().all(|right| are_disjoint(right - left)))
}

/// Whether their offsets differ by a constant.
fn are_of_one_tile(graph: &Graph, a: &Access, b: &Access) -> bool {
    let elements = |access: &Access| Elements::of(graph, graph.source(access.node, 0));
    elements(a).zip(elements(b)).is_some_and(|(a, b)| a.terms == b.terms)
}

/// The most terms of an offset to analyse.
const MOST_TERMS: usize = 64;

/// The elements of an access: a sum of multiples of nodes, a constant for each lane, and the number of elements from
/// there on.
struct Elements {
    terms: FxHashMap<NodeId, i128>,
    starts: SmallVec<[i128; 16]>,
    length: i128,
}

impl Elements {
    fn of(graph: &Graph, address: NodeId) -> Option<Elements> {
        let address = behind_after(graph, address);
        let (offset, length) = match (graph.op(address), graph.sources(address)) {
            (Op::Index, &[_, index]) => (index, 1),
            (Op::Shrink, &[_, offset, _]) if graph.op(offset) == Op::Stack => {
                (*graph.sources(offset).first()?, graph.props(address).shape.first()?.as_const()?)
            }
            _ => return None,
        };
        let lanes = graph.props(offset).shape.first().map_or(Some(1), |lanes| lanes.as_const())?;
        let starts = SmallVec::from_elem(0, usize::try_from(lanes).ok()?);
        let mut elements = Elements { terms: FxHashMap::default(), starts, length: length.into() };
        let mut pending = vec![(offset, 1i128)];
        while let Some((node, factor)) = pending.pop() {
            if elements.terms.len() + pending.len() > MOST_TERMS {
                return None;
            }
            match (graph.op(node), graph.sources(node)) {
                _ if graph.as_int(node).is_some() => {
                    let number = factor.checked_mul(graph.as_int(node)?)?;
                    elements.starts.iter_mut().for_each(|start| *start += number);
                }
                (Op::Stack, lanes) if lanes.len() == elements.starts.len() => {
                    for (start, &lane) in elements.starts.iter_mut().zip(lanes) {
                        *start += factor.checked_mul(graph.as_int(lane)?)?;
                    }
                }
                (Op::Add, &[left, right]) => pending.extend([(left, factor), (right, factor)]),
                (Op::Mul, &[left, right]) if graph.as_int(right).is_some() => {
                    pending.push((left, factor.checked_mul(graph.as_int(right)?)?));
                }
                // Offsets fit in the types that they are computed in.
                (Op::Cast, &[value]) if graph.dtype(value).is_int() && graph.dtype(node).size() >= 4 => {
                    pending.push((value, factor));
                }
                (Op::Expand, &[value, _]) if graph.props(value).shape.is_empty() => pending.push((value, factor)),
                _ if graph.props(node).shape.is_empty() => *elements.terms.entry(node).or_default() += factor,
                _ => return None,
            }
        }
        Some(elements)
    }
}

fn constants_differ(graph: &Graph, left: NodeId, right: NodeId) -> bool {
    let [left, right] = [left, right].map(|place| behind_after(graph, place));
    let both_index = graph.op(left) == Op::Index && graph.op(right) == Op::Index;
    both_index
        && graph.sources(left)[1..].iter().zip(&graph.sources(right)[1..]).any(|(&left, &right)| {
            matches!((graph.as_int(left), graph.as_int(right)), (Some(left), Some(right)) if left != right)
        })
}
