//! If and Endif: effects under one condition are skipped as a whole.
//!
//! In the graph every effect has a gate of its own. Consecutive effects under the same gate, and loops whose effects
//! are all under it, become one block. Loads and computations for that block alone are sunk into it, so the threads of a
//! workgroup that skip the block do not wait for them, and a CPU tests the condition of a load and a Store once.

use super::Loops;
use crate::lower::live::Live;
use rustc_hash::{FxHashMap, FxHashSet};
use tinyspec_ir::address::is_register;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// A step in the body of a loop; an End stands for the whole loop that it closes.
#[derive(Clone, Copy)]
pub(super) enum Step {
    Node(NodeId),
    If(NodeId),
    Endif,
}

/// Effects of one gate, by their positions in a body.
struct Block {
    gate: NodeId,
    members: Vec<usize>,
}

struct Conditions<'a> {
    graph: &'a Graph,
    live: &'a Live,
    bodies: &'a [Vec<NodeId>],
    /// Whether there are threads that may skip a block.
    has_threads: bool,
    /// The users of each node.
    users: FxHashMap<NodeId, Vec<NodeId>>,
}

/// Puts conditions around parts of the bodies.
pub(super) fn blocks(graph: &Graph, live: &Live, bodies: &[Vec<NodeId>]) -> Vec<Vec<Step>> {
    let plain = |body: &Vec<NodeId>| body.iter().map(|&node| Step::Node(node)).collect();
    let is_gated = |&node: &NodeId| gate(graph, node).is_some();
    if !bodies.iter().flatten().any(is_gated) {
        return bodies.iter().map(plain).collect();
    }
    let has_threads = bodies.iter().flatten().any(|&node| graph.op(node) == Op::Special);
    let mut users: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
    for &node in bodies.iter().flatten() {
        for &source in graph.sources(node) {
            users.entry(source).or_default().push(node);
            // Offsets and bounds are in no body.
            if matches!(graph.op(source), Op::Stack | Op::Range) {
                graph.sources(source).iter().for_each(|&below| users.entry(below).or_default().push(node));
            }
        }
    }
    let conditions = Conditions { graph, live, bodies, has_threads, users };
    bodies.iter().map(|body| conditions.body(body)).collect()
}

/// The gate of an effect on memory, if it is one scalar for all lanes.
fn gate(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let is_effect = matches!(graph.op(node), Op::Store | Op::AtomicAdd) && !is_register(graph, node);
    let gate = *graph.sources(node).get(2).filter(|_| is_effect)?;
    (graph.props(gate).shape.is_empty() && graph.as_const(gate).is_none()).then_some(gate)
}

impl Conditions<'_> {
    fn is_effect(&self, node: NodeId) -> bool {
        matches!(self.graph.op(node), Op::Store | Op::AtomicAdd | Op::Barrier | Op::End)
    }

    /// The body of the loop that an End closes.
    fn inside(&self, end: NodeId) -> &[NodeId] {
        let number = self.live.bit(self.graph.source(end, 1)).trailing_zeros() as usize;
        self.bodies.get(number).map(Vec::as_slice).unwrap_or_default()
    }

    /// The common gate of all effects of a step.
    fn gate(&self, node: NodeId) -> Option<NodeId> {
        if self.graph.op(node) != Op::End {
            return gate(self.graph, node);
        }
        // A parallel loop cannot be part of a block.
        let range = self.graph.source(node, 1);
        if matches!(self.graph.arg(range), Arg::Range { axis, .. } if axis.is_parallel()) {
            return None;
        }
        let inside = self.inside(node);
        let mut gates = inside.iter().filter(|&&node| self.is_effect(node)).map(|&node| self.gate(node));
        let first = gates.next()??;
        (gates.all(|gate| gate == Some(first)) && !inside.contains(&first)).then_some(first)
    }

    fn body(&self, body: &[NodeId]) -> Vec<Step> {
        let mut steps = Vec::with_capacity(body.len());
        // Nodes that are in a block, and how many nodes are in the steps or in blocks.
        let mut placed = vec![false; body.len()];
        let mut written = 0;
        for block in self.find(body) {
            let Some(&last) = block.members.last() else { continue };
            let Some(inside) = self.content(body, &block, written) else { continue };
            inside.iter().for_each(|&position| placed[position] = true);
            let before = (written..=last).filter(|&position| !placed[position]);
            steps.extend(before.map(|position| Step::Node(body[position])));
            steps.push(Step::If(block.gate));
            steps.extend(inside.iter().map(|&position| Step::Node(body[position])));
            steps.push(Step::Endif);
            written = last + 1;
        }
        let rest = (written..body.len()).filter(|&position| !placed[position]);
        steps.extend(rest.map(|position| Step::Node(body[position])));
        steps
    }

    /// Runs of effects with one gate, in order; between them are only values that do not wait for them.
    fn find(&self, body: &[NodeId]) -> Vec<Block> {
        let mut found: Vec<Block> = Vec::new();
        let mut is_open = false;
        let mut waiting: FxHashSet<NodeId> = FxHashSet::default();
        for (position, &node) in body.iter().enumerate() {
            let waits = self.graph.sources(node).iter().any(|source| waiting.contains(source));
            if !self.is_effect(node) {
                is_open &= !waits;
                continue;
            }
            let gate = self.gate(node);
            match (gate, found.last_mut()) {
                (Some(gate), Some(last)) if is_open && last.gate == gate => last.members.push(position),
                (Some(gate), _) => {
                    waiting.clear();
                    found.push(Block { gate, members: vec![position] });
                }
                (None, _) => {}
            }
            is_open = gate.is_some();
            waiting.insert(node);
        }
        found
    }

    /// The positions of the nodes that go into a block; `None` if it is not worth one.
    fn content(&self, body: &[NodeId], block: &Block, from: usize) -> Option<Vec<usize>> {
        let mut content = block.members.clone();
        let has_loop = block.members.iter().any(|&position| self.graph.op(body[position]) == Op::End);
        let mut is_work = false;
        let mut inside: FxHashSet<NodeId> = FxHashSet::default();
        let mut pending: Vec<NodeId> = block.members.iter().map(|&position| body[position]).collect();
        while let Some(node) = pending.pop() {
            if self.graph.op(node) == Op::End {
                pending.extend(self.inside(node));
            }
            inside.insert(node);
        }
        for position in (from..*block.members.last()?).rev() {
            let node = body[position];
            let own = |user: &NodeId| inside.contains(user);
            let is_only_here = self.users.get(&node).is_some_and(|users| users.iter().all(own));
            if node == block.gate || !self.may_move(node) || !is_only_here {
                continue;
            }
            is_work |= self.is_work(node, block.gate);
            inside.insert(node);
            content.push(position);
        }
        content.sort_unstable();
        (block.members.len() > 1 || has_loop || is_work).then_some(content)
    }

    /// Whether sinking a node into a block pays for the branch. On a CPU only a load under the block's own gate does, such as that of an
    /// accumulator in memory: its Store needs the branch anyway.
    fn is_work(&self, node: NodeId, gate: NodeId) -> bool {
        let is_load = self.graph.op(node) == Op::Load && !is_register(self.graph, node);
        match self.has_threads {
            true => is_load || self.graph.op(node).is_elementwise() && self.graph.dtype(node).is_float(),
            false => is_load && self.graph.sources(node).get(2) == Some(&gate),
        }
    }

    fn may_move(&self, node: NodeId) -> bool {
        let op = self.graph.op(node);
        let is_fixed = matches!(op, Op::Param | Op::Buffer | Op::Special | Op::Group | Op::Sink | Op::Ins);
        !is_fixed && !self.is_effect(node)
    }
}

/// The Linear of the loops' bodies. Accesses in a block drop the gate that the block tests.
pub(super) fn listed(graph: &mut Graph, loops: &Loops, live: &Live, bodies: &[Vec<Step>]) -> Result<NodeId> {
    let steps = || bodies.iter().flatten();
    let nodes = steps().filter_map(|step| match step {
        Step::Node(node) => Some(*node),
        Step::If(_) | Step::Endif => None,
    });
    // Without blocks no node changes.
    let has_blocks = steps().any(|step| matches!(step, Step::If(_)));
    let taken = if has_blocks { nodes.collect() } else { FxHashSet::default() };
    let mut rebuild = Rebuild { taken, new: FxHashMap::default(), conditions: Vec::new() };
    let mut closed: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let mut list: Vec<NodeId> = Vec::with_capacity(steps().count());
    let mut open: Vec<(usize, usize)> = vec![(live.ranges.len(), 0)];
    while let Some((body, next)) = open.pop() {
        let Some(&step) = bodies[body].get(next) else {
            if let Some(&end) = loops.ends.get(body) {
                list.push(rebuild.node(graph, end)?);
            }
            continue;
        };
        open.push((body, next + 1));
        match step {
            // Already inside a block of the same gate.
            Step::If(gate) if rebuild.holds(gate) => rebuild.conditions.push((gate, None)),
            Step::If(gate) => {
                let mut condition = rebuild.new.get(&gate).copied().unwrap_or(gate);
                // Two blocks of one gate must be two nodes, so the second depends on the first.
                if let Some(&before) = closed.get(&gate) {
                    condition = graph.add(Op::After, &[condition, before], Arg::None)?;
                    list.push(condition);
                }
                let node = graph.add(Op::If, &[condition], Arg::None)?;
                rebuild.conditions.push((gate, Some(node)));
                list.push(node);
            }
            Step::Endif => {
                if let Some((gate, Some(node))) = rebuild.conditions.pop() {
                    let end = graph.add(Op::Endif, &[node], Arg::None)?;
                    closed.insert(gate, end);
                    list.push(end);
                }
            }
            Step::Node(node) if graph.op(node) == Op::End => {
                let range = graph.source(node, 1);
                list.push(rebuild.node(graph, range)?);
                open.push((live.bit(range).trailing_zeros() as usize, 0));
            }
            Step::Node(node) => list.push(rebuild.node(graph, node)?),
        }
    }
    graph.add(Op::Linear, &list, Arg::None)
}

/// Rebuilds nodes over the replacements of their sources.
struct Rebuild {
    new: FxHashMap<NodeId, NodeId>,
    /// Nodes that are already in the order.
    taken: FxHashSet<NodeId>,
    /// Gates that hold here, each with its If.
    conditions: Vec<(NodeId, Option<NodeId>)>,
}

impl Rebuild {
    fn holds(&self, gate: NodeId) -> bool {
        self.conditions.iter().any(|condition| condition.0 == gate)
    }

    fn node(&mut self, graph: &mut Graph, node: NodeId) -> Result<NodeId> {
        if self.conditions.is_empty() && self.new.is_empty() {
            return Ok(node);
        }
        let old = graph.sources(node);
        let holds = old.get(2).is_some_and(|&own| self.holds(own));
        if !holds && !old.iter().any(|source| self.new.contains_key(source)) {
            return Ok(node);
        }
        let sources: Vec<NodeId> = old.iter().map(|source| self.new.get(source).copied().unwrap_or(*source)).collect();
        let (op, arg) = (graph.op(node), graph.arg(node).clone());
        let kept = match op {
            Op::Load if holds => 1,
            Op::Store | Op::AtomicAdd if holds => 2,
            _ => sources.len(),
        };
        let mut made = graph.add(op, &sources[..kept], arg.clone())?;
        // An ungated access elsewhere must not become the same node.
        if self.taken.contains(&made) {
            made = graph.add(op, &sources, arg)?;
        }
        self.taken.insert(made);
        for location in graph.locations(node).to_vec() {
            graph.locate(made, location);
        }
        self.new.insert(node, made);
        Ok(made)
    }
}
