//! Unswitches innermost loops: a loop-invariant condition is tested once, in front of two versions of the loop. Masked loads keep
//! the processor from running ahead, so the loop of a tile whose last columns may lie beyond the matrix gets a version without
//! masks, which all tiles but the last take. Packing on first use is tested once per tile rather than in each trip.

use super::Instructions;
use crate::lower::fold::truth;
use crate::lower::live::{next_range_id, trips};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::smallvec;
use tinyspec_backends::Target;
use tinyspec_ir::address::register;
use tinyspec_ir::instructions::{condition, greatest_bound, negated};
use tinyspec_ir::{Arg, AxisType, Builder, DType, Graph, NodeId, Op, Result, dim};

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
/// What [`tinyspec_ir::derive()`] refuses: then this pass is wrong.
pub fn unswitch(graph: &mut Graph, mut linear: NodeId, target: &Target) -> Result<NodeId> {
    if target.workgroups.is_some() {
        return Ok(linear);
    }
    // A version may be unswitched again by another condition.
    loop {
        let list = graph.sources(linear).to_vec();
        let found = candidates(graph, &list)?;
        if found.is_empty() {
            return Ok(linear);
        }
        linear = unswitched(graph, &list, &found)?;
    }
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
                // The masked version still has its masks.
                let is_decided = |own: NodeId| decided.iter().any(|&(holds, fails)| holds == own || fails == Some(own));
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
        if matches!(graph.arg(range), Arg::Range { axis: AxisType::Global | AxisType::Thread, .. }) {
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
    let one = truth(graph, true);
    let fails = instructions.push(graph, Op::CmpNe, &[holds, one], Arg::None)?;
    let before = instructions.replacements();
    let mut after = None;
    for (tested, outcome) in [(holds, true), (fails, false)] {
        let version = Version { known: known(outcome), after };
        if !version.has_effect(graph, body) {
            continue;
        }
        let block = instructions.push(graph, Op::If, &[tested], Arg::None)?;
        after = Some(version.emit(graph, instructions, body)?);
        instructions.push(graph, Op::Endif, &[block], Arg::None)?;
        instructions.restore(before.clone());
    }
    let Some(after) = after else { return Ok(()) };
    // Whatever depends on an effect of the loop now depends on both versions.
    instructions.replace_effects(graph, body, after);
    Ok(())
}

/// A version of a loop.
struct Version {
    /// Gates whose value is known in it.
    known: FxHashMap<NodeId, bool>,
    /// The End of the version before.
    after: Option<NodeId>,
}

impl Version {
    /// Emits a loop and returns its End.
    fn emit(&self, graph: &mut Graph, instructions: &mut Instructions, body: &[NodeId]) -> Result<NodeId> {
        let (range, end) = (body[0], body[body.len() - 1]);
        match self.after {
            Some(after) => separate(graph, instructions, body, after)?,
            None => drop(instructions.copy(graph, range)?),
        }
        // The open blocks whose condition is known: their If and Endif are dropped, and all of one that is never entered.
        let mut decided: Vec<(NodeId, bool)> = Vec::new();
        for (position, &node) in body.iter().enumerate().skip(1) {
            let op = graph.op(node);
            if op == Op::Endif && decided.last().is_some_and(|block| graph.source(node, 0) == block.0) {
                let inside = body[..position].iter().rposition(|&it| it == graph.source(node, 0));
                let stores = self.stores(graph, &body[inside.unwrap_or(position)..position]);
                stand_in(graph, instructions, node, &stores)?;
                decided.pop();
                continue;
            }
            if decided.iter().any(|block| !block.1) {
                match op {
                    Op::Store | Op::AtomicAdd => left_out(graph, instructions, node)?,
                    Op::Group => drop(instructions.copy(graph, node)?),
                    _ => instructions.drop(node),
                }
                continue;
            }
            if node == end && (self.leaves_out(graph, body) || instructions.is_dropped(graph.source(end, 0))) {
                self.end(graph, instructions, body)?;
                continue;
            }
            let gate = match op {
                Op::If => Some(graph.source(node, 0)),
                Op::Load | Op::Store | Op::AtomicAdd => graph.sources(node).get(2).copied(),
                _ => None,
            };
            match (op, gate.and_then(|gate| self.is_open(graph, gate))) {
                (_, None) => drop(instructions.copy(graph, node)?),
                (Op::If, Some(holds)) => {
                    instructions.drop(node);
                    decided.push((node, holds));
                }
                (Op::Load, Some(false)) => {
                    let alt = closed(graph, instructions, node)?;
                    instructions.replace(node, alt);
                }
                (_, Some(false)) => left_out(graph, instructions, node)?,
                (op, Some(true)) => ungated(graph, instructions, node, op)?,
            }
        }
        Ok(instructions.now(end))
    }

    /// Emits the loop's End, with the remaining stores as its effects.
    fn end(&self, graph: &mut Graph, instructions: &mut Instructions, body: &[NodeId]) -> Result<()> {
        let end = body[body.len() - 1];
        let effect = graph.source(end, 0);
        stand_in(graph, instructions, effect, &self.stores(graph, body))?;
        let sources = [instructions.now(effect), instructions.now(graph.source(end, 1))];
        instructions.copy_as(graph, end, Op::End, &sources, Arg::None).map(drop)
    }

    /// Whether it lacks a store of the loop.
    fn leaves_out(&self, graph: &Graph, body: &[NodeId]) -> bool {
        let all = body.iter().filter(|&&node| matches!(graph.op(node), Op::Store | Op::AtomicAdd)).count();
        self.stores(graph, body).len() < all
    }

    /// Whether a store remains in it.
    fn has_effect(&self, graph: &Graph, body: &[NodeId]) -> bool {
        !self.stores(graph, body).is_empty()
    }

    /// The stores of the loop that remain.
    fn stores(&self, graph: &Graph, body: &[NodeId]) -> Vec<NodeId> {
        let mut closed = None;
        let is_left = |&node: &NodeId| match (graph.op(node), graph.sources(node)) {
            (Op::If, &[gate, ..]) if closed.is_none() && self.is_open(graph, gate) == Some(false) => {
                closed = Some(node);
                false
            }
            (Op::Endif, &[block, ..]) if closed == Some(block) => {
                closed = None;
                false
            }
            (Op::Store | Op::AtomicAdd, sources) => {
                closed.is_none() && sources.get(2).and_then(|&gate| self.is_open(graph, gate)) != Some(false)
            }
            _ => false,
        };
        body.iter().copied().filter(is_left).collect()
    }

    /// Whether a gate is open, if that is known.
    fn is_open(&self, graph: &Graph, gate: NodeId) -> Option<bool> {
        if let Some(&known) = self.known.get(&gate) {
            return Some(known);
        }
        match (graph.op(gate), graph.sources(gate)) {
            (Op::And, &[a, b]) => match (self.is_open(graph, a), self.is_open(graph, b)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            (Op::Expand | Op::After, &[value, ..]) => self.is_open(graph, value),
            _ => None,
        }
    }
}

/// Keeps the nodes of a second version apart from those of the first: it gets a Range of its own, and accesses memory after `after`.
fn separate(graph: &mut Graph, instructions: &mut Instructions, body: &[NodeId], after: NodeId) -> Result<()> {
    let range = body[0];
    if let Arg::Range { axis, .. } = *graph.arg(range) {
        let bound = instructions.now(graph.source(range, 0));
        let own = instructions.push(
            graph,
            Op::Range,
            &[bound],
            Arg::Range { id: next_range_id(graph, graph.nodes()), axis },
        )?;
        instructions.replace(range, own);
    }
    let inside: FxHashSet<NodeId> = body.iter().copied().collect();
    let mut places: Vec<NodeId> = Vec::new();
    for &access in body.iter().filter(|&&node| matches!(graph.op(node), Op::Load | Op::Store | Op::AtomicAdd)) {
        let mut place = graph.source(access, 0);
        while inside.contains(&place) && matches!(graph.op(place), Op::After | Op::Index | Op::Shrink) {
            place = graph.source(place, 0);
        }
        if !places.contains(&place) {
            places.push(place);
        }
    }
    for place in places {
        let now = instructions.now(place);
        let own = instructions.push(graph, Op::After, &[now, after], Arg::None)?;
        instructions.replace(place, own);
    }
    Ok(())
}

/// Leaves out a store; whatever depends on it inherits the dependences of its place.
fn left_out(graph: &mut Graph, instructions: &mut Instructions, store: NodeId) -> Result<()> {
    let (mut place, mut before) = (graph.source(store, 0), Vec::new());
    while matches!(graph.op(place), Op::After | Op::Index | Op::Shrink) {
        let sources = graph.sources(place);
        if graph.op(place) == Op::After {
            before.extend(sources[1..].iter().copied().filter(|&effect| graph.dtype(effect) == DType::Void));
        }
        place = sources[0];
    }
    stand_in(graph, instructions, store, &before)
}

/// Lets others stand in for an effect that is left out.
fn stand_in(graph: &mut Graph, instructions: &mut Instructions, effect: NodeId, others: &[NodeId]) -> Result<()> {
    let others = others.iter().copied().filter(|&other| !instructions.is_dropped(other));
    let others: Vec<NodeId> = others.map(|other| instructions.now(other)).collect();
    match others[..] {
        [] => instructions.drop(effect),
        [other] => instructions.replace(effect, other),
        _ => {
            let all = instructions.push(graph, Op::Group, &others, Arg::None)?;
            instructions.replace(effect, all);
        }
    }
    Ok(())
}

/// The value of a load while its gate is closed.
fn closed(graph: &mut Graph, instructions: &mut Instructions, load: NodeId) -> Result<NodeId> {
    let alt = instructions.now(graph.source(load, 1));
    let shape = graph.props(load).shape.clone();
    if graph.props(alt).shape == shape {
        return Ok(alt);
    }
    let shape = graph.shape(&shape)?;
    instructions.push(graph, Op::Expand, &[alt, shape], Arg::None)
}

/// Emits an access without its gate.
fn ungated(graph: &mut Graph, instructions: &mut Instructions, node: NodeId, op: Op) -> Result<()> {
    let kept = if op == Op::Load { 1 } else { 2 };
    let sources: Vec<NodeId> = graph.sources(node)[..kept].iter().map(|&source| instructions.now(source)).collect();
    let arg = graph.arg(node).clone();
    let made = graph.add(op, &sources, arg.clone())?;
    // If the sequence contains the same access without a gate, they must stay two nodes.
    match instructions.contains(made) {
        true => instructions.copy(graph, node).map(drop),
        false => instructions.copy_as(graph, node, op, &sources, arg).map(drop),
    }
}
