//! Versions of a loop, or of its body, in which the outcome of some gates is known.

use super::Instructions;
use crate::lower::fold::truth;
use crate::lower::live::next_range_id;
use rustc_hash::{FxHashMap, FxHashSet};
use tinyspec_ir::{Arg, Builder, DType, Graph, NodeId, Op, Result};

/// A version of a loop or of its body.
pub(super) struct Version {
    /// Gates whose value is known in it.
    pub known: FxHashMap<NodeId, bool>,
    /// The last instruction of the version before.
    pub after: Option<NodeId>,
}

impl Version {
    /// Emits a loop and returns its End.
    pub fn emit(&self, graph: &mut Graph, instructions: &mut Instructions, body: &[NodeId]) -> Result<NodeId> {
        let (range, end) = (body[0], body[body.len() - 1]);
        match self.after {
            Some(_) => own_range(graph, instructions, range)?,
            None => drop(instructions.copy(graph, range)?),
        }
        self.emit_body(graph, instructions, &body[1..])?;
        Ok(instructions.now(end))
    }

    /// Emits the inside of a loop, and the loop's End if it is part of `body`.
    pub fn emit_body(&self, graph: &mut Graph, instructions: &mut Instructions, body: &[NodeId]) -> Result<()> {
        if let Some(after) = self.after {
            separate(graph, instructions, body, after)?;
        }
        // The enclosing Ifs whose condition is known. Their If and Endif are dropped, and the body too where the condition is false.
        let mut decided: Vec<(NodeId, bool)> = Vec::new();
        for (position, &node) in body.iter().enumerate() {
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
            if op == Op::End && (self.leaves_out(graph, body) || instructions.is_dropped(graph.source(node, 0))) {
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
        Ok(())
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
    pub fn has_effect(&self, graph: &Graph, body: &[NodeId]) -> bool {
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
    pub fn is_open(&self, graph: &Graph, gate: NodeId) -> Option<bool> {
        if let Some(&known) = self.known.get(&gate) {
            return Some(known);
        }
        match (graph.op(gate), graph.sources(gate)) {
            (Op::And, &[a, b]) => match (self.is_open(graph, a), self.is_open(graph, b)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            (Op::Expand | Op::After | Op::Index, &[value, ..]) => self.is_open(graph, value),
            _ => None,
        }
    }
}

/// Emits the condition under which the other version runs.
fn opposite(graph: &mut Graph, instructions: &mut Instructions, condition: NodeId) -> Result<NodeId> {
    let one = truth(graph, true);
    instructions.push(graph, Op::CmpNe, &[condition, one], Arg::None)
}

/// Emits a version for each outcome of a condition, in blocks of opposite conditions; returns a node that depends on
/// all effects. If an enclosing block has decided the condition, only that version is emitted, without a block.
pub(super) fn in_blocks(
    graph: &mut Graph,
    instructions: &mut Instructions,
    holds: NodeId,
    outcomes: &[bool],
    mut emit: impl FnMut(&mut Graph, &mut Instructions, bool, Option<NodeId>) -> Result<NodeId>,
) -> Result<Option<NodeId>> {
    let fails = opposite(graph, instructions, holds)?;
    let before = instructions.replacements();
    let settled = instructions.outcome(graph, holds);
    let mut after = None;
    for &outcome in outcomes.iter().filter(|&&outcome| settled.is_none_or(|settled| settled == outcome)) {
        let tested = if outcome { holds } else { fails };
        let block = match settled {
            Some(_) => None,
            None => Some(instructions.push(graph, Op::If, &[tested], Arg::None)?),
        };
        after = Some(emit(graph, instructions, outcome, after)?);
        if let Some(block) = block {
            instructions.push(graph, Op::Endif, &[block], Arg::None)?;
        }
        instructions.restore(before.clone());
    }
    Ok(after)
}

/// Gives a further version of a loop a Range of its own.
fn own_range(graph: &mut Graph, instructions: &mut Instructions, range: NodeId) -> Result<()> {
    let Arg::Range { axis, .. } = *graph.arg(range) else { return Ok(()) };
    let bound = instructions.now(graph.source(range, 0));
    let arg = Arg::Range { id: next_range_id(graph, graph.nodes()), axis };
    let own = instructions.push(graph, Op::Range, &[bound], arg)?;
    instructions.replace(range, own);
    Ok(())
}

/// Keeps the nodes of a further version apart from those of the one before: it accesses memory after `after`.
fn separate(graph: &mut Graph, instructions: &mut Instructions, body: &[NodeId], after: NodeId) -> Result<()> {
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

/// Removes a store; nodes that depend on it inherit the dependences of its address.
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
