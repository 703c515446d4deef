//! `break` and `continue`.
//!
//! Code after one runs under the condition that it was not reached. A loop with a `break` carries a register that says
//! whether it still runs, and its body is a loop whose trip count is that register: 1 or 0. So a trip after the
//! `break` does nothing, and lowering leaves most of them out (`lower::hand_written::leave`).

use super::loops::Bounds;
use super::{Binding, Tracer, Value};
use crate::diagnostics::Place as At;
use crate::kernel::syntax::*;
use proc_macro2::Ident;
use std::collections::HashMap;
use tinyspec_ir::{Builder, Const, DType, NodeId, Op};

/// The name of the register; no name of the user's has a space.
const RUNNING: &str = "still running";

/// A loop whose body is being traced.
pub struct Exits {
    kind: LoopKind,
    /// It has a barrier, so that the members of a workgroup run it in step.
    is_in_step: bool,
    /// The number of conditions around its body.
    gates: usize,
    /// Where a `break` was reached.
    left: Option<NodeId>,
    /// Where a `break` or `continue` was reached.
    skipped: Option<NodeId>,
}

impl Exits {
    pub fn new(kind: LoopKind, gates: usize) -> Exits {
        Exits { kind, is_in_step: false, gates, left: None, skipped: None }
    }

    pub fn in_step(kind: LoopKind) -> Exits {
        Exits { is_in_step: true, ..Exits::new(kind, 0) }
    }
}

impl Tracer<'_> {
    /// `break;` or `continue;`
    pub fn exit(&mut self, at: At, is_break: bool) {
        let word = if is_break { "break" } else { "continue" };
        let Some(Exits { kind, is_in_step, gates, .. }) = self.exits.last() else {
            return self.error(at, format!("`{word}` stands in a loop, and there is none around it"));
        };
        if *is_in_step {
            let message =
                format!("this loop has a barrier, for which all members of a workgroup wait: `{word}` would skip it");
            return self.error(at, message);
        }
        if is_break && *kind != LoopKind::Serial {
            let message = match kind {
                LoopKind::Unroll => "an unroll loop has a fixed number of trips: `break` leaves a serial loop".into(),
                kind => format!(
                    "the iterations of a {kind} loop have no order, so that none of them ends the others: `break` leaves a serial loop"
                ),
            };
            return self.error(at, message);
        }
        let gate = match self.gate(*gates) {
            Some(gate) => gate,
            None => self.graph.constant(Const::int(DType::Bool, 1)),
        };
        let Some(exits) = self.exits.last_mut() else { return };
        let (left, skipped) = (exits.left, exits.skipped);
        let mut either = |before: Option<NodeId>| match before {
            Some(before) => self.graph.alu(Op::Or, &[before, gate]).ok(),
            None => Some(gate),
        };
        let (left, skipped) = (if is_break { either(left) } else { left }, either(skipped));
        if let Some(exits) = self.exits.last_mut() {
            (exits.left, exits.skipped) = (left, skipped);
        }
    }

    /// Statements after one that may skip them.
    pub fn behind_exit(&mut self, exit: &Statement, rest: &[Statement]) {
        let Some(skipped) = self.exits.last().and_then(|exits| exits.skipped).filter(|_| !rest.is_empty()) else {
            // Without an exit there was a mistake.
            return self.statements(rest);
        };
        if let (Statement::Break(at) | Statement::Continue(at), false) = (exit, rest.is_empty()) {
            self.error(*at, "what follows in this block never runs");
        }
        let Some(goes_on) = self.not(skipped) else { return };
        let before: Vec<Value> = self.variables.iter().map(|variable| variable.value).collect();
        self.gates.push(goes_on);
        self.statements(rest);
        self.gates.pop();
        let changed: Vec<usize> = (0..before.len()).filter(|&at| self.variables[at].value != before[at]).collect();
        for number in changed {
            self.variables[number].value = match (self.node(self.variables[number].value), self.node(before[number])) {
                (Some(new), Some(old)) => {
                    self.graph.alu(Op::Where, &[goes_on, new, old]).map_or(Value::Wrong, Value::Node)
                }
                _ => Value::Wrong,
            };
        }
    }

    /// The body of a loop, whose `continue`s end here.
    pub fn body(&mut self, kind: LoopKind, body: &Block) {
        self.exits.push(Exits::new(kind, self.gates.len()));
        self.block(body);
        self.exits.pop();
    }

    /// A serial loop with a `break`.
    pub fn left_early(&mut self, variable: &Ident, bounds: Bounds, body: &Block, at: At) {
        let one = self.graph.constant(Const::int(DType::I64, 1));
        let running = self.declare(RUNNING.to_string(), Value::Node(one), true);
        self.scopes.push(HashMap::from([(RUNNING.to_string(), Binding::Variable(running))]));
        let mut assigned = body.assigned();
        assigned.push(RUNNING.to_string());
        self.open(LoopKind::Serial, bounds, variable, &assigned);
        let still = self.index(self.variables[running].value, at);
        let trips = still.unwrap_or_else(|| self.graph.index(1));
        let once = Bounds { trips, first: None, is_wrong: false };
        self.open_once(once, &Ident::new("_", variable.span()));
        self.exits.push(Exits::new(LoopKind::Serial, self.gates.len()));
        self.block(body);
        if let Some(left) = self.exits.pop().and_then(|exits| exits.left) {
            let zero = self.graph.constant(Const::int(DType::I64, 0));
            let still = self.graph.alu(Op::Where, &[left, zero, one]);
            self.variables[running].value = still.map_or(Value::Wrong, Value::Node);
        }
        self.close(at);
        self.close(at);
        self.scopes.pop();
    }
}
