//! The order of loads and stores.

use super::expression::Indices;
use super::{Tracer, View, Written};
use crate::diagnostics::Place as At;
use crate::kernel::syntax::Element;
use std::collections::{HashMap, HashSet};
use tinyspec_ir::{AddrSpace, Arg, Builder, DType, Graph, NodeId, Op};

/// A buffer of the kernel.
#[derive(Clone)]
pub struct Memory {
    pub name: String,
    /// Its Param or Buffer.
    pub node: NodeId,
    pub dims: Vec<NodeId>,
    /// The kernel stores to it.
    pub written: bool,
    /// The kernel loads from it.
    pub read: bool,
    /// The effects that later accesses wait for.
    pub writes: Vec<NodeId>,
    /// The loads that later stores wait for as well.
    pub reads: Vec<NodeId>,
}

/// A load, and the conditions under which it was made.
pub struct Read {
    gates: Vec<NodeId>,
    load: NodeId,
}

/// The pending effects on each memory at some point.
pub type State = Vec<(Vec<NodeId>, Vec<NodeId>)>;

/// Ranges that a node depends on and that nothing below it closes.
#[derive(Default)]
pub struct OpenRanges(HashMap<NodeId, Vec<NodeId>>);

impl OpenRanges {
    pub fn of(&mut self, graph: &Graph, node: NodeId) -> &[NodeId] {
        if !self.0.contains_key(&node) {
            for below in graph.reachable(&[node]) {
                if self.0.contains_key(&below) {
                    continue;
                }
                let sources = graph.sources(below);
                let mut ranges: Vec<NodeId> = Vec::new();
                for source in sources {
                    for &range in self.0.get(source).map_or(&[][..], Vec::as_slice) {
                        if !ranges.contains(&range) {
                            ranges.push(range);
                        }
                    }
                }
                match graph.op(below) {
                    Op::Range => ranges.push(below),
                    Op::End | Op::Reduce => ranges.retain(|range| !sources[1..].contains(range)),
                    _ => {}
                }
                self.0.insert(below, ranges);
            }
        }
        self.0.get(&node).map_or(&[], Vec::as_slice)
    }
}

impl Tracer<'_> {
    pub fn memory(&mut self, name: String, node: NodeId, dims: Vec<NodeId>, written: bool, read: bool) -> usize {
        self.memories.push(Memory { name, node, dims, written, read, writes: vec![], reads: vec![] });
        self.memories.len() - 1
    }

    /// A buffer that the kernel declares.
    pub fn own_memory(
        &mut self,
        name: String,
        space: AddrSpace,
        dtype: DType,
        dims: Vec<NodeId>,
        at: At,
    ) -> Option<usize> {
        let arg = Arg::Buffer { slot: self.next_buffer, dtype, device: None, addrspace: space };
        self.next_buffer += 1;
        let made = self.graph.add(Op::Stack, &dims, Arg::None);
        let made = made.and_then(|shape| self.graph.add(Op::Buffer, &[shape], arg));
        let node = self.buffer_made(&name, at, made)?;
        Some(self.memory(name, node, dims, true, true))
    }

    pub fn state(&self) -> State {
        self.memories.iter().map(|memory| (memory.writes.clone(), memory.reads.clone())).collect()
    }

    /// Replaces all effects since `before` by one node: the End of a loop.
    pub fn behind(&mut self, before: &State, all: &[NodeId]) {
        let done: HashSet<NodeId> = self.graph.reachable(all).into_iter().collect();
        for (position, memory) in self.memories.iter_mut().enumerate() {
            let (writes, reads) = before.get(position).cloned().unwrap_or_default();
            if memory.writes != writes {
                (memory.writes, memory.reads) = (all.to_vec(), vec![]);
                // A barrier in the loop was behind writes that the loop itself does not touch.
                memory.writes.extend(writes.into_iter().filter(|write| !done.contains(write)));
            } else if memory.reads != reads {
                memory.reads = reads;
                memory.reads.extend(all);
            }
        }
    }

    /// The address of an access, ordered after everything that it must wait for. `beside` are the access's other
    /// sources.
    fn place(&mut self, memory: usize, indices: &[NodeId], beside: &[NodeId], op: Op) -> Option<NodeId> {
        let is_store = op != Op::Load;
        let Memory { node, written, read, writes, reads, .. } = &self.memories[memory];
        // Repeating these has another effect.
        let counts = *read || op == Op::AtomicAdd;
        let mut roots = indices.to_vec();
        roots.extend(beside);
        let mut after: Vec<NodeId> = vec![];
        if *written {
            let known: HashSet<NodeId> = self.graph.reachable(&roots).into_iter().collect();
            after.clone_from(writes);
            if is_store {
                after.extend(reads);
            }
            after.retain(|effect| !known.contains(effect));
            after.dedup();
        }
        roots.extend(&after);
        let mut inside: HashSet<NodeId> = HashSet::new();
        for root in roots {
            inside.extend(self.open_ranges.of(&self.graph, root));
        }
        let mut told: HashSet<NodeId> = indices.iter().flat_map(|&index| self.certain_loops(index)).collect();
        for &effect in &after {
            told.extend(self.open_ranges.of(&self.graph, effect));
        }
        let waits = |&range: &NodeId| match inside.contains(&range) {
            true => !told.contains(&range) && (counts && *written || self.may_be_empty(range)),
            false => *written,
        };
        let mut loops: Vec<NodeId> = self.loops.iter().filter_map(|open| open.range).filter(waits).collect();
        loops.extend(self.once_loops(&inside).filter(|range| !loops.contains(range)).collect::<Vec<_>>());
        let mut sources = vec![*node];
        sources.extend(after);
        sources.extend(loops);
        let mut buffer = sources[0];
        if sources.len() > 1 {
            buffer = self.graph.add(Op::After, &sources, Arg::None).ok()?;
        }
        if self.graph.props(buffer).addrspace == Some(AddrSpace::Reg) {
            return Some(buffer);
        }
        let mut sources = vec![buffer];
        sources.extend(indices);
        self.graph.add(Op::Index, &sources, Arg::None).ok()
    }

    /// For an access that differs in the trips of a loop with a `break`, the loop inside that skips the trips after it.
    fn once_loops<'t>(&'t self, inside: &'t HashSet<NodeId>) -> impl Iterator<Item = NodeId> + 't {
        let pairs = self.loops.windows(2).filter(|pair| pair[1].is_once);
        let differs = |range: &Option<NodeId>| range.is_some_and(|range| inside.contains(&range));
        pairs.filter(move |pair| differs(&pair[0].range) && !differs(&pair[1].range)).filter_map(|pair| pair[1].range)
    }

    /// The loops on which an index depends whatever the dims turn out to be. A quotient or a condition may fold to a
    /// number once they are known; an access that depended on a loop only through it would then happen once.
    fn certain_loops(&self, index: NodeId) -> Vec<NodeId> {
        let (mut found, mut twice): (Vec<NodeId>, Vec<NodeId>) = (vec![], vec![]);
        let mut pending = vec![index];
        while let Some(node) = pending.pop() {
            let sources = self.graph.sources(node);
            let is_positive = |factor: NodeId| {
                let size = self.graph.props(factor).value.as_deref();
                size.is_some_and(|size| matches!(size, [size] if size.bounds().0 >= 1))
            };
            match (self.graph.op(node), sources) {
                (Op::Range, _) if found.contains(&node) => twice.push(node),
                (Op::Range, _) => found.push(node),
                (Op::Add, _) if self.graph.dtype(node) == DType::Index => pending.extend(sources),
                (Op::Mul, &[a, b]) if self.graph.dtype(node) == DType::Index => {
                    pending.extend(is_positive(b).then_some(a));
                    pending.extend(is_positive(a).then_some(b));
                }
                (Op::Cast, &[source]) => pending.push(source),
                (Op::Load, &[place]) if self.graph.op(place) == Op::Index => {
                    pending.extend(&self.graph.sources(place)[1..]);
                }
                _ => {}
            }
        }
        found.retain(|range| !twice.contains(range));
        found
    }

    /// Whether the loop may run zero times for some dims, or in some iteration of the loops around it.
    fn may_be_empty(&self, range: NodeId) -> bool {
        self.graph.props(self.graph.source(range, 0)).interval.int().is_none_or(|(least, _)| least < 1)
    }

    /// A load; where `gate` is false its value is `otherwise` (or 0).
    pub fn load(
        &mut self,
        memory: usize,
        indices: &[NodeId],
        gate: Option<NodeId>,
        otherwise: Option<NodeId>,
    ) -> Option<NodeId> {
        let beside: Vec<NodeId> = gate.into_iter().chain(otherwise).collect();
        let place = self.place(memory, indices, &beside, Op::Load)?;
        // A value loaded under fewer conditions is still available, unless something was stored since. The place does
        // not tell: an access does not wait for a store that its gate waits for.
        let key = (place, self.memories[memory].writes.clone());
        let known = self.reads.get(&key).into_iter().flatten();
        let is_known = |read: &&Read| otherwise.is_none() && self.gates.starts_with(&read.gates);
        if let Some(read) = known.into_iter().find(is_known) {
            return Some(read.load);
        }
        let mut sources = vec![place];
        if let Some(gate) = gate {
            let dtype = self.graph.dtype(place);
            sources.push(otherwise.unwrap_or_else(|| self.graph.constant(tinyspec_ir::Const::int(dtype, 0))));
            sources.push(gate);
        }
        let arg = Arg::Load { device: None, addrspace: AddrSpace::Reg };
        let load = self.graph.add(Op::Load, &sources, arg).ok()?;
        if otherwise.is_none() && self.unsafe_depth == 0 {
            self.reads.entry(key).or_default().push(Read { gates: self.gates.clone(), load });
        }
        let memory = &mut self.memories[memory];
        if memory.written && !memory.reads.contains(&load) {
            memory.reads.push(load);
        }
        Some(load)
    }

    /// A store or an atomic addition.
    pub fn store(
        &mut self,
        op: Op,
        memory: usize,
        indices: &[NodeId],
        value: NodeId,
        gate: Option<NodeId>,
    ) -> Option<NodeId> {
        let mut sources = vec![value];
        sources.extend(gate);
        let place = self.place(memory, indices, &sources, op)?;
        sources.insert(0, place);
        let store = self.graph.add(op, &sources, Arg::None).ok()?;
        let memory = &mut self.memories[memory];
        (memory.writes, memory.reads) = (vec![store], vec![]);
        self.effect(store);
        Some(store)
    }

    /// Records an effect.
    pub fn effect(&mut self, node: NodeId) {
        match self.loops.last_mut() {
            Some(open) => open.effects.push(node),
            None => self.effects.push(node),
        }
    }

    /// Records where an access was written.
    pub fn locate(&mut self, node: NodeId, element: &Element, indices: &Indices, view: &View) {
        if self.doubts > 0 {
            return;
        }
        // An axis is one of the whole buffer.
        let is_part = view.fixed.iter().any(Option::is_some);
        let buffer = if is_part { self.memories[view.memory].name.clone() } else { element.buffer.to_string() };
        let call = self.calls.first().map(|(_, at)| *at);
        let (at, indices, vouched) = (element.at, indices.at.clone(), self.unsafe_depth > 0);
        self.places.entry(node).or_insert(Written { at, indices, buffer, vouched, call });
    }
}
