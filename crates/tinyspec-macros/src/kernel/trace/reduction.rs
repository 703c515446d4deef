//! Reduce loops: variables only accumulate, so the order of iterations is free.

use super::{Binding, Tracer, Value};
use crate::diagnostics::Place as At;
use crate::kernel::syntax::*;
use tinyspec_ir::{Arg, Axes, Builder, Const, DType, NodeId, Op};

/// An accumulator of a reduce loop.
#[derive(Clone)]
pub struct Accumulator {
    pub variable: usize,
    /// The step and the values so far. A minimum is accumulated as the complement of the maximum of complements.
    so_far: Option<(Step, NodeId)>,
}

/// A mistake whose error stands already.
struct Reported;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Add,
    Mul,
    Max,
    Min,
}

impl Step {
    fn op(self) -> Op {
        match self {
            Step::Add => Op::Add,
            Step::Mul => Op::Mul,
            Step::Max | Step::Min => Op::Max,
        }
    }
}

impl Accumulator {
    pub fn new(variable: usize) -> Accumulator {
        Accumulator { variable, so_far: None }
    }
}

impl Tracer<'_> {
    /// Whether the innermost loop accumulates into this variable.
    pub fn is_accumulating(&self, variable: usize) -> bool {
        let open = self.loops.iter().rev().filter(|open| open.kind == LoopKind::Reduce);
        open.flat_map(|open| &open.accumulators).any(|other| other.variable == variable)
    }

    /// `variable op= value` in a reduce loop.
    pub fn accumulate(&mut self, number: usize, op: Option<BinaryOp>, value: &Expr, at: At) {
        let name = self.variables[number].name.clone();
        let form = match (op, &value.kind) {
            (Some(BinaryOp::Add), _) => Some((Step::Add, value, false)),
            (Some(BinaryOp::Sub), _) => Some((Step::Add, value, true)),
            (Some(BinaryOp::Mul), _) => Some((Step::Mul, value, false)),
            (None, _) => match self.accumulation(number, value) {
                Ok(form) => form.map(|(step, operand)| (step, operand, false)),
                Err(Reported) => {
                    self.variables[number].value = Value::Wrong;
                    return;
                }
            },
            _ => None,
        };
        let Some((step, operand, negative)) = form else {
            self.variables[number].value = Value::Wrong;
            return self.refuse_accumulation(&name, at);
        };
        let traced = self.expression(operand);
        let dtype = self.dtype(self.variables[number].value);
        let Some(mut node) = dtype.and_then(|dtype| self.of_dtype(traced, dtype, operand.at)) else {
            self.variables[number].value = Value::Wrong;
            return;
        };
        if negative {
            let Some(negated) = self.negated(node) else { return self.lost(at) };
            node = negated;
        }
        self.take_up(number, step, node, at);
    }

    fn refuse_accumulation(&mut self, name: &str, at: At) {
        let message = format!(
            "a reduce loop runs in any order: `{name}` can only accumulate, by `+=`, `-=`, `*=`, \
             `{name} = max({name}, …)` or `min`\nuse `serial` for a loop whose iterations build on each other"
        );
        self.error(at, message);
    }

    fn negated(&mut self, node: NodeId) -> Option<NodeId> {
        let minus = self.graph.constant(Const::int(self.graph.dtype(node), -1));
        self.graph.alu(Op::Mul, &[node, minus]).ok()
    }

    /// Reverses the order of all values, so that a minimum becomes a maximum.
    fn complement(&mut self, node: NodeId) -> Option<NodeId> {
        let dtype = self.graph.dtype(node);
        if dtype.is_float() {
            return self.negated(node);
        }
        let ones = self.graph.constant(Const::int(dtype, if dtype == DType::Bool { 1 } else { -1 }));
        self.graph.alu(Op::Xor, &[node, ones]).ok()
    }

    fn take_up(&mut self, number: usize, step: Step, value: NodeId, at: At) {
        let position = self.loops.iter().rposition(|open| open.kind == LoopKind::Reduce);
        let Some(position) = position else { return };
        let mut value = value;
        if step == Step::Min {
            let Some(complement) = self.complement(value) else { return self.lost(at) };
            value = complement;
        }
        if let Some(gate) = self.gate(self.loops[position].gates) {
            let identity = self.identity(step.op(), self.graph.dtype(value));
            let Ok(gated) = self.graph.alu(Op::Where, &[gate, value, identity]) else { return self.lost(at) };
            value = gated;
        }
        let accumulators = &self.loops[position].accumulators;
        let Some(index) = accumulators.iter().position(|other| other.variable == number) else { return };
        let before = accumulators[index].so_far;
        let total = match before {
            Some((other, _)) if other != step => {
                let name = self.variables[number].name.clone();
                return self.error(at, format!("one reduce loop accumulates `{name}` in one way only"));
            }
            Some((_, before)) => self.graph.alu(step.op(), &[before, value]).ok(),
            None => Some(value),
        };
        if let Some(total) = total {
            self.loops[position].accumulators[index].so_far = Some((step, total));
        }
    }

    fn identity(&mut self, op: Op, dtype: DType) -> NodeId {
        let value = match op {
            Op::Mul => Const::int(dtype, 1),
            Op::Max => match dtype.int_range() {
                Some((least, _)) => Const::int(dtype, least),
                None => Const::float(dtype, f64::NEG_INFINITY),
            },
            _ => Const::int(dtype, 0),
        };
        self.graph.constant(value)
    }

    /// Ends the loop: its accumulators become Reduces, which are returned.
    pub fn reduce(&mut self, range: NodeId, accumulators: Vec<Accumulator>, gates: usize, at: At) -> Vec<NodeId> {
        debug_assert!(self.gates.len() >= gates);
        let mut reduces = Vec::new();
        for Accumulator { variable, so_far } in accumulators {
            let Some((step, value)) = so_far else { continue };
            let op = step.op();
            let dtype = self.graph.dtype(value);
            let wide = dtype.accumulator();
            let reduce = self.cast(value, wide).and_then(|value| {
                let arg = Arg::Reduce { op, axes: Axes::new() };
                self.graph.add(Op::Reduce, &[value, range], arg).ok()
            });
            let Some(reduce) = reduce else { continue };
            reduces.push(reduce);
            let Some(mut total) = self.cast(reduce, dtype) else { continue };
            if step == Step::Min {
                let Some(complement) = self.complement(total) else { continue };
                total = complement;
            }
            if self.is_accumulating(variable) {
                self.take_up(variable, step, total, at);
                continue;
            }
            let Some(start) = self.node(self.variables[variable].value) else { continue };
            let is_identity = self.graph.as_const(start) == self.constant_identity(step, dtype);
            let combined = match step {
                _ if is_identity => Some(total),
                Step::Min => self.least(start, total),
                _ => self.graph.alu(op, &[start, total]).ok(),
            };
            if let Some(combined) = combined {
                self.variables[variable].value = Value::Node(combined);
            }
        }
        reduces
    }

    /// The identity element if the variable starts from it; +0 counts for a sum.
    fn constant_identity(&mut self, step: Step, dtype: DType) -> Option<Const> {
        match step {
            Step::Min => Some(match dtype.int_range() {
                Some((_, greatest)) => Const::int(dtype, greatest),
                None => Const::float(dtype, f64::INFINITY),
            }),
            _ => {
                let node = self.identity(step.op(), dtype);
                self.graph.as_const(node)
            }
        }
    }

    pub fn least(&mut self, a: NodeId, b: NodeId) -> Option<NodeId> {
        let a = self.complement(a)?;
        let b = self.complement(b)?;
        let greatest = self.graph.alu(Op::Max, &[a, b]).ok()?;
        self.complement(greatest)
    }

    pub fn cast(&mut self, value: NodeId, dtype: DType) -> Option<NodeId> {
        if self.graph.dtype(value) == dtype {
            return Some(value);
        }
        self.graph.add(Op::Cast, &[value], Arg::DType(dtype)).ok()
    }

    /// `v + e`, `v * e`, `max(v, e)`, `min(v, e)` of a variable or a register, either way around.
    fn accumulation<'e>(&mut self, number: usize, value: &'e Expr) -> Result<Option<(Step, &'e Expr)>, Reported> {
        let (step, a, b) = match &value.kind {
            ExprKind::Binary(BinaryOp::Add, a, b) => (Step::Add, &**a, &**b),
            ExprKind::Binary(BinaryOp::Mul, a, b) => (Step::Mul, &**a, &**b),
            ExprKind::Call(function, arguments) => match (function.to_string().as_str(), arguments.as_slice()) {
                ("max" | "maximum", [a, b]) => (Step::Max, a, b),
                ("min" | "minimum", [a, b]) => (Step::Min, a, b),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        Ok(match (self.is_variable(number, a)?, self.is_variable(number, b)?) {
            (true, false) => Some((step, b)),
            (false, true) => Some((step, a)),
            _ => None,
        })
    }

    fn is_variable(&mut self, number: usize, expr: &Expr) -> Result<bool, Reported> {
        match &expr.kind {
            ExprKind::Name(name) => {
                Ok(matches!(self.lookup(&name.to_string()), Some(Binding::Variable(other)) if *other == number))
            }
            ExprKind::Element(element) => match self.lookup(&element.buffer.to_string()).cloned() {
                Some(Binding::Registers { dims, first, .. }) => {
                    let register = self.register(element, &dims, first);
                    register.map(|register| register == number).ok_or(Reported)
                }
                _ => Ok(false),
            },
            _ => Ok(false),
        }
    }

    /// Refuses a read of an accumulator inside its loop.
    pub fn refuse_partial(&mut self, name: &str, at: At) {
        let message = format!(
            "`{name}` has no value inside of the reduce loop that accumulates it: read it after the loop, or use `serial`"
        );
        self.error(at, message);
    }
}
