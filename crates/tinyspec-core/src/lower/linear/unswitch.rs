//! Unswitches innermost loops: a loop-invariant condition is tested once, in front of two versions of the loop. Masked loads keep
//! the processor from running ahead, so the loop of a tile whose last columns may lie beyond the matrix gets a version without
//! masks, which all tiles but the last take. Packing on first use is tested once per tile rather than in each trip.

use super::Instructions;
use super::versions::{Version, in_blocks};
use crate::lower::live::trips;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use tinyspec_backends::Target;
use tinyspec_ir::address::register;
use tinyspec_ir::instructions::{condition, greatest_bound, negated};
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result, dim};

/// The largest loop that is worth a second version, in instructions.
const LARGEST: usize = 512;
/// The least number of trips over which the test is negligible.
const LEAST_TRIPS: i64 = 8;
/// The most conditions that a loop is unswitched for: each doubles the code.
const MOST_CONDITIONS: usize = 2;
/// Lane counts of masks that are tested as one integer.
const LANES: [i64; 4] = [8, 16, 32, 64];

/// Emits two versions of each innermost loop with a loop-invariant condition or loop-invariant masks.
///
/// # Errors
/// When [`tinyspec_ir::derive()`] rejects a node, which would be a bug in this pass.
pub fn unswitch(graph: &mut Graph, mut linear: NodeId, target: &Target) -> Result<NodeId> {
    if target.workgroups.is_some() {
        return Ok(linear);
    }
    // A version may be unswitched again by another condition, or by the masks that are left.
    for _ in 0..=MOST_CONDITIONS {
        let list = graph.sources(linear).to_vec();
        let found = candidates(graph, &list)?;
        if found.is_empty() {
            break;
        }
        linear = unswitched(graph, &list, &found)?;
    }
    Ok(linear)
}

/// A loop that gets two versions.
struct Candidate {
    /// Positions of its Range and of its End.
    start: usize,
    end: usize,
    /// The condition, behind the instructions that compute it from those in the sequence.
    condition: Vec<NodeId>,
    /// The gates that are open where the condition holds. If the condition is itself the only one, it is closed elsewhere.
    known: Vec<NodeId>,
    /// Instructions that the loop does not change.
    invariant: Vec<NodeId>,
}

fn candidates(graph: &mut Graph, list: &[NodeId]) -> Result<Vec<Candidate>> {
    let (mut found, mut decided) = (Vec::new(), Vec::new());
    for (position, &node) in list.iter().enumerate() {
        match graph.op(node) {
            Op::If => {
                let condition = condition(graph, node);
                decided.push((condition, negated(graph, condition)));
            }
            Op::Endif => drop(decided.pop()),
            Op::Range => {
                let Some(mut candidate) = (Loop { graph, list, start: position }).candidate() else { continue };
                if candidate.condition.is_empty() {
                    candidate.condition = all_open(graph, &candidate.known)?;
                }
                // The masked version keeps its masks, so it is found again. An earlier test may be a copy of its condition.
                let is_decided = |own: NodeId| {
                    let is_own = |other: NodeId| graph.is_equal(other, own);
                    decided.iter().any(|&(holds, fails)| is_own(holds) || fails.is_some_and(is_own))
                };
                if !candidate.condition.last().is_some_and(|&own| is_decided(own)) {
                    found.push(candidate);
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

struct Loop<'a> {
    graph: &'a Graph,
    list: &'a [NodeId],
    start: usize,
}

impl Loop<'_> {
    /// A candidate by the loop's first invariant condition or, without any, by its invariant masks; then `condition` is empty.
    fn candidate(&self) -> Option<Candidate> {
        let (graph, range) = (self.graph, self.list[self.start]);
        if matches!(graph.arg(range), Arg::Range { axis, .. } if axis.is_parallel()) {
            return None;
        }
        let is_long = trips(graph, range).is_some_and(|trips| trips >= LEAST_TRIPS);
        let mut changing: FxHashSet<NodeId> = FxHashSet::from_iter([range]);
        let (mut masks, mut conditions, mut invariant) = (Vec::new(), Vec::new(), Vec::new());
        for (position, &node) in self.list.iter().enumerate().skip(self.start + 1).take(LARGEST) {
            let sources = graph.sources(node);
            let is_changed = |node: &NodeId| changing.contains(node);
            match graph.op(node) {
                Op::Range => return None,
                Op::End => {
                    let single = conditions.first().copied().filter(|_| conditions.len() <= MOST_CONDITIONS);
                    let condition: Vec<NodeId> = single.into_iter().collect();
                    let known = if condition.is_empty() { masks } else { condition.clone() };
                    let is_worth_it = is_long && !known.is_empty();
                    let (start, end) = (self.start, position);
                    return is_worth_it.then_some(Candidate { start, end, condition, known, invariant });
                }
                Op::If | Op::Store => {
                    conditions.extend(self.condition(node).filter(|it| !is_changed(it) && !conditions.contains(it)));
                    changing.insert(node);
                }
                Op::Load => {
                    masks.extend(self.mask(node).filter(|it| !is_changed(it) && !masks.contains(it)));
                    changing.insert(node);
                }
                Op::AtomicAdd | Op::Endif => drop(changing.insert(node)),
                _ if sources.iter().any(is_changed) => drop(changing.insert(node)),
                _ => invariant.push(node),
            }
        }
        None
    }

    /// The condition of an If, or a scalar condition that gates a Store to memory.
    fn condition(&self, node: NodeId) -> Option<NodeId> {
        let graph = self.graph;
        let mut pending = match (graph.op(node), graph.sources(node)) {
            (Op::If, _) => vec![condition(graph, node)],
            (Op::Store, &[place, _, gate]) if register(graph, place).is_none() => vec![gate],
            _ => return None,
        };
        while let Some(gate) = pending.pop() {
            match graph.op(gate) {
                Op::And => pending.extend(graph.sources(gate)),
                Op::Expand => pending.push(graph.source(gate, 0)),
                Op::Const => {}
                _ if graph.props(gate).shape.is_empty() => return Some(gate),
                _ => {}
            }
        }
        None
    }

    /// The gate of a Load, if testing all of its lanes is cheap.
    fn mask(&self, load: NodeId) -> Option<NodeId> {
        let &[_, _, gate] = self.graph.sources(load) else { return None };
        let shape = dim::static_shape(&self.graph.props(gate).shape)?;
        (shape.is_empty() || LANES.contains(shape.first()?)).then_some(gate)
    }
}

/// The instructions that test whether all lanes of all gates are open.
fn all_open(graph: &mut Graph, gates: &[NodeId]) -> Result<Vec<NodeId>> {
    let (mut instructions, mut before) = (Vec::new(), None);
    for &gate in gates {
        let mut open = if graph.props(gate).shape.is_empty() {
            gate
        } else if let Some((bound, number)) = greatest_bound(graph, gate) {
            graph.add(Op::CmpLt, &[bound, number], Arg::None)?
        } else {
            let all = graph.add(Op::Reduce, &[gate], Arg::Reduce { op: Op::Mul, axes: smallvec![0] })?;
            instructions.push(all);
            let scalar = graph.shape(&[])?;
            graph.add(Op::Reshape, &[all, scalar], Arg::None)?
        };
        instructions.push(open);
        if let Some(before) = before {
            open = graph.add(Op::And, &[before, open], Arg::None)?;
            instructions.push(open);
        }
        before = Some(open);
    }
    Ok(instructions)
}

fn unswitched(graph: &mut Graph, list: &[NodeId], found: &[Candidate]) -> Result<NodeId> {
    let mut instructions = Instructions::default();
    let mut position = 0;
    for candidate in found {
        instructions.copy_all(graph, &list[position..candidate.start])?;
        instructions.copy_all(graph, &candidate.invariant)?;
        instructions.copy_all(graph, &candidate.condition)?;
        position = candidate.end + 1;
        both(graph, &mut instructions, &list[candidate.start..position], candidate)?;
    }
    instructions.copy_all(graph, &list[position..])?;
    instructions.linear(graph)
}

/// Emits two versions of a loop in blocks of opposite conditions.
fn both(graph: &mut Graph, instructions: &mut Instructions, body: &[NodeId], candidate: &Candidate) -> Result<()> {
    let Some(&condition) = candidate.condition.last() else { return Ok(()) };
    let holds = instructions.now(condition);
    // If not all masks are open, nothing is known about any single one.
    let is_single = candidate.known == [condition];
    let known = |outcome: bool| -> FxHashMap<NodeId, bool> {
        let known = candidate.known.iter().filter(|_| outcome || is_single);
        known.map(|&gate| (gate, outcome)).collect()
    };
    let has_effect = |outcome: &bool| Version { known: known(*outcome), after: None }.has_effect(graph, body);
    let outcomes: SmallVec<[bool; 2]> = [true, false].into_iter().filter(has_effect).collect();
    let after = in_blocks(graph, instructions, holds, &outcomes, |graph, instructions, outcome, after| {
        Version { known: known(outcome), after }.emit(graph, instructions, body)
    })?;
    let Some(after) = after else { return Ok(()) };
    // Whatever depends on an effect of the loop now depends on both versions.
    instructions.replace_effects(graph, body, after);
    Ok(())
}
