//! Speculates loads whose lanes are dead while their gate is closed. The last tile of a matrix has rows beyond its end, which are
//! loaded, accumulated and stored under one gate. Since the masked-off result is never observed, such a load may read any valid
//! element: it becomes an ungated load that reads a neighbouring row while the gate is closed. The loop around it then needs no
//! masked version.

use super::Instructions;
use rustc_hash::{FxHashMap, FxHashSet};
use tinyspec_backends::Target;
use tinyspec_ir::address::{in_param, register};
use tinyspec_ir::affine::Affine;
use tinyspec_ir::instructions::lanes;
use tinyspec_ir::{Arg, Builder, Const, DType, Graph, NodeId, Op, Result};

/// A set of conditions that hold wherever a value is observed, one bit per condition.
type Conditions = u64;

/// A load's buffer, its address without the constant, its number of elements, and the loop around it.
type Access = (NodeId, Affine, i64, Option<NodeId>);

/// Removes the gates of loads whose masked-off result is never observed.
///
/// # Errors
/// When [`tinyspec_ir::derive()`] rejects a node, which would be a bug in this pass.
pub fn dead_lanes(graph: &mut Graph, linear: NodeId, target: &Target) -> Result<NodeId> {
    if target.workgroups.is_some() {
        return Ok(linear);
    }
    let list = graph.sources(linear).to_vec();
    let steps = Analysis { graph, linear, instructions: &list }.steps();
    if steps.is_empty() {
        return Ok(linear);
    }
    let mut instructions = Instructions::default();
    for node in list {
        match steps.get(&node) {
            Some(&step) => speculate(graph, &mut instructions, node, step)?,
            None => instructions.copy(graph, node).map(drop)?,
        }
    }
    instructions.linear(graph)
}

/// Emits the load without its gate; while the gate is closed, it reads `step` elements before its address.
fn speculate(graph: &mut Graph, instructions: &mut Instructions, load: NodeId, step: i64) -> Result<()> {
    let Some(gate) = scalar_gate(graph, load) else { return Ok(()) };
    let gate = instructions.now(gate);
    let mut place = instructions.now(graph.source(load, 0));
    let mut around = Vec::new();
    while graph.op(place) == Op::After {
        around.push(graph.sources(place)[1..].to_vec());
        place = graph.source(place, 0);
    }
    let (op, old) = (graph.op(place), graph.sources(place).to_vec());
    let mut index = if op == Op::Shrink { graph.source(old[1], 0) } else { old[1] };
    if graph.dtype(index) == DType::Index {
        index = instructions.push(graph, Op::Cast, &[index], Arg::DType(DType::I64))?;
    }
    let dtype = graph.dtype(index);
    let [here, before] = [0, -step].map(|number| graph.constant(Const::int(dtype, number.into())));
    let moved = instructions.push(graph, Op::Where, &[gate, here, before], Arg::None)?;
    let index = instructions.push(graph, Op::Add, &[index, moved], Arg::None)?;
    let mut sources = old;
    sources[1] = if op == Op::Shrink { instructions.push(graph, Op::Stack, &[index], Arg::None)? } else { index };
    place = instructions.push(graph, op, &sources, Arg::None)?;
    for others in around.into_iter().rev() {
        place = instructions.push(graph, Op::After, &[&[place], &others[..]].concat(), Arg::None)?;
    }
    let arg = graph.arg(load).clone();
    let made = graph.add(Op::Load, &[place], arg.clone())?;
    // Another load may differ from this one only in its value for a closed gate.
    if instructions.contains(made) {
        return instructions.copy(graph, load).map(drop);
    }
    instructions.copy_as(graph, load, Op::Load, &[place], arg).map(drop)
}

/// The gate of a load from memory, if one scalar gates all lanes.
fn scalar_gate(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let &[place, _, mut gate] = graph.sources(node) else { return None };
    if graph.op(node) != Op::Load || register(graph, place).is_some() {
        return None;
    }
    while matches!(graph.op(gate), Op::Expand | Op::After) {
        gate = graph.source(gate, 0);
    }
    (graph.props(gate).shape.is_empty() && graph.as_const(gate).is_none()).then_some(gate)
}

fn conjuncts(graph: &Graph, gate: NodeId) -> Vec<NodeId> {
    let (mut parts, mut pending) = (Vec::new(), vec![gate]);
    while let Some(gate) = pending.pop() {
        match graph.op(gate) {
            Op::And => pending.extend(graph.sources(gate)),
            Op::Expand | Op::After => pending.push(graph.source(gate, 0)),
            _ => parts.push(gate),
        }
    }
    parts
}

struct Analysis<'a> {
    graph: &'a Graph,
    linear: NodeId,
    instructions: &'a [NodeId],
}

impl Analysis<'_> {
    /// Loads whose masked-off result is never observed, each with the distance, in elements, to the address that it
    /// reads instead.
    fn steps(&self) -> FxHashMap<NodeId, i64> {
        let (graph, instructions) = (self.graph, self.instructions);
        let mut found = FxHashMap::default();
        let gated: Vec<NodeId> =
            instructions.iter().copied().filter(|&node| scalar_gate(graph, node).is_some()).collect();
        if gated.is_empty() {
            return found;
        }
        let mut bits = FxHashMap::default();
        for part in gated.iter().filter_map(|&load| scalar_gate(graph, load)).flat_map(|gate| conjuncts(graph, gate)) {
            let next = bits.len();
            bits.entry(part).or_insert(next);
        }
        if bits.len() > Conditions::BITS as usize {
            return found;
        }
        let of = |gate: NodeId| {
            conjuncts(graph, gate).iter().filter_map(|part| bits.get(part)).fold(0, |all, bit| all | (1 << bit))
        };
        let kept = self.kept(&bits);
        let observed = self.conditions(&of, &kept);
        let is_dead =
            |&load: &NodeId| scalar_gate(graph, load).is_some_and(|gate| of(gate) & !observed[load.index()] == 0);
        let (mut open, mut ungated) = (Vec::new(), FxHashMap::<Access, Vec<i64>>::default());
        let mut groups: FxHashMap<(Access, NodeId), Vec<(NodeId, i64)>> = FxHashMap::default();
        for &node in instructions {
            match self.graph.op(node) {
                Op::Range | Op::If => open.push(node),
                Op::End | Op::Endif => drop(open.pop()),
                Op::Load => {
                    let Some((access, constant)) = self.access(node, open.last().copied()) else { continue };
                    match scalar_gate(graph, node) {
                        Some(gate) if is_dead(&node) => {
                            groups.entry((access, gate)).or_default().push((node, constant))
                        }
                        None if self.graph.sources(node).len() == 1 => {
                            ungated.entry(access).or_default().push(constant)
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        for ((access, _), loads) in groups {
            let (Some(known), Some(&(_, first))) = (ungated.get(&access), loads.first()) else { continue };
            let fits = |step: &i64| loads.iter().all(|(_, constant)| known.contains(&(constant - step)));
            if let Some(step) = known.iter().map(|constant| first - constant).find(fits) {
                found.extend(loads.into_iter().map(|(load, _)| (load, step)));
            }
        }
        found
    }

    /// For each register, the conditions that have one value over all its Stores and Loads. A condition that depends on memory, or
    /// on a loop that carries the register, may change between trips.
    fn kept(&self, bits: &FxHashMap<NodeId, usize>) -> FxHashMap<u32, Conditions> {
        let (graph, instructions) = (self.graph, self.instructions);
        let is_if = |around: &NodeId| graph.op(*around) == Op::If;
        let (mut open, mut scopes) = (Vec::new(), FxHashMap::<u32, Vec<NodeId>>::default());
        for &node in instructions {
            match graph.op(node) {
                Op::Range | Op::If => open.push(node),
                Op::End | Op::Endif => drop(open.pop()),
                op @ (Op::Load | Op::Store) => {
                    let Some((slot, _)) = register(graph, graph.source(node, 0)) else { continue };
                    let scope = scopes.entry(slot).or_insert_with(|| match op {
                        // Each trip of the loops around the first Store initialises it.
                        Op::Store if graph.sources(node).len() == 2 && !open.iter().any(is_if) => open.clone(),
                        _ => Vec::new(),
                    });
                    scope.retain(|around| open.contains(around));
                }
                _ => {}
            }
        }
        let depends = |&part: &NodeId| {
            let below = graph.reachable(&[part]);
            let is_open = |node: &NodeId| matches!(graph.op(*node), Op::Range | Op::Load);
            below.into_iter().filter(is_open).collect::<Vec<NodeId>>()
        };
        let parts: Vec<(Conditions, Vec<NodeId>)> = bits.iter().map(|(part, bit)| (1 << bit, depends(part))).collect();
        let kept = |scope: &Vec<NodeId>| {
            let holds = |on: &[NodeId]| on.iter().all(|node| scope.contains(node));
            parts.iter().filter(|(_, on)| holds(on)).fold(0, |all, (bit, _)| all | bit)
        };
        scopes.iter().map(|(&slot, scope)| (slot, kept(scope))).collect()
    }

    /// For each node, the conditions that hold whenever memory depends on it: a backward dataflow analysis, iterated to a fixed
    /// point because registers are loop-carried.
    fn conditions(&self, of: &dyn Fn(NodeId) -> Conditions, kept: &FxHashMap<u32, Conditions>) -> Vec<Conditions> {
        let (graph, instructions) = (self.graph, self.instructions);
        let mut blocks = FxHashMap::default();
        let mut open: Vec<Conditions> = vec![0];
        for &node in instructions {
            let around = open.last().copied().unwrap_or(0);
            match graph.op(node) {
                Op::If => open.push(around | of(graph.source(node, 0))),
                Op::Endif => drop(open.pop()),
                Op::Store => drop(blocks.insert(node, around)),
                _ => {}
            }
        }
        let listed: FxHashSet<NodeId> = instructions.iter().copied().collect();
        let mut observed = vec![Conditions::MAX; graph.len()];
        let mut registers: FxHashMap<u32, Conditions> = FxHashMap::default();
        loop {
            let mut changed = false;
            for node in graph.nodes().rev().filter(|node| node.index() <= self.linear.index()) {
                let (sources, own) = (graph.sources(node), observed[node.index()]);
                let mut observe = |source: NodeId, conditions: Conditions| observed[source.index()] &= conditions;
                match (graph.op(node), sources) {
                    (Op::Load, &[place, ref others @ ..]) => match register(graph, place) {
                        Some((slot, _)) => {
                            let own = own & kept.get(&slot).copied().unwrap_or(0);
                            let all = registers.entry(slot).or_insert(Conditions::MAX);
                            changed |= *all & own != *all;
                            *all &= own;
                        }
                        None => {
                            observe(place, 0);
                            others.iter().for_each(|&source| observe(source, 0));
                        }
                    },
                    (Op::Store, &[place, value, ref gate @ ..]) if listed.contains(&node) => {
                        gate.iter().for_each(|&gate| observe(gate, 0));
                        match register(graph, place) {
                            Some((slot, _)) => observe(value, registers.get(&slot).copied().unwrap_or(Conditions::MAX)),
                            None => {
                                observe(place, 0);
                                let own = gate.iter().fold(0, |all, &gate| all | of(gate));
                                observe(value, own | blocks.get(&node).copied().unwrap_or(0));
                            }
                        }
                    }
                    (Op::Linear | Op::Store, _) => {}
                    (op, sources) => {
                        let passed = if is_transparent(op) { own } else { 0 };
                        sources.iter().for_each(|&source| observe(source, passed));
                    }
                }
            }
            if !changed {
                return observed;
            }
        }
    }

    /// A load's address without its constant, and the constant.
    fn access(&self, load: NodeId, around: Option<NodeId>) -> Option<(Access, i64)> {
        let (buffer, sum) = in_param(self.graph, *self.graph.sources(load).first()?)?;
        Some(((buffer, sum.without_constant(), lanes(self.graph, load), around), sum.constant()))
    }
}

/// Whether an op observes its sources only where its own value is observed. Effects and loops observe all of theirs, and a division may trap.
fn is_transparent(op: Op) -> bool {
    let is_value = op.is_elementwise() && !matches!(op, Op::Idiv | Op::Mod | Op::Custom);
    is_value
        || matches!(
            op,
            Op::Cast
                | Op::Bitcast
                | Op::Stack
                | Op::Expand
                | Op::Reshape
                | Op::Index
                | Op::Ins
                | Op::Reduce
                | Op::After
        )
}
