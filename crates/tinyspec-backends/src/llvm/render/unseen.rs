//! Loads of which nobody sees what they give where their gate is closed. The last tile of a matrix has rows beyond its end:
//! they are read through a gate, summed up and stored through the same gate. Such a load may read anything that is there,
//! so it reads a row beside it: then it has no mask, and the loop around it is not there once with masks and once without.

use super::control::register;
use super::{NodeId, Op, Renderer};
use rustc_hash::{FxHashMap, FxHashSet};
use tinyspec_ir::{Builder, dim};

/// Conditions that hold wherever a value is seen: a bit each.
type Conditions = u64;

/// What a load's place depends on, how many elements it reads, and the loop that it is in.
type Walk = (NodeId, Vec<(NodeId, i64)>, u32, Option<NodeId>);

impl Renderer<'_, '_> {
    /// How many elements before its place each of these loads reads where its gate is closed.
    pub(super) fn unseen(&self, instructions: &[NodeId]) -> FxHashMap<NodeId, i64> {
        let mut found = FxHashMap::default();
        let gated: Vec<NodeId> =
            instructions.iter().copied().filter(|&node| self.scalar_gate(node).is_some()).collect();
        if gated.is_empty() {
            return found;
        }
        let mut bits = FxHashMap::default();
        for part in gated.iter().filter_map(|&load| self.scalar_gate(load)).flat_map(|gate| self.conjuncts(gate)) {
            let next = bits.len();
            bits.entry(part).or_insert(next);
        }
        if bits.len() > Conditions::BITS as usize {
            return found;
        }
        let of = |gate: NodeId| {
            self.conjuncts(gate).iter().filter_map(|part| bits.get(part)).fold(0, |all, bit| all | (1 << bit))
        };
        let kept = self.kept(instructions, &bits);
        let seen = self.conditions(instructions, &of, &kept);
        let is_unseen = |&load: &NodeId| self.scalar_gate(load).is_some_and(|gate| of(gate) & !seen[load.index()] == 0);
        let (mut open, mut beside) = (Vec::new(), FxHashMap::<Walk, Vec<i64>>::default());
        let mut groups: FxHashMap<(Walk, NodeId), Vec<(NodeId, i64)>> = FxHashMap::default();
        for &node in instructions {
            match self.graph.op(node) {
                Op::Range | Op::If => open.push(node),
                Op::End | Op::Endif => drop(open.pop()),
                Op::Load => {
                    let Some((walk, constant)) = self.walk(node, open.last().copied()) else { continue };
                    match self.scalar_gate(node) {
                        Some(gate) if is_unseen(&node) => {
                            groups.entry((walk, gate)).or_default().push((node, constant))
                        }
                        None if self.graph.sources(node).len() == 1 => beside.entry(walk).or_default().push(constant),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        for ((walk, _), loads) in groups {
            let (Some(known), Some(&(_, first))) = (beside.get(&walk), loads.first()) else { continue };
            let fits = |step: &i64| loads.iter().all(|(_, constant)| known.contains(&(constant - step)));
            if let Some(step) = known.iter().map(|constant| first - constant).find(fits) {
                found.extend(loads.into_iter().map(|(load, _)| (load, step)));
            }
        }
        found
    }

    /// The gate of a load from memory, where it is one for all lanes.
    pub(super) fn scalar_gate(&self, node: NodeId) -> Option<NodeId> {
        let &[place, _, mut gate] = self.graph.sources(node) else { return None };
        if self.graph.op(node) != Op::Load || register(self.graph, place).is_some() {
            return None;
        }
        while matches!(self.graph.op(gate), Op::Expand | Op::After) {
            gate = self.graph.source(gate, 0);
        }
        (self.graph.props(gate).shape.is_empty() && self.graph.as_const(gate).is_none()).then_some(gate)
    }

    fn conjuncts(&self, gate: NodeId) -> Vec<NodeId> {
        let (mut parts, mut pending) = (Vec::new(), vec![gate]);
        while let Some(gate) = pending.pop() {
            match self.graph.op(gate) {
                Op::And => pending.extend(self.graph.sources(gate)),
                Op::Expand | Op::After => pending.push(self.graph.source(gate, 0)),
                _ => parts.push(gate),
            }
        }
        parts
    }

    /// By register: the conditions that are the same at all its Stores and Loads. Who depends on a loop in which the register
    /// lives on, or on memory, may hold for one trip and not for the next.
    fn kept(&self, instructions: &[NodeId], bits: &FxHashMap<NodeId, usize>) -> FxHashMap<u32, Conditions> {
        let graph = self.graph;
        let is_if = |around: &NodeId| graph.op(*around) == Op::If;
        let (mut open, mut scopes) = (Vec::new(), FxHashMap::<u32, Vec<NodeId>>::default());
        for &node in instructions {
            match graph.op(node) {
                Op::Range | Op::If => open.push(node),
                Op::End | Op::Endif => drop(open.pop()),
                op @ (Op::Load | Op::Store) => {
                    let Some((slot, _)) = register(graph, graph.source(node, 0)) else { continue };
                    let scope = scopes.entry(slot).or_insert_with(|| match op {
                        // It begins anew with each trip of the loops around the first Store.
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

    /// By node: the conditions under which anything in memory comes to depend on it. Registers carry values from trip to
    /// trip, so the walk is repeated until nothing changes.
    fn conditions(
        &self,
        instructions: &[NodeId],
        of: &dyn Fn(NodeId) -> Conditions,
        kept: &FxHashMap<u32, Conditions>,
    ) -> Vec<Conditions> {
        let graph = self.graph;
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
        let mut seen = vec![Conditions::MAX; graph.len()];
        let mut registers: FxHashMap<u32, Conditions> = FxHashMap::default();
        loop {
            let mut changed = false;
            for node in graph.nodes().rev().filter(|node| node.index() <= self.kernel.linear.index()) {
                let (sources, own) = (graph.sources(node), seen[node.index()]);
                let mut see = |source: NodeId, conditions: Conditions| seen[source.index()] &= conditions;
                match (graph.op(node), sources) {
                    (Op::Load, &[place, ref others @ ..]) => match register(graph, place) {
                        Some((slot, _)) => {
                            let own = own & kept.get(&slot).copied().unwrap_or(0);
                            let all = registers.entry(slot).or_insert(Conditions::MAX);
                            changed |= *all & own != *all;
                            *all &= own;
                        }
                        None => {
                            see(place, 0);
                            others.iter().for_each(|&source| see(source, 0));
                        }
                    },
                    (Op::Store, &[place, value, ref gate @ ..]) if listed.contains(&node) => {
                        gate.iter().for_each(|&gate| see(gate, 0));
                        match register(graph, place) {
                            Some((slot, _)) => see(value, registers.get(&slot).copied().unwrap_or(Conditions::MAX)),
                            None => {
                                see(place, 0);
                                let own = gate.iter().fold(0, |all, &gate| all | of(gate));
                                see(value, own | blocks.get(&node).copied().unwrap_or(0));
                            }
                        }
                    }
                    (Op::Linear | Op::Store, _) => {}
                    (op, sources) => {
                        let passed = if passes(op) { own } else { 0 };
                        sources.iter().for_each(|&source| see(source, passed));
                    }
                }
            }
            if !changed {
                return seen;
            }
        }
    }

    /// Where a load walks, and its distance from there.
    fn walk(&self, load: NodeId, around: Option<NodeId>) -> Option<(Walk, i64)> {
        let place = *self.graph.sources(load).first().filter(|&&place| register(self.graph, place).is_none())?;
        let (buffer, sum) = self.place(place)?;
        let lanes = dim::static_shape(&self.graph.props(load).shape)?.iter().product::<i64>();
        Some(((buffer, sum.terms, lanes as u32, around), sum.constant))
    }
}

/// Does nobody see the sources who does not see the value? Effects and loops see all; a division may fail.
fn passes(op: Op) -> bool {
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
