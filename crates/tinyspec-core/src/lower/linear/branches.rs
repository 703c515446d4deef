//! Branches around expensive values that a Where often selects for no lane. A Where computes both of its sides; a branch on the
//! conditions of all lanes together skips a side that none of them takes (J. Shin, "Introducing control flow into vectorized code",
//! PACT 2007). So the reduction of huge arguments of a sine costs nothing where there are none, and of two series the one that all
//! lanes need is computed.

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

/// Machine instructions that take as long as a mispredicted branch: about 20 cycles, two instructions each. A side of fewer
/// is computed.
const MISPREDICTED: usize = 40;
/// Instructions that take as long as a division or a square root.
const DIVISION: usize = 8;

/// Wheres of one condition that share a branch for each side.
struct Choice {
    /// The innermost Range or If around them.
    block: Option<NodeId>,
    condition: NodeId,
    /// In order, each with the open Ranges that it depends on. Up to the last, nothing needs any of them but what can wait.
    selects: Vec<(NodeId, SmallVec<[NodeId; 4]>)>,
    /// What waits for the block: values that need a Where and stand before the last one.
    waiting: Vec<NodeId>,
    /// Values that only these sides need, of the sides that are skipped.
    skipped: [Option<FxHashSet<NodeId>>; 2],
}

/// Skips expensive sides of Wheres that no lane takes.
///
/// # Errors
/// What [`tinyspec_ir::derive()`] refuses: then this pass is wrong.
pub fn branches(graph: &mut Graph, linear: NodeId, target: &Target) -> Result<NodeId> {
    let list = graph.sources(linear).to_vec();
    let choices = Code::new(graph, target, &list).choices();
    if choices.is_empty() {
        return Ok(linear);
    }
    let mut emission = Emission::new(graph, &list, choices);
    emission.emit(graph, &list, None)?;
    emission.instructions.linear(graph)
}

/// An instruction sequence and who uses what in it.
struct Code<'a> {
    graph: &'a Graph,
    target: &'a Target,
    list: &'a [NodeId],
    /// By position, the innermost Range or If around an instruction.
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
        // Few kernels have a side that is worth a branch.
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

    /// Whether any side of a Where may be long enough, where what is used twice counts twice.
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

    /// Is it a value of others, without memory?
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

    /// The choices that get a branch: the most expensive first, and of the others those that lie apart from it, or wholly in a side
    /// of which they are no more than half. So a chain of Wheres, each within a side of the one before, gets few branches.
    fn choices(&self) -> Vec<Choice> {
        let mut found: Vec<([usize; 2], Choice)> = Vec::new();
        for mut choice in self.groups() {
            let mut costs = [0; 2];
            for side in 0..2 {
                let skipped = self.skipped(&choice, side);
                let cost = skipped.iter().map(|&node| self.cost(node)).sum::<usize>();
                if cost >= MISPREDICTED {
                    costs[side] = cost;
                    choice.skipped[side] = Some(skipped);
                }
            }
            if choice.skipped.iter().any(Option::is_some) {
                found.push((costs, choice));
            }
        }
        let total = |costs: [usize; 2]| costs.iter().sum::<usize>();
        found.sort_by_key(|(costs, _)| std::cmp::Reverse(total(*costs)));
        let (mut taken, mut taken_costs): (Vec<Choice>, Vec<[usize; 2]>) = (Vec::new(), Vec::new());
        // The innermost side that a value belongs to, and the Wheres that have a branch.
        let mut owners: FxHashMap<NodeId, (usize, usize)> = FxHashMap::default();
        let mut selects: FxHashSet<NodeId> = FxHashSet::default();
        for (costs, choice) in found {
            let owner = choice.last().and_then(|last| owners.get(&last)).copied();
            let is_own = |node: NodeId| owners.get(&node).copied() == owner;
            let in_sides = |node: &NodeId| is_own(*node) && !selects.contains(node);
            let is_small = owner.is_none_or(|(around, side)| 2 * total(costs) <= taken_costs[around][side]);
            if !is_small || !choice.selects().all(is_own) || !choice.skipped.iter().flatten().flatten().all(in_sides) {
                continue;
            }
            for (side, nodes) in choice.skipped.iter().enumerate() {
                owners.extend(nodes.iter().flatten().map(|&node| (node, (taken.len(), side))));
            }
            selects.extend(choice.selects());
            taken.push(choice);
            taken_costs.push(costs);
        }
        taken
    }

    /// Wheres of one condition and block, as many together as can wait for the last of them.
    fn groups(&self) -> Vec<Choice> {
        let mut groups: Vec<Choice> = Vec::new();
        let mut open: FxHashMap<(Option<NodeId>, NodeId), usize> = FxHashMap::default();
        // The groups whose Wheres a value needs, and which of the open Ranges it depends on, a bit each.
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
            let waits = self.is_pure(node) && !is_select;
            needed.retain(|&mut group| {
                // Wheres of the block that is open here.
                let key = (groups[group].block, groups[group].condition);
                let is_open = key.0 == block && open.get(&key) == Some(&group);
                match (waits, is_open) {
                    (true, true) => groups[group].waiting.push(node),
                    _ if open.get(&key) == Some(&group) => drop(open.remove(&key)),
                    _ => {}
                }
                waits && is_open
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
            group.waiting.retain(|node| self.positions.get(node) < last);
        }
        groups
    }

    /// The values that nothing but this side of the Wheres needs.
    fn skipped(&self, choice: &Choice, side: usize) -> FxHashSet<NodeId> {
        let mut skipped = FxHashSet::default();
        let last = choice.last().and_then(|last| self.positions.get(&last));
        let Some(&last) = last else { return skipped };
        // From the last to the first, so that all users of a value have been seen.
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
                pending.extend(self.graph.sources(node).iter().filter_map(|source| self.positions.get(source)));
            }
        }
        skipped
    }
}

impl Choice {
    fn new(block: Option<NodeId>, condition: NodeId) -> Choice {
        Choice { block, condition, selects: Vec::new(), waiting: Vec::new(), skipped: [None, None] }
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

/// Writes the new sequence.
struct Emission {
    instructions: Instructions,
    choices: Vec<Choice>,
    /// The innermost choice a side of which a value belongs to, and which side.
    sides: FxHashMap<NodeId, (usize, usize)>,
    /// The choice of a Where.
    selects: FxHashMap<NodeId, usize>,
    /// The choices whose blocks a value waits for.
    waits: FxHashMap<NodeId, Vec<usize>>,
    positions: FxHashMap<NodeId, usize>,
    done: Vec<bool>,
    next_register: u32,
}

impl Emission {
    fn new(graph: &Graph, list: &[NodeId], choices: Vec<Choice>) -> Emission {
        let (mut sides, mut selects) = (FxHashMap::default(), FxHashMap::default());
        let mut waits: FxHashMap<NodeId, Vec<usize>> = FxHashMap::default();
        // A choice within a side of another comes after it.
        for (index, choice) in choices.iter().enumerate() {
            for (side, nodes) in choice.skipped.iter().enumerate() {
                sides.extend(nodes.iter().flatten().map(|&node| (node, (index, side))));
            }
            selects.extend(choice.selects().map(|node| (node, index)));
            choice.waiting.iter().for_each(|&node| waits.entry(node).or_default().push(index));
        }
        Emission {
            instructions: Instructions::default(),
            done: vec![false; choices.len()],
            choices,
            sides,
            selects,
            waits,
            positions: list.iter().enumerate().map(|(position, &node)| (node, position)).collect(),
            next_register: next_register(graph),
        }
    }

    /// Emits instructions that stand in this side of a choice, or in none.
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
                    let waiting = self.choices[choice].waiting.clone();
                    self.emit(graph, &waiting, inside)?;
                }
                Some(_) => {}
                None => drop(self.instructions.copy(graph, node)?),
            }
        }
        Ok(())
    }

    /// Emits the Wheres of a choice as registers that blocks write.
    fn blocks(&mut self, graph: &mut Graph, index: usize) -> Result<()> {
        let Choice { condition, selects, .. } = &self.choices[index];
        let (condition, selects) = (self.instructions.now(*condition), selects.clone());
        let is_skipped = [0, 1].map(|side| self.choices[index].skipped[side].is_some());
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
            // A block around it may have settled the condition.
            let settled = self.instructions.outcome(graph, taken);
            if settled == Some(false) {
                continue;
            }
            let block = match settled {
                Some(_) => None,
                None => Some(self.instructions.push(graph, Op::If, &[taken], Arg::None)?),
            };
            let mut nodes: Vec<NodeId> = self.choices[index].skipped[side].iter().flatten().copied().collect();
            nodes.sort_unstable_by_key(|node| self.positions.get(node));
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

    /// A register for the value of a Where, new in each trip of the loops that it depends on.
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

    /// A value of the shape of another.
    fn splat(&mut self, graph: &mut Graph, value: NodeId, like: NodeId) -> Result<NodeId> {
        let dims = graph.props(like).shape.clone();
        if graph.props(value).shape == dims {
            return Ok(value);
        }
        let dims = graph.shape(&dims)?;
        self.instructions.push(graph, Op::Expand, &[value, dims], Arg::None)
    }

    /// Whether any lane takes a side.
    fn any(&mut self, graph: &mut Graph, condition: NodeId, side: usize) -> Result<NodeId> {
        // One of all lanes.
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
