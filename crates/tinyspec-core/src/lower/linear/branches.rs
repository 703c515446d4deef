//! Branches around expensive sides of Wheres. A Where evaluates both of its sides; a branch on the superword condition skips a side that
//! no lane selects (J. Shin, "Introducing control flow into vectorized code", PACT 2007). Sines then pay for the reduction of huge
//! arguments only where there are some, and where all lanes need the same one of two series, only that one is evaluated.

use super::Instructions;
use crate::lower::fold::{identity, truth};
use crate::lower::select::next_register;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BinaryHeap;
use tinyspec_backends::Target;
use tinyspec_ir::address::behind_after;
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::instructions::{lanes, negated};
use tinyspec_ir::{AddrSpace, Arg, Builder, DType, Graph, NodeId, Op, Result};

/// The cost of a mispredicted branch in machine instructions: about 20 cycles, two instructions each. Cheaper sides are always
/// evaluated.
const MISPREDICTED: usize = 40;
/// The cost of a division or a square root in machine instructions.
const DIVISION: usize = 8;

/// Wheres with the same condition, which share one branch per side.
struct Choice {
    /// The innermost Range or If around them.
    block: Option<NodeId>,
    condition: NodeId,
    /// The Wheres in program order, each with the open Ranges that it depends on. Whatever uses one of them before the last can be
    /// deferred.
    selects: Vec<(NodeId, SmallVec<[NodeId; 4]>)>,
    /// Values that use a Where and precede the last one: they are deferred until after the branch.
    deferred: Vec<NodeId>,
    /// The values that only this side needs, in program order; none if the side gets no branch.
    skipped: [Vec<NodeId>; 2],
}

/// Puts branches around expensive sides of Wheres.
///
/// # Errors
/// When [`tinyspec_ir::derive()`] rejects a node, which would be a bug in this pass.
pub fn branches(graph: &mut Graph, linear: NodeId, target: &Target) -> Result<NodeId> {
    let list = graph.sources(linear).to_vec();
    let choices = Code::new(graph, target, &list).choices();
    if choices.is_empty() {
        return Ok(linear);
    }
    let mut emission = Emission::new(graph, choices);
    emission.emit(graph, &list, None)?;
    emission.instructions.linear(graph)
}

/// An instruction sequence with its def-use chains.
struct Code<'a> {
    graph: &'a Graph,
    target: &'a Target,
    list: &'a [NodeId],
    /// The innermost enclosing Range or If of each instruction.
    blocks: Vec<Option<NodeId>>,
    positions: FxHashMap<NodeId, usize>,
    users: FxHashMap<NodeId, SmallVec<[NodeId; 4]>>,
}

impl Code<'_> {
    fn new<'a>(graph: &'a Graph, target: &'a Target, list: &'a [NodeId]) -> Code<'a> {
        let (mut blocks, mut open) = (Vec::with_capacity(list.len()), Vec::new());
        let mut code = Code {
            graph,
            target,
            list,
            blocks: Vec::new(),
            positions: FxHashMap::default(),
            users: FxHashMap::default(),
        };
        // Few kernels have an expensive side; the others are done.
        if !code.has_expensive_side() {
            return code;
        }
        for (position, &node) in list.iter().enumerate() {
            if matches!(graph.op(node), Op::End | Op::Endif) {
                open.pop();
            }
            blocks.push(open.last().copied());
            if matches!(graph.op(node), Op::Range | Op::If) {
                open.push(node);
            }
            code.positions.insert(node, position);
            for &source in graph.sources(node) {
                code.users.entry(source).or_default().push(node);
            }
        }
        code.blocks = blocks;
        code
    }

    /// Whether a side of a Where may be expensive enough: an upper bound, which counts shared subexpressions once per use.
    fn has_expensive_side(&self) -> bool {
        let mut costs: FxHashMap<NodeId, usize> = FxHashMap::default();
        for &node in self.list {
            let mut below = 0usize;
            for (slot, source) in self.graph.sources(node).iter().enumerate() {
                let cost = costs.get(source).copied().unwrap_or(0);
                if slot > 0 && cost >= MISPREDICTED && self.is_select(node) {
                    return true;
                }
                below = below.saturating_add(cost);
            }
            if self.is_pure(node) {
                costs.insert(node, below.saturating_add(self.cost(node)));
            }
        }
        false
    }

    fn is_select(&self, node: NodeId) -> bool {
        self.graph.op(node) == Op::Where && self.graph.dtype(node) != DType::Bool
    }

    /// Whether it is a function of its sources alone, without side effects or memory accesses.
    fn is_pure(&self, node: NodeId) -> bool {
        let graph = self.graph;
        match graph.op(node) {
            Op::Custom => false,
            Op::Index | Op::Shrink => {
                !matches!(graph.op(behind_after(graph, graph.source(node, 0))), Op::Param | Op::Buffer)
            }
            Op::Stack => graph.dtype(node) != DType::Index,
            Op::Bitcast | Op::Expand | Op::Reshape | Op::Reduce => true,
            Op::Ins => Instruction::hint_of(graph, node).is_none(),
            op => op.is_elementwise(),
        }
    }

    /// Machine instructions of a value.
    fn cost(&self, node: NodeId) -> usize {
        let each = match self.graph.op(node) {
            Op::Div | Op::Sqrt | Op::Recip | Op::Mod | Op::Idiv => DIVISION,
            Op::Ins => 1,
            op => op.is_elementwise() as usize,
        };
        let lanes = lanes(self.graph, node).max(1) as usize;
        each * match self.target.workgroups {
            Some(_) => lanes,
            None => (lanes * self.graph.dtype(node).size()).div_ceil(self.target.vector_bytes.max(1)),
        }
    }

    /// Selects the choices that get a branch, most expensive first. Choices do not overlap. A nested choice is accepted only if it costs
    /// at most half of the enclosing side, so that a long chain of nested Wheres gets few branches.
    fn choices(&self) -> Vec<Choice> {
        let mut found: Vec<([usize; 2], Choice)> = Vec::new();
        for mut choice in self.groups() {
            let sides = [0, 1].map(|side| self.skipped(&choice, side));
            let mut costs = sides.each_ref().map(|side| side.iter().map(|&node| self.cost(node)).sum::<usize>());
            for ((cost, side), skipped) in costs.iter_mut().zip(sides).zip(&mut choice.skipped) {
                match *cost >= MISPREDICTED {
                    true => *skipped = side,
                    false => *cost = 0,
                }
            }
            if costs != [0; 2] {
                found.push((costs, choice));
            }
        }
        let total = |costs: [usize; 2]| costs.iter().sum::<usize>();
        found.sort_by_key(|(costs, _)| std::cmp::Reverse(total(*costs)));
        let (mut taken, mut taken_costs): (Vec<Choice>, Vec<[usize; 2]>) = (Vec::new(), Vec::new());
        // The innermost side that a value belongs to, and the Wheres that already have a branch.
        let mut owners: FxHashMap<NodeId, (usize, usize)> = FxHashMap::default();
        let mut selects: FxHashSet<NodeId> = FxHashSet::default();
        for (costs, choice) in found {
            let owner = choice.last().and_then(|last| owners.get(&last)).copied();
            let is_own = |node: NodeId| owners.get(&node).copied() == owner;
            let in_sides = |node: &NodeId| is_own(*node) && !selects.contains(node);
            let is_small = owner.is_none_or(|(around, side)| 2 * total(costs) <= taken_costs[around][side]);
            if !is_small || !choice.selects().all(is_own) || !choice.skipped.iter().flatten().all(in_sides) {
                continue;
            }
            for (side, nodes) in choice.skipped.iter().enumerate() {
                owners.extend(nodes.iter().map(|&node| (node, (taken.len(), side))));
            }
            selects.extend(choice.selects());
            taken.push(choice);
            taken_costs.push(costs);
        }
        taken
    }

    /// Groups the Wheres of each block by condition. A group ends where something that cannot be deferred uses one of its Wheres.
    fn groups(&self) -> Vec<Choice> {
        let mut groups: Vec<Choice> = Vec::new();
        let mut open: FxHashMap<(Option<NodeId>, NodeId), usize> = FxHashMap::default();
        // The groups that a value depends on, and the open Ranges that it depends on, one bit per nesting level.
        let mut needs: FxHashMap<NodeId, SmallVec<[usize; 2]>> = FxHashMap::default();
        let mut depends: FxHashMap<NodeId, u64> = FxHashMap::default();
        let mut ranges: Vec<NodeId> = Vec::new();
        for (&node, &block) in self.list.iter().zip(&self.blocks) {
            let mut needed: SmallVec<[usize; 2]> = SmallVec::new();
            let mut mask = 0;
            for source in self.graph.sources(node) {
                needed.extend(needs.get(source).into_iter().flatten().copied());
                mask |= depends.get(source).copied().unwrap_or(0);
            }
            mask &= (1u64 << ranges.len().min(63)) - 1;
            needed.sort_unstable();
            needed.dedup();
            let is_select = self.is_select(node);
            let can_wait = self.is_pure(node) && !is_select;
            needed.retain(|&mut group| {
                let key = (groups[group].block, groups[group].condition);
                let is_open = key.0 == block && open.get(&key) == Some(&group);
                match (can_wait, is_open) {
                    (true, true) => groups[group].deferred.push(node),
                    _ if open.get(&key) == Some(&group) => drop(open.remove(&key)),
                    _ => {}
                }
                can_wait && is_open
            });
            if is_select {
                let key = (block, self.graph.source(node, 0));
                let group = *open.entry(key).or_insert_with(|| {
                    groups.push(Choice::new(key.0, key.1));
                    groups.len() - 1
                });
                let loops = ranges.iter().enumerate().filter(|(depth, _)| mask >> depth & 1 == 1);
                groups[group].selects.push((node, loops.map(|(_, &range)| range).collect()));
                needed.push(group);
            }
            match self.graph.op(node) {
                Op::Range => {
                    mask |= 1 << ranges.len().min(63);
                    ranges.push(node);
                }
                Op::End => {
                    ranges.pop();
                    mask &= (1 << ranges.len().min(63)) - 1;
                }
                _ => {}
            }
            if mask != 0 {
                depends.insert(node, mask);
            }
            if !needed.is_empty() {
                needs.insert(node, needed);
            }
        }
        for group in &mut groups {
            let last = group.last().and_then(|last| self.positions.get(&last));
            group.deferred.retain(|node| self.positions.get(node) < last);
        }
        groups
    }

    /// The values that only this side of the Wheres needs, in program order.
    fn skipped(&self, choice: &Choice, side: usize) -> Vec<NodeId> {
        let (mut skipped, mut order) = (FxHashSet::default(), Vec::new());
        let last = choice.last().and_then(|last| self.positions.get(&last));
        let Some(&last) = last else { return order };
        // Backwards, so that all users of a value are seen before it.
        let starts = choice.selects().map(|select| self.graph.source(select, 1 + side));
        let mut pending: BinaryHeap<usize> = starts.filter_map(|node| self.positions.get(&node).copied()).collect();
        while let Some(position) = pending.pop() {
            while pending.peek() == Some(&position) {
                pending.pop();
            }
            let node = self.list[position];
            if self.blocks[position] != self.blocks[last] || !self.is_pure(node) {
                continue;
            }
            let is_own = |user: &NodeId| {
                let mut slots = self.graph.sources(*user).iter().enumerate().filter(|(_, source)| **source == node);
                skipped.contains(user) || choice.has(*user) && slots.all(|(slot, _)| slot == 1 + side)
            };
            if self.users.get(&node).is_some_and(|users| users.iter().all(is_own)) {
                skipped.insert(node);
                order.push(node);
                pending.extend(self.graph.sources(node).iter().filter_map(|source| self.positions.get(source)));
            }
        }
        order.reverse();
        order
    }
}

impl Choice {
    fn new(block: Option<NodeId>, condition: NodeId) -> Choice {
        Choice { block, condition, selects: Vec::new(), deferred: Vec::new(), skipped: [vec![], vec![]] }
    }

    fn selects(&self) -> impl Iterator<Item = NodeId> {
        self.selects.iter().map(|&(select, _)| select)
    }

    fn has(&self, node: NodeId) -> bool {
        self.selects().any(|select| select == node)
    }

    fn last(&self) -> Option<NodeId> {
        self.selects().last()
    }
}

/// Builds the new sequence.
struct Emission {
    instructions: Instructions,
    choices: Vec<Choice>,
    /// The innermost choice and side that a value belongs to.
    sides: FxHashMap<NodeId, (usize, usize)>,
    /// The choice of a Where.
    selects: FxHashMap<NodeId, usize>,
    /// The choices whose branches a deferred value waits for.
    waits: FxHashMap<NodeId, Vec<usize>>,
    done: Vec<bool>,
    next_register: u32,
}

impl Emission {
    fn new(graph: &Graph, choices: Vec<Choice>) -> Emission {
        let (mut sides, mut selects) = (FxHashMap::default(), FxHashMap::default());
        let mut waits: FxHashMap<NodeId, Vec<usize>> = FxHashMap::default();
        // An enclosing choice precedes those inside of it, which overwrite its entries.
        for (index, choice) in choices.iter().enumerate() {
            for (side, nodes) in choice.skipped.iter().enumerate() {
                sides.extend(nodes.iter().map(|&node| (node, (index, side))));
            }
            selects.extend(choice.selects().map(|node| (node, index)));
            choice.deferred.iter().for_each(|&node| waits.entry(node).or_default().push(index));
        }
        Emission {
            instructions: Instructions::default(),
            done: vec![false; choices.len()],
            choices,
            sides,
            selects,
            waits,
            next_register: next_register(graph),
        }
    }

    /// Emits those of some instructions that belong to the given side of a choice, or to none.
    fn emit(&mut self, graph: &mut Graph, nodes: &[NodeId], inside: Option<(usize, usize)>) -> Result<()> {
        for &node in nodes {
            let waits = self.waits.get(&node).is_some_and(|choices| choices.iter().any(|&choice| !self.done[choice]));
            if self.sides.get(&node).copied() != inside || waits {
                continue;
            }
            match self.selects.get(&node) {
                Some(&choice) if self.choices[choice].last() == Some(node) => {
                    self.blocks(graph, choice)?;
                    self.done[choice] = true;
                    let deferred = self.choices[choice].deferred.clone();
                    self.emit(graph, &deferred, inside)?;
                }
                Some(_) => {}
                None => drop(self.instructions.copy(graph, node)?),
            }
        }
        Ok(())
    }

    /// Replaces the Wheres of a choice by registers that conditional blocks store to.
    fn blocks(&mut self, graph: &mut Graph, index: usize) -> Result<()> {
        let Choice { condition, selects, .. } = &self.choices[index];
        let (condition, selects) = (self.instructions.now(*condition), selects.clone());
        let is_skipped = [0, 1].map(|side| !self.choices[index].skipped[side].is_empty());
        let (mut places, mut effects) = (Vec::new(), Vec::new());
        for &(select, ref ranges) in &selects {
            let place = self.register(graph, select, ranges)?;
            let start = match is_skipped {
                [true, false] => self.instructions.now(graph.source(select, 2)),
                [false, true] => self.instructions.now(graph.source(select, 1)),
                _ => identity(graph, Op::Add, graph.dtype(select)),
            };
            let start = self.splat(graph, start, select)?;
            effects.push(self.instructions.push(graph, Op::Store, &[place, start], Arg::None)?);
            places.push(place);
        }
        for side in (0..2).filter(|&side| is_skipped[side]) {
            let taken = self.any(graph, condition, side)?;
            // An enclosing block may have decided the condition.
            let settled = self.instructions.outcome(graph, taken);
            if settled == Some(false) {
                continue;
            }
            let block = match settled {
                Some(_) => None,
                None => Some(self.instructions.push(graph, Op::If, &[taken], Arg::None)?),
            };
            let nodes = self.choices[index].skipped[side].clone();
            self.emit(graph, &nodes, Some((index, side)))?;
            for (number, &(select, _)) in selects.iter().enumerate() {
                let place = self.after(graph, places[number], effects[number])?;
                let before = self.read(graph, place)?;
                let own = self.instructions.now(graph.source(select, 1 + side));
                let sources = if side == 0 { [condition, own, before] } else { [condition, before, own] };
                let value = self.instructions.push(graph, Op::Where, &sources, Arg::None)?;
                effects[number] = self.instructions.push(graph, Op::Store, &[place, value], Arg::None)?;
            }
            if let Some(block) = block {
                self.instructions.push(graph, Op::Endif, &[block], Arg::None)?;
            }
        }
        for ((&(select, _), &place), &effect) in selects.iter().zip(&places).zip(&effects) {
            let place = self.after(graph, place, effect)?;
            let value = self.read(graph, place)?;
            self.instructions.replace(select, value);
        }
        Ok(())
    }

    /// A register for the value of a Where, with its lifetime limited to one iteration of the loops that the Where depends on.
    fn register(&mut self, graph: &mut Graph, select: NodeId, ranges: &[NodeId]) -> Result<NodeId> {
        let dims = graph.props(select).shape.clone();
        let dims = graph.shape(&dims)?;
        let (slot, dtype) = (self.next_register, graph.dtype(select));
        self.next_register += 1;
        let arg = Arg::Buffer { slot, dtype, device: None, addrspace: AddrSpace::Reg };
        let mut place = vec![self.instructions.push(graph, Op::Buffer, &[dims], arg)?];
        place.extend(ranges.iter().map(|&range| self.instructions.now(range)));
        match place[..] {
            [buffer] => Ok(buffer),
            _ => self.instructions.push(graph, Op::After, &place, Arg::None),
        }
    }

    fn after(&mut self, graph: &mut Graph, place: NodeId, effect: NodeId) -> Result<NodeId> {
        self.instructions.push(graph, Op::After, &[place, effect], Arg::None)
    }

    fn read(&mut self, graph: &mut Graph, place: NodeId) -> Result<NodeId> {
        self.instructions.push(graph, Op::Load, &[place], Arg::Load { device: None, addrspace: AddrSpace::Reg })
    }

    /// Broadcasts a value to the shape of another.
    fn splat(&mut self, graph: &mut Graph, value: NodeId, like: NodeId) -> Result<NodeId> {
        let dims = graph.props(like).shape.clone();
        if graph.props(value).shape == dims {
            return Ok(value);
        }
        let dims = graph.shape(&dims)?;
        self.instructions.push(graph, Op::Expand, &[value, dims], Arg::None)
    }

    /// A scalar: does any lane select this side?
    fn any(&mut self, graph: &mut Graph, condition: NodeId, side: usize) -> Result<NodeId> {
        // A scalar condition that was broadcast.
        let condition = if graph.op(condition) == Op::Expand { graph.source(condition, 0) } else { condition };
        let taken = match (side, negated(graph, condition)) {
            (0, _) => condition,
            (_, Some(negated)) => negated,
            _ => {
                let one = truth(graph, true);
                let one = self.splat(graph, one, condition)?;
                self.instructions.push(graph, Op::CmpNe, &[condition, one], Arg::None)?
            }
        };
        if graph.props(taken).shape.is_empty() {
            return Ok(taken);
        }
        let arg = Arg::Reduce { op: Op::Max, axes: [0].into_iter().collect() };
        let any = self.instructions.push(graph, Op::Reduce, &[taken], arg)?;
        let scalar = graph.shape(&[])?;
        self.instructions.push(graph, Op::Reshape, &[any, scalar], Arg::None)
    }
}
