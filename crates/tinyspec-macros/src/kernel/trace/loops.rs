//! Loops: their bodies and their loop-carried variables.

use super::effects::State;
use super::reduction::Accumulator;
use super::{Binding, Tracer, Value};
use crate::diagnostics::Place as At;
use crate::kernel::syntax::*;
use proc_macro2::Ident;
use tinyspec_ir::{AddrSpace, Arg, Builder, DType, NodeId, Op};

/// A loop that is not closed yet.
pub struct OpenLoop {
    pub kind: LoopKind,
    /// `None` once it is unrolled.
    pub range: Option<NodeId>,
    pub effects: Vec<NodeId>,
    /// The accumulators of a reduce loop.
    pub accumulators: Vec<Accumulator>,
    /// The number of conditions around the loop.
    pub gates: usize,
    before: State,
    /// Loop-carried variables, and the registers that hold them.
    carried: Vec<(usize, usize)>,
}

/// The bounds of a loop.
#[derive(Clone, Copy)]
pub struct Bounds {
    pub trips: NodeId,
    pub first: Option<NodeId>,
    /// The bounds are wrong: the body is traced once for its mistakes, and the variable has no value.
    pub is_wrong: bool,
}

/// The most nodes of a kernel in which loops are unrolled.
const LARGEST: usize = 1 << 16;
/// The most iterations of an unrolled loop.
const UNROLLED: i128 = 64;

impl Tracer<'_> {
    pub fn each(&mut self, variable: &Ident, kind: LoopKind, start: Option<&Expr>, end: &Expr, body: &Block, at: At) {
        if let Err(message) = self.may_open(kind) {
            self.error(at, message);
            return;
        }
        if kind == LoopKind::Unroll {
            return self.unrolled(variable, start, end, &mut |tracer| tracer.block(body));
        }
        if kind == LoopKind::Local && body.statements.iter().any(Statement::has_barrier) {
            return self.phases(variable, start, end, body);
        }
        if kind == LoopKind::Global {
            self.check_nest(body);
        }
        let bounds = self.bounds(start, end, kind.is_parallel());
        self.open(kind, bounds, variable, &body.assigned());
        self.block(body);
        self.close(at);
        let is_local = |kind: LoopKind| kind == LoopKind::Local;
        let mut has_members = is_local(kind);
        body.statements.iter().for_each(|statement| {
            statement.walk(&mut |inner| has_members |= matches!(inner, Statement::For { kind, .. } if is_local(*kind)));
        });
        if has_members && kind != LoopKind::Global && self.loops.iter().all(|open| !is_local(open.kind)) {
            self.barrier();
        }
    }

    /// Which loops may stand in which.
    fn may_open(&self, kind: LoopKind) -> Result<(), String> {
        let inside = |other: LoopKind| self.loops.iter().any(|open| open.kind == other);
        match kind {
            LoopKind::Global => {
                let around = self.loops.iter().find(|open| open.kind != LoopKind::Global);
                match around {
                    Some(around) => Err(format!(
                        "a global loop cannot stand in a {} loop: global loops are the outermost",
                        around.kind
                    )),
                    None if !self.gates.is_empty() => {
                        Err("a global loop cannot stand in an `if`: put the condition inside of the loop".into())
                    }
                    None => Ok(()),
                }
            }
            LoopKind::Local if inside(LoopKind::Reduce) => {
                Err("a local loop cannot stand in a reduce loop: use `serial` for the outer one".into())
            }
            LoopKind::Serial if inside(LoopKind::Reduce) => {
                Err("a serial loop cannot stand in a reduce loop: use `serial` for the outer one".into())
            }
            LoopKind::Local if !self.calls.is_empty() || self.is_alone => Err(
                "a function of a kernel has serial, reduce and unroll loops: a local loop stands in the kernel itself"
                    .into(),
            ),
            _ => Ok(()),
        }
    }

    /// Grid loops form one index space, so only `let`s may separate them.
    fn check_nest(&mut self, body: &Block) {
        let is_global = |statement: &Statement| matches!(statement, Statement::For { kind: LoopKind::Global, .. });
        if !body.statements.iter().any(is_global) {
            return;
        }
        let siblings = body.statements.iter().filter(|statement| is_global(statement)).skip(1);
        for sibling in siblings {
            if let Statement::For { at, .. } = sibling {
                let message = "two global loops side by side in one: a grid is one space; write the outer loop again around the second, which then waits for all of the first";
                self.error(*at, message);
            }
        }
        for statement in body.statements.iter().filter(|statement| !is_global(statement)) {
            let at = match statement {
                Statement::Let { mutable: false, value, .. } if !value.changes_buffers() => continue,
                Statement::Refused(_) => continue,
                Statement::Let { name, .. } | Statement::Declare { name, .. } => name.span().into(),
                Statement::Assign { at, .. } | Statement::For { at, .. } | Statement::AtomicAdd { at, .. } => *at,
                Statement::Barrier(at) => *at,
                Statement::Call(call) => call.at,
                Statement::If { condition, .. } => condition.at,
                Statement::Block(block) | Statement::Unsafe(block) => block.at,
            };
            self.error(at, "nothing but `let` stands between global loops: move it into the innermost one");
        }
    }

    /// The trip count and the first value.
    pub fn bounds(&mut self, start: Option<&Expr>, end: &Expr, parallel: bool) -> Bounds {
        match self.try_bounds(start, end, parallel) {
            Some((trips, first)) => Bounds { trips, first, is_wrong: false },
            None => {
                self.lost(end.at);
                Bounds { trips: self.graph.index(1), first: None, is_wrong: true }
            }
        }
    }

    fn try_bounds(&mut self, start: Option<&Expr>, end: &Expr, parallel: bool) -> Option<(NodeId, Option<NodeId>)> {
        let value = self.expression(end);
        let end_node = self.index(value, end.at).filter(|&node| self.may_bound(node, end.at, parallel));
        let Some(start) = start else { return Some((end_node?, None)) };
        let value = self.expression(start);
        let first = self.index(value, start.at).filter(|&node| self.may_bound(node, start.at, parallel))?;
        if self.graph.as_int(first) == Some(0) {
            return Some((end_node?, None));
        }
        let minus = self.index_binary(BinaryOp::Sub, end_node?, first)?;
        Some((minus, Some(first)))
    }

    /// Bounds of parallel loops must be known before the kernel runs; those of others may depend on enclosing loops.
    fn may_bound(&mut self, bound: NodeId, at: At, parallel: bool) -> bool {
        if self.graph.props(bound).value.is_some() {
            return true;
        }
        let reads = self.graph.reachable(&[bound]).into_iter().any(|node| self.graph.op(node) == Op::Load);
        if !parallel && !reads {
            return true;
        }
        let made = if parallel { "numbers, dims and constants" } else { "numbers, dims, constants and loop variables" };
        let message = format!(
            "the bounds of this loop are made of {made}: run over all of them, and put an `if` inside the loop"
        );
        self.error(at, message);
        false
    }

    /// Opens a loop and binds its variable. `assigned` are the names that its body assigns.
    pub fn open(&mut self, kind: LoopKind, bounds: Bounds, variable: &Ident, assigned: &[String]) {
        let mut carried = Vec::new();
        if kind == LoopKind::Serial {
            for number in self.outer_variables(assigned) {
                let Some(value) = self.node(self.variables[number].value) else { continue };
                let value = self.storable(value);
                let dtype = self.graph.dtype(value);
                let name = self.variables[number].name.clone();
                let at = At::from(variable.span());
                let Some(register) = self.own_memory(name, AddrSpace::Reg, dtype, vec![], at) else { continue };
                let outside = self.loops.last().map_or(self.effects.len(), |open| open.effects.len());
                self.store(Op::Store, register, &[], value, None);
                // Loads from the register depend on this Store; it is not an effect of the kernel by itself.
                match self.loops.last_mut() {
                    Some(open) => open.effects.truncate(outside),
                    None => self.effects.truncate(outside),
                }
                carried.push((number, register));
            }
        }
        let before = self.state();
        let made = self.graph.range(bounds.trips, self.next_range, kind.axis());
        self.next_range += 1;
        let range = made.unwrap_or_else(|error| unreachable!("{error}"));
        self.loop_names.insert(range, variable.to_string());
        let accumulators = match kind {
            LoopKind::Reduce => self.outer_variables(assigned).into_iter().map(Accumulator::new).collect(),
            _ => vec![],
        };
        let gates = self.gates.len();
        self.loops.push(OpenLoop { kind, range: Some(range), effects: vec![], accumulators, gates, before, carried });
        self.scopes.push(Default::default());
        let value = match bounds.first {
            Some(start) => self.index_binary(BinaryOp::Add, range, start).unwrap_or(range),
            None => range,
        };
        self.bind(variable, if bounds.is_wrong { Binding::Wrong } else { Binding::Index(value) });
        for (number, register) in self.loops.last().map(|open| open.carried.clone()).unwrap_or_default() {
            self.read_back(number, register);
        }
    }

    /// The variables that these names refer to; a Reg buffer has one per element.
    fn outer_variables(&self, names: &[String]) -> Vec<usize> {
        let mut found = Vec::new();
        for name in names {
            match self.lookup(name) {
                Some(Binding::Variable(number)) => found.push(*number),
                Some(Binding::Registers { dims, first, .. }) => {
                    found.extend(*first..*first + dims.iter().product::<i64>() as usize);
                }
                _ => {}
            }
        }
        found
    }

    /// The value in a dtype that memory holds: an index is stored as i64.
    pub fn storable(&mut self, value: NodeId) -> NodeId {
        if self.graph.dtype(value) != DType::Index {
            return value;
        }
        let cast = self.graph.add(Op::Cast, &[value], Arg::DType(DType::I64));
        cast.unwrap_or_else(|error| unreachable!("{error}"))
    }

    /// Loads the variable's value from its register.
    pub fn read_back(&mut self, number: usize, memory: usize) {
        if let Some(value) = self.load(memory, &[], None, None) {
            self.set_loaded(number, value);
        }
    }

    /// As [`Tracer::read_back`], with the dtype the variable had.
    pub fn set_loaded(&mut self, number: usize, loaded: NodeId) {
        let mut value = loaded;
        if self.dtype(self.variables[number].value) == Some(DType::Index) {
            let cast = self.graph.add(Op::Cast, &[value], Arg::DType(DType::Index));
            value = cast.unwrap_or_else(|error| unreachable!("{error}"));
        }
        self.variables[number].value = Value::Node(value);
    }

    /// Closes the innermost loop.
    pub fn close(&mut self, at: At) {
        let carried = self.loops.last().map(|open| open.carried.clone()).unwrap_or_default();
        let mut spoiled = Vec::new();
        for &(number, register) in &carried {
            let Some(value) = self.node(self.variables[number].value) else {
                spoiled.push(number);
                continue;
            };
            let value = self.storable(value);
            self.store(Op::Store, register, &[], value, None);
        }
        self.scopes.pop();
        let Some(open) = self.loops.pop() else { return };
        let Some(range) = open.range else { return };
        if open.kind == LoopKind::Reduce {
            let results = self.reduce(range, open.accumulators, open.gates, at);
            self.behind(&open.before, &results);
            return;
        }
        let body = match open.effects.as_slice() {
            [] => {
                self.behind(&open.before, &[]);
                return;
            }
            [effect] => Ok(*effect),
            effects => self.graph.add(Op::Group, effects, Arg::None),
        };
        let end = body.and_then(|body| self.graph.add(Op::End, &[body, range], Arg::None));
        let end = end.unwrap_or_else(|error| unreachable!("{error}"));
        self.behind(&open.before, &[end]);
        self.effect(end);
        for (number, register) in carried.into_iter().filter(|(number, _)| !spoiled.contains(number)) {
            self.read_back(number, register);
        }
    }

    /// Traces a copy of the body for each iteration.
    pub fn unrolled(&mut self, variable: &Ident, start: Option<&Expr>, end: &Expr, body: &mut dyn FnMut(&mut Self)) {
        let mut number = |bound: &Expr| {
            let value = self.expression(bound);
            let known = match value {
                Value::Int(number) => Some(number),
                Value::Node(node) => self.graph.as_int(node),
                _ => None,
            };
            if known.is_none() && value != Value::Wrong {
                self.error(bound.at, "an unroll loop has a number of trips that is written here: `unroll(4)`");
            }
            known
        };
        let first = start.map_or(Some(0), &mut number);
        let (Some(first), Some(end_value)) = (first, number(end)) else {
            // Once, for its mistakes.
            self.scopes.push(Default::default());
            self.bind(variable, Binding::Wrong);
            body(self);
            self.scopes.pop();
            return;
        };
        if end_value - first > UNROLLED {
            let message =
                format!("{} trips are too many to unroll (at most {UNROLLED}): use `serial`", end_value - first);
            return self.error(end.at, message);
        }
        for trip in first..end_value {
            if self.graph.len() > LARGEST {
                return self.error(end.at, "the unrolled kernel is too large: use `serial` for one of its loops");
            }
            self.scopes.push(Default::default());
            let number = self.declare(variable.to_string(), Value::Int(trip), false);
            self.bind(variable, Binding::Variable(number));
            body(self);
            self.scopes.pop();
        }
    }
}
