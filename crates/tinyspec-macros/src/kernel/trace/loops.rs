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
    /// It is the loop of 0 or 1 trips in a loop that a `break` may end, and carries the variables of that loop.
    pub is_once: bool,
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

/// The values that a loop bound may depend on.
#[derive(Clone, Copy)]
enum Made {
    /// Numbers, dims and constants.
    OfSizes,
    /// Those, and variables of the loops around it.
    OfLoops,
    /// Those, as a declared maximum.
    Maximum,
    /// Anything, under a declared maximum.
    OfData,
}

impl Made {
    fn of(parallel: bool) -> Made {
        if parallel { Made::OfSizes } else { Made::OfLoops }
    }
}

/// The most nodes of a kernel in which loops are unrolled.
const LARGEST: usize = 1 << 16;
/// The most iterations of an unrolled loop.
const UNROLLED: i128 = 64;

impl Tracer<'_> {
    pub fn each(&mut self, variable: &Ident, kind: LoopKind, trips: &Trips, body: &Block, at: At) {
        if let Err(message) = self.may_open(kind) {
            self.error(at, message);
            return;
        }
        if kind == LoopKind::Unroll {
            return self.unrolled(variable, trips, &mut |tracer| tracer.body(kind, body));
        }
        if kind == LoopKind::Local && body.statements.iter().any(Statement::has_barrier) {
            return self.phases(variable, trips, body);
        }
        if kind == LoopKind::Global {
            self.check_nest(body);
        }
        let bounds = self.bounds(trips, kind.is_parallel());
        if kind == LoopKind::Serial && body.breaks() {
            self.left_early(variable, bounds, body, at);
        } else {
            self.open(kind, bounds, variable, &body.assigned());
            self.body(kind, body);
            self.close(at);
        }
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
                Statement::Barrier(at) | Statement::Break(at) | Statement::Continue(at) => *at,
                Statement::Call(call) => call.at,
                Statement::If { condition, .. } => condition.at,
                Statement::Block(block) | Statement::Unsafe(block) => block.at,
            };
            self.error(at, "nothing but `let` stands between global loops: move it into the innermost one");
        }
    }

    /// The trip count and the first value.
    pub fn bounds(&mut self, trips: &Trips, parallel: bool) -> Bounds {
        match self.try_bounds(trips, parallel) {
            Some((trips, first)) => Bounds { trips, first, is_wrong: false },
            None => {
                self.lost(trips.end.at);
                Bounds { trips: self.graph.index(1), first: None, is_wrong: true }
            }
        }
    }

    fn try_bounds(&mut self, trips: &Trips, parallel: bool) -> Option<(NodeId, Option<NodeId>)> {
        let Trips { start, end, most } = trips;
        if let (Some(most), true) = (most, parallel) {
            let message = "`at most` is for `serial` and `reduce` loops: run over all members, and put an `if` inside";
            self.error(most.at, message);
            return None;
        }
        let made = if most.is_some() { Made::OfData } else { Made::of(parallel) };
        let most = most.as_ref().map(|most| self.bound(most, Made::Maximum));
        let end_node = self.bound(end, made);
        let Some(start) = start else { return Some((self.no_more(end_node?, most)?, None)) };
        let first = self.bound(start, made)?;
        if self.graph.as_int(first) == Some(0) {
            return Some((self.no_more(end_node?, most)?, None));
        }
        let count = self.index_binary(BinaryOp::Sub, end_node?, first)?;
        Some((self.no_more(count, most)?, Some(first)))
    }

    fn bound(&mut self, bound: &Expr, made: Made) -> Option<NodeId> {
        let value = self.expression(bound);
        self.index(value, bound.at).filter(|&node| self.may_bound(node, bound.at, made))
    }

    /// The count, limited by a maximum. `most` is `Some(None)` if its mistake is reported already.
    fn no_more(&mut self, count: NodeId, most: Option<Option<NodeId>>) -> Option<NodeId> {
        let Some(most) = most else { return Some(count) };
        let most = most?;
        if most == count {
            return Some(count);
        }
        let less = self.graph.alu(Op::CmpLt, &[count, most]).ok()?;
        self.graph.alu(Op::Where, &[less, count, most]).ok()
    }

    /// Bounds of parallel loops must be known before the kernel runs; those of others may depend on enclosing loops, and
    /// under a declared maximum on data.
    fn may_bound(&mut self, bound: NodeId, at: At, made: Made) -> bool {
        if self.graph.props(bound).value.is_some() {
            return true;
        }
        let reads = self.graph.reachable(&[bound]).into_iter().any(|node| self.graph.op(node) == Op::Load);
        let message = match made {
            Made::OfData => return true,
            Made::OfLoops | Made::Maximum if !reads => return true,
            Made::OfSizes => {
                "the bounds of this loop are made of numbers, dims and constants: run over all of them, and put an `if` inside the loop"
            }
            Made::Maximum => {
                "the declared maximum of a loop does not depend on data: it is a number, a dim or a constant"
            }
            Made::OfLoops => "a loop whose bounds depend on data has a declared maximum: `serial(n[i], at most N)`",
        };
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
        self.loops.push(OpenLoop {
            kind,
            range: Some(range),
            effects: vec![],
            accumulators,
            gates,
            before,
            is_once: false,
            carried,
        });
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

    /// Opens the loop of 0 or 1 trips that is the whole body of the loop around it.
    pub fn open_once(&mut self, bounds: Bounds, variable: &Ident) {
        let carried = self.loops.last().map(|open| open.carried.clone()).unwrap_or_default();
        self.open(LoopKind::Serial, bounds, variable, &[]);
        if let Some(once) = self.loops.last_mut() {
            (once.is_once, once.carried) = (true, carried);
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

    /// Whether all that the innermost loop does was a loop of 0 or 1 trips.
    fn is_left_early(&self) -> bool {
        let Some(OpenLoop { effects, .. }) = self.loops.last() else { return false };
        matches!(effects.as_slice(), [once] if self.once.contains(once))
    }

    /// Closes the innermost loop.
    pub fn close(&mut self, at: At) {
        let carried = self.loops.last().map(|open| open.carried.clone()).unwrap_or_default();
        let mut spoiled = Vec::new();
        // The loop inside has stored them.
        let stored = if self.is_left_early() { &[][..] } else { &carried };
        for &(number, register) in stored {
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
        if open.is_once {
            self.once.insert(end);
        }
        self.behind(&open.before, &[end]);
        self.effect(end);
        for (number, register) in carried.into_iter().filter(|(number, _)| !spoiled.contains(number)) {
            self.read_back(number, register);
        }
    }

    /// Traces a copy of the body for each iteration.
    pub fn unrolled(&mut self, variable: &Ident, trips: &Trips, body: &mut dyn FnMut(&mut Self)) {
        let Trips { start, end, most } = trips;
        if let Some(most) = most {
            let message = "`at most` is for `serial` and `reduce` loops: an unroll loop has a number of trips that is written here";
            self.error(most.at, message);
            return self.for_its_mistakes(variable, body);
        }
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
        let first = start.as_ref().map_or(Some(0), &mut number);
        let (Some(first), Some(end_value)) = (first, number(end)) else {
            return self.for_its_mistakes(variable, body);
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

    /// Traces the body of an unroll loop once.
    fn for_its_mistakes(&mut self, variable: &Ident, body: &mut dyn FnMut(&mut Self)) {
        self.scopes.push(Default::default());
        self.bind(variable, Binding::Wrong);
        body(self);
        self.scopes.pop();
    }
}
