//! Local loops with barriers: the loop nest is split at its barriers, so that no iteration starts a phase before all
//! have finished the previous one. A value that is live across a barrier is rematerialised if it is only arithmetic,
//! and otherwise spilled to local memory, to one cell for each iteration.

use super::exits::Exits;
use super::loops::Bounds;
use super::{Binding, Tracer, Value};
use crate::diagnostics::Place as At;
use crate::kernel::syntax::*;
use proc_macro2::Ident;
use std::collections::HashMap;
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{AddrSpace, Arg, Builder, DType, NodeId, Op};

/// A perfect nest of local loops.
struct Nest<'a> {
    loops: Vec<(&'a Ident, Bounds)>,
}

impl Tracer<'_> {
    pub fn phases(&mut self, variable: &Ident, trips: &Trips, body: &Block) {
        let mut nest = Nest { loops: vec![] };
        let (mut variable, mut trips, mut body) = (variable, trips, body);
        loop {
            let bounds = self.bounds(trips, true);
            nest.loops.push((variable, bounds));
            let [Statement::For { variable: inner, kind: LoopKind::Local, trips: of_inner, body: inside, .. }] =
                body.statements.as_slice()
            else {
                break;
            };
            (variable, trips, body) = (inner, of_inner, inside);
        }
        self.scopes.push(HashMap::new());
        self.exits.push(Exits::in_step(LoopKind::Local));
        self.phased(&nest, &body.statements, &[]);
        self.exits.pop();
        self.scopes.pop();
        self.barrier();
    }

    /// Statements of the innermost loop; `later` are the names that are live after them.
    fn phased(&mut self, nest: &Nest, statements: &[Statement], later: &[String]) {
        let mut begin = 0;
        for (position, statement) in statements.iter().enumerate() {
            if !statement.has_barrier() {
                continue;
            }
            let mut needed = mentioned(&statements[position..]);
            needed.extend_from_slice(later);
            self.phase(nest, &statements[begin..position], &needed);
            // A barrier where the nest is split.
            self.barrier();
            begin = position + 1;
            let mut needed = mentioned(&statements[begin..]);
            needed.extend_from_slice(later);
            match statement {
                Statement::Barrier(_) => {}
                Statement::For { kind: LoopKind::Serial, variable, trips, body, at } => {
                    let bounds = self.bounds(trips, false);
                    self.open(LoopKind::Serial, bounds, variable, &[]);
                    self.phased(nest, &body.statements, &needed);
                    self.close(*at);
                }
                Statement::For { kind: LoopKind::Unroll, variable, trips, body, .. } => {
                    self.unrolled(variable, trips, &mut |tracer| {
                        tracer.phased(nest, &body.statements, &needed);
                        tracer.barrier();
                    });
                }
                Statement::Block(inner) => {
                    self.scopes.push(HashMap::new());
                    self.phased(nest, &inner.statements, &needed);
                    self.scopes.pop();
                }
                Statement::Unsafe(inner) => {
                    self.unsafe_depth += 1;
                    self.vouched = true;
                    self.scopes.push(HashMap::new());
                    self.phased(nest, &inner.statements, &needed);
                    self.scopes.pop();
                    self.unsafe_depth -= 1;
                }
                other => other.walk(&mut |inner| {
                    if let Statement::Barrier(at) = inner {
                        let message = match other {
                            Statement::If { .. } => {
                                "`barrier()` in an `if`: iterations that skip it would leave the others waiting; move it out"
                            }
                            _ => "`barrier()` stands directly in local loops, or in a serial or unroll loop in those",
                        };
                        self.error(*at, message);
                    }
                }),
            }
            self.barrier();
        }
        self.phase(nest, &statements[begin..], later);
    }

    /// A barrier: all effects so far are done before any that follow.
    pub fn barrier(&mut self) {
        let mut before: Vec<NodeId> = self.loops.last().map_or(&self.effects, |open| &open.effects).clone();
        for memory in &self.memories {
            before.extend(memory.writes.iter().filter(|write| !before.contains(write)).copied().collect::<Vec<_>>());
        }
        // Nothing has happened since the last one.
        let is_done = |&effect: &NodeId| {
            self.graph.op(effect) == Op::Barrier
                || before
                    .iter()
                    .any(|&other| self.graph.op(other) == Op::Barrier && self.graph.sources(other).contains(&effect))
        };
        if before.iter().all(is_done) {
            return;
        }
        let barrier = self.graph.add(Op::Barrier, &before, Arg::None).unwrap_or_else(|error| unreachable!("{error}"));
        for memory in &mut self.memories {
            if !memory.writes.is_empty() {
                memory.writes = vec![barrier];
            }
        }
    }

    /// Statements without barriers, in their own loops.
    fn phase(&mut self, nest: &Nest, statements: &[Statement], later: &[String]) {
        if statements.is_empty() {
            return;
        }
        let at = At::from(nest.loops[0].0.span());
        let block = Block { statements: statements.to_vec(), at };
        let assigned = block.assigned();
        let mut ranges = Vec::new();
        for &(variable, bounds) in &nest.loops {
            self.open(LoopKind::Local, bounds, variable, &[]);
            ranges.extend(self.loops.last().and_then(|open| open.range));
        }
        let mut cells: Vec<(usize, usize)> = Vec::new();
        for name in mentioned(statements) {
            match self.lookup(&name).cloned() {
                Some(Binding::Cell { memory, dtype, mutable }) => {
                    let Some(mut value) = self.load(memory, &ranges, None, None) else { continue };
                    if dtype == DType::Index {
                        let Some(index) = self.cast(value, DType::Index) else { continue };
                        value = index;
                    }
                    let number = self.declare(name.clone(), Value::Node(value), mutable);
                    self.bind(&Ident::new(&name, at.start), Binding::Variable(number));
                    if assigned.contains(&name) {
                        cells.push((number, memory));
                    }
                }
                Some(Binding::Again { node, ranges: old }) => {
                    let replaced = old.iter().copied().zip(ranges.iter().copied()).collect();
                    let Ok(nodes) = substitute(&mut self.graph, &[node], &replaced) else { continue };
                    let number = self.declare(name.clone(), Value::Node(nodes[0]), false);
                    self.bind(&Ident::new(&name, at.start), Binding::Variable(number));
                }
                _ => {}
            }
        }
        self.scopes.push(HashMap::new());
        self.statements(statements);
        let mut kept: Vec<(String, Binding)> = Vec::new();
        for (number, memory) in cells {
            let Some(value) = self.node(self.variables[number].value) else {
                kept.push((self.variables[number].name.clone(), Binding::Wrong));
                continue;
            };
            let value = self.storable(value);
            self.store(Op::Store, memory, &ranges, value, None);
        }
        for (name, binding) in self.scopes.pop().unwrap_or_default() {
            if later.contains(&name) {
                let binding = self.keep(&name, binding, nest, &ranges, at);
                kept.push((name, binding));
            }
        }
        for _ in &nest.loops {
            self.close(at);
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.extend(kept);
        }
    }

    /// The binding of a name in the phases that follow.
    fn keep(&mut self, name: &str, binding: Binding, nest: &Nest, ranges: &[NodeId], at: At) -> Binding {
        let number = match binding {
            Binding::Variable(number) => number,
            Binding::Registers { .. } => {
                self.error(
                    at,
                    format!("the Reg buffer `{name}` does not outlive a barrier: use variables or a `Local` buffer"),
                );
                return Binding::Wrong;
            }
            other => return other,
        };
        let variable = self.variables[number].clone();
        let node = match variable.value {
            Value::Node(node) => node,
            Value::Wrong => return Binding::Wrong,
            _ => return Binding::Variable(number),
        };
        let varies = self.open_ranges.of(&self.graph, node).iter().any(|range| ranges.contains(range));
        if !variable.mutable && !varies {
            let depth = self.loops.len() - nest.loops.len();
            self.variables[number].depth = depth;
            return Binding::Variable(number);
        }
        let reads = self.graph.reachable(&[node]).into_iter().any(|below| self.graph.op(below) == Op::Load);
        if !variable.mutable && !reads {
            return Binding::Again { node, ranges: ranges.to_vec() };
        }
        let dtype = self.graph.dtype(node);
        let value = self.storable(node);
        let dims: Vec<NodeId> = nest.loops.iter().map(|(_, bounds)| bounds.trips).collect();
        let stored = self.graph.dtype(value);
        let Some(memory) = self.own_memory(name.to_string(), AddrSpace::Local, stored, dims, at) else {
            return Binding::Wrong;
        };
        self.store(Op::Store, memory, ranges, value, None);
        Binding::Cell { memory, dtype, mutable: variable.mutable }
    }
}
