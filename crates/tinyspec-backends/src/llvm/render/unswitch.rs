//! Loops that are there twice. Loads under masks keep the processor from reading far ahead, so of a loop over columns or rows,
//! the last of which lie beyond a matrix, all but the last few go through one without masks. And what happens only in some
//! trips of the loops around, as a copy that the first trip makes, is asked for once and not in each trip.

use super::emit::{Result, Value};
use super::{NodeId, Op, Renderer};
use llvm_sys::LLVMOpcode::LLVMAnd;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use tinyspec_ir::address::register;
use tinyspec_ir::{Builder, DType, dim};

/// Instructions of a loop that is worth a second copy.
const LARGEST: usize = 512;
/// Trips from which on the choice costs nothing.
const LEAST_TRIPS: i128 = 8;
/// Conditions that a loop is copied for: each doubles its instructions.
const MOST_CONDITIONS: usize = 2;

/// A loop, and the gates of its accesses that it does not change.
struct Unswitched {
    end: usize,
    /// Masks of loads, and conditions of single ones.
    gates: Vec<NodeId>,
    /// Of effects.
    condition: Option<NodeId>,
    invariant: Vec<NodeId>,
}

impl Renderer<'_, '_> {
    /// Instructions in their order.
    pub(super) fn sequence(&mut self, instructions: &[NodeId]) -> Result<()> {
        let mut position = 0;
        while let Some(&node) = instructions.get(position) {
            match self.unswitched(&instructions[position..]) {
                Some(found) => {
                    let after = position + found.end + 1;
                    self.both_ways(&instructions[position..after], &found)?;
                    position = after;
                }
                None => match self.unrolled(&instructions[position..]) {
                    Some((whole, times)) => {
                        self.unroll(whole, times)?;
                        position += whole.len();
                    }
                    None => {
                        self.instruction(node)?;
                        position += 1;
                    }
                },
            }
        }
        Ok(())
    }

    /// The innermost loop that begins here, if it has masks of its own columns.
    fn unswitched(&self, instructions: &[NodeId]) -> Option<Unswitched> {
        let graph = self.graph;
        if self.is_gpu() {
            return None;
        }
        let (&range, rest) = instructions.split_first().filter(|(first, _)| graph.op(**first) == Op::Range)?;
        let trips = graph.as_int(graph.source(range, 0))?;
        let mut changing: FxHashSet<NodeId> = FxHashSet::from_iter([range]);
        let (mut gates, mut conditions, mut invariant) = (Vec::new(), Vec::new(), Vec::new());
        for (position, &node) in rest.iter().enumerate().take(LARGEST) {
            let sources = graph.sources(node);
            match graph.op(node) {
                Op::End => {
                    let condition = conditions.first().copied().filter(|_| conditions.len() <= MOST_CONDITIONS);
                    let is_worth_it = trips >= LEAST_TRIPS && (condition.is_some() || !gates.is_empty());
                    return is_worth_it.then_some(Unswitched { end: position + 1, gates, condition, invariant });
                }
                Op::Range => return None,
                Op::If | Op::Store if let Some(gate) = self.unknown(node).filter(|gate| !changing.contains(gate)) => {
                    if !conditions.contains(&gate) {
                        conditions.push(gate);
                    }
                    changing.insert(node);
                }
                Op::Load | Op::Store | Op::AtomicAdd | Op::After | Op::If | Op::Endif => {
                    changing.insert(node);
                }
                _ if sources.iter().any(|source| changing.contains(source)) => {
                    changing.insert(node);
                }
                _ => invariant.push(node),
            }
            if let (Op::Load, &[_, _, gate]) = (graph.op(node), sources)
                && !changing.contains(&gate)
                && !gates.contains(&gate)
                && self.is_open(gate).is_none()
                && (self.lanes_of_mask(gate).is_some() || graph.props(gate).shape.is_empty())
            {
                gates.push(gate);
            }
        }
        None
    }

    /// Lanes of a vector of bools that fill an integer.
    fn lanes_of_mask(&self, gate: NodeId) -> Option<i64> {
        let shape = dim::static_shape(&self.graph.props(gate).shape)?;
        shape.first().copied().filter(|lanes| [8, 16, 32, 64].contains(lanes))
    }

    /// The condition of a block, or one of those of a Store to memory.
    fn unknown(&self, node: NodeId) -> Option<NodeId> {
        let sources = self.graph.sources(node);
        let mut pending = match (self.graph.op(node), sources) {
            (Op::If, &[condition]) => vec![condition],
            (Op::Store, &[place, _, gate]) if register(self.graph, place).is_none() => vec![gate],
            _ => return None,
        };
        while let Some(gate) = pending.pop() {
            match self.graph.op(gate) {
                Op::And | Op::Expand => pending.extend(self.graph.sources(gate).iter().filter(|&&it| self.is_bool(it))),
                Op::Const => {}
                _ if self.graph.props(gate).shape.is_empty() && !self.known.contains_key(&gate) => return Some(gate),
                _ => {}
            }
        }
        None
    }

    fn is_bool(&self, node: NodeId) -> bool {
        self.graph.dtype(node) == DType::Bool
    }

    /// What is known of a gate.
    pub(super) fn is_open(&self, gate: NodeId) -> Option<bool> {
        if self.open.contains(&gate) {
            return Some(true);
        }
        match (self.graph.op(gate), self.graph.sources(gate)) {
            (Op::And, &[a, b]) => match (self.is_open(a), self.is_open(b)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            (Op::Expand, &[value, _]) => self.is_open(value),
            _ => self.known.get(&gate).copied(),
        }
    }

    fn both_ways(&mut self, instructions: &[NodeId], found: &Unswitched) -> Result<()> {
        for &node in &found.invariant {
            self.instruction(node)?;
        }
        if let Some(condition) = found.condition {
            let holds = self.value(condition)?;
            let then = |renderer: &mut Self| renderer.knowing(condition, true, instructions);
            let otherwise = |renderer: &mut Self| renderer.knowing(condition, false, instructions);
            return self.branched(holds, then, otherwise);
        }
        let mut all = None;
        for &gate in &found.gates {
            let open = self.all(gate)?;
            all = Some(match all {
                Some(all) => self.emit.binary(LLVMAnd, all, open)?,
                None => open,
            });
        }
        let Some(all) = all else { return Ok(()) };
        let whole = |renderer: &mut Self| {
            renderer.open.extend(&found.gates);
            match renderer.unrolled(instructions) {
                Some((_, times)) => renderer.unroll(instructions, times)?,
                None => instructions.iter().try_for_each(|&node| renderer.instruction(node))?,
            }
            renderer.open.clear();
            Ok(())
        };
        let masked = |renderer: &mut Self| instructions.iter().try_for_each(|&node| renderer.instruction(node));
        self.branched(all, whole, masked)
    }

    /// The instructions where a condition holds, or where it does not: its blocks are open, or they are not there.
    fn knowing(&mut self, condition: NodeId, holds: bool, instructions: &[NodeId]) -> Result<()> {
        let mut rest = Vec::with_capacity(instructions.len());
        let mut inside = None;
        for &node in instructions {
            match (self.graph.op(node), self.graph.sources(node)) {
                (Op::If, &[own]) if own == condition => inside = Some(node),
                (Op::Endif, &[block]) if Some(block) == inside => inside = None,
                _ if holds || inside.is_none() => rest.push(node),
                _ => {}
            }
        }
        self.known.insert(condition, holds);
        self.sequence(&rest)?;
        self.known.remove(&condition);
        Ok(())
    }

    /// One of two ways, after which registers hold what the way that was taken has left.
    fn branched(
        &mut self,
        condition: Value,
        then: impl FnOnce(&mut Self) -> Result<()>,
        otherwise: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let (first, second, after) = (self.emit.new_block(), self.emit.new_block(), self.emit.new_block());
        self.emit.branch(condition, first, second)?;
        let (values, addresses, whole) = (self.values.clone(), self.addresses.clone(), self.whole.clone());
        let before = self.registers.snapshot();
        self.emit.enter(first);
        then(self)?;
        let from_first = self.emit.block();
        self.emit.jump(after);
        // What was computed on the one way does not exist on the other.
        self.values.clone_from(&values);
        self.addresses = addresses.clone();
        self.whole.clone_from(&whole);
        let one = self.registers.restore(before);
        self.emit.enter(second);
        otherwise(self)?;
        let from_second = self.emit.block();
        self.emit.jump(after);
        self.values = values;
        self.addresses = addresses;
        self.whole = whole;
        self.emit.enter(after);
        let two = self.registers.restore(BTreeMap::new());
        for (slot, value) in one {
            let Some(&other) = two.get(&slot) else { continue };
            let mut joined = value;
            if other != value {
                joined = self.emit.phi(value.kind, value.lanes);
                self.emit.arrive(joined, value, from_first)?;
                self.emit.arrive(joined, other, from_second)?;
            }
            self.registers.write(slot, joined);
        }
        Ok(())
    }
}
