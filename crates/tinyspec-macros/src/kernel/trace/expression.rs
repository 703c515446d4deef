//! Expressions: a literal takes the dtype of the other operand; nothing else is converted implicitly.

use super::value::written;
use super::{Binding, Tracer, Value, View, overflow};
use crate::diagnostics::Place as At;
use crate::function::source::is_undefined;
use crate::function::trace::known_number;
use crate::kernel::parse::NO_REFERENCES;
use crate::kernel::syntax::*;
use proc_macro2::Ident;
use tinyspec_ir::{Builder, Const, DType, NodeId, Op};

/// The indices of an element, one for each axis of the whole buffer, and where each was written.
#[derive(Default)]
pub struct Indices {
    pub nodes: Vec<NodeId>,
    pub at: Vec<At>,
}

impl Tracer<'_> {
    pub fn expression(&mut self, expr: &Expr) -> Value {
        let value = self.try_expression(expr).unwrap_or(Value::Wrong);
        if value == Value::Wrong {
            self.lost(expr.at);
        }
        value
    }

    /// `None` after a reported mistake.
    fn try_expression(&mut self, expr: &Expr) -> Option<Value> {
        Some(match &expr.kind {
            ExprKind::Int(number, None) => Value::Int(*number),
            ExprKind::Float(number, None) => Value::Float(*number),
            ExprKind::Int(number, Some(dtype)) => Value::Node(self.of_dtype(Value::Int(*number), *dtype, expr.at)?),
            ExprKind::Float(number, Some(dtype)) => {
                Value::Node(self.of_dtype(Value::Float(*number), *dtype, expr.at)?)
            }
            ExprKind::Bool(value) => Value::Node(self.graph.constant(Const::int(DType::Bool, *value as i128))),
            ExprKind::Text(_) => {
                self.error(expr.at, "a kernel computes with numbers and bools");
                return None;
            }
            ExprKind::Name(name) => return self.name(name),
            ExprKind::Path(path) => match known_number(path) {
                Some((number, dtype)) => Value::Node(self.of_dtype(Value::Float(number), dtype, expr.at)?),
                None => Value::Node(self.constant(path)),
            },
            ExprKind::Element(element) => return self.element(element),
            ExprKind::Get(element, default) => return self.get(element, default),
            ExprKind::Unary(op, value) => {
                let traced = self.expression(value);
                return self.unary(*op, traced, value.at);
            }
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
                // The right operand is only evaluated if the left one does not decide, so its loads are gated by the
                // left one.
                let left = self.expression(a);
                let Some(left) = self.condition(left, a.at) else {
                    self.in_doubt(|tracer| tracer.look_at([&**b]));
                    return None;
                };
                let gate = if *op == BinaryOp::And { Some(left) } else { self.not(left) }?;
                self.gates.push(gate);
                let right = self.expression(b);
                self.gates.pop();
                let right = self.condition(right, b.at)?;
                let op = if *op == BinaryOp::And { Op::And } else { Op::Or };
                Value::Node(self.graph.alu(op, &[left, right]).ok()?)
            }
            ExprKind::Binary(op, a, b) => {
                let (left, right) = (self.expression(a), self.expression(b));
                self.binary(*op, left, a.at, right, b.at, expr.at)
            }
            ExprKind::Cast(value, dtype) => {
                let traced = self.expression(value);
                match traced {
                    Value::Wrong => return None,
                    Value::Int(number) if *dtype != DType::Index || dtype.is_float() => {
                        Value::Node(self.graph.constant(Const::int(*dtype, number)))
                    }
                    Value::Float(number) => Value::Node(self.graph.constant(Const::float(*dtype, number))),
                    Value::Node(node) if dtype.is_float() || !self.graph.dtype(node).is_float() => {
                        Value::Node(self.cast(node, *dtype)?)
                    }
                    Value::Node(node) if *dtype == DType::Index => {
                        let whole = self.cast(node, DType::I64)?;
                        Value::Node(self.cast(whole, DType::Index)?)
                    }
                    Value::Node(node) => Value::Node(self.cast(node, *dtype)?),
                    int => Value::Node(self.index(int, value.at)?),
                }
            }
            ExprKind::Call(name, arguments) => return self.call(name, arguments, expr.at),
            ExprKind::Reference { .. } => {
                self.error(expr.at, NO_REFERENCES);
                return None;
            }
            ExprKind::Unsafe(value) => {
                self.unsafe_depth += 1;
                self.vouched = true;
                let value = self.expression(value);
                self.unsafe_depth -= 1;
                value
            }
            ExprKind::If(condition, yes, no) => {
                let value = self.expression(condition);
                let Some(condition) = self.condition(value, condition.at) else {
                    self.in_doubt(|tracer| tracer.look_at([&**yes, &**no]));
                    return None;
                };
                let not = self.not(condition)?;
                self.gates.push(condition);
                let then = self.expression(yes);
                self.gates.pop();
                self.gates.push(not);
                let otherwise = self.expression(no);
                self.gates.pop();
                let (then, otherwise) =
                    self.unify(then, yes.at, otherwise, no.at, "the branches of an `if`", expr.at)?;
                Value::Node(self.graph.alu(Op::Where, &[condition, then, otherwise]).ok()?)
            }
        })
    }

    fn name(&mut self, name: &Ident) -> Option<Value> {
        let text = name.to_string();
        match self.lookup(&text).cloned() {
            Some(Binding::Index(node) | Binding::Scalar(node)) => Some(Value::Node(node)),
            Some(Binding::Variable(number)) => {
                if self.is_accumulating(number) {
                    self.refuse_partial(&text, name.span().into());
                    return None;
                }
                Some(self.variables[number].value)
            }
            Some(Binding::Memory(_) | Binding::View(_) | Binding::Registers { .. }) => {
                self.error(name.span(), format!("`{text}` is a buffer: read its elements, `{text}[…]`"));
                None
            }
            Some(Binding::Cell { .. } | Binding::Again { .. }) => {
                self.error(
                    name.span(),
                    format!("`{text}` differs between the iterations of the local loops, which have to agree here"),
                );
                None
            }
            Some(Binding::Wrong) => None,
            None if is_undefined(name) && is_in_capitals(&text) => {
                let message = format!(
                    "nothing here is called `{text}`: a dim of a kernel is named before `fn`, `uop! {{ <{text}> fn … }}`; another size is a number or a `const`"
                );
                self.diagnostics.error_once(name.span().into(), message);
                None
            }
            // An outer constant.
            None if is_in_capitals(&text) => Some(Value::Node(self.constant(&name.clone().into()))),
            None => {
                self.unknown(name);
                None
            }
        }
    }

    /// The indices of an element, one per axis.
    pub fn indices(&mut self, view: &View, element: &Element) -> Option<Indices> {
        let mut given = Vec::new();
        for index in &element.indices {
            let value = self.expression(index);
            given.push((self.index(value, index.at), index.at));
        }
        let rank = view.fixed.iter().filter(|fixed| fixed.is_none()).count();
        if given.len() != rank {
            let name = &element.buffer;
            let axes = if rank == 1 { "axis" } else { "axes" };
            let indices = if given.len() == 1 { "index" } else { "indices" };
            self.error(element.at, format!("`{name}` has {rank} {axes}, found {} {indices}", given.len()));
            return None;
        }
        let mut given = given.into_iter();
        let mut indices = Indices::default();
        for fixed in &view.fixed {
            let (node, at) = match fixed {
                Some((node, at)) => (Some(*node), *at),
                None => given.next()?,
            };
            indices.nodes.push(node?);
            indices.at.push(at);
        }
        Some(indices)
    }

    fn element(&mut self, element: &Element) -> Option<Value> {
        if let Some(view) = self.view(&element.buffer) {
            let indices = self.indices(&view, element)?;
            let gate = self.gate(0);
            return self.load_located(&view, element, &indices, gate, None).map(Value::Node);
        }
        match self.lookup(&element.buffer.to_string()).cloned() {
            Some(Binding::Registers { dims, first, .. }) => {
                let number = self.register(element, &dims, first)?;
                if self.is_accumulating(number) {
                    self.refuse_partial(&element.buffer.to_string(), element.at);
                    return None;
                }
                Some(self.variables[number].value)
            }
            other => {
                self.refuse_buffer(other, element);
                None
            }
        }
    }

    /// Refuses indexing into something without elements.
    pub fn refuse_buffer(&mut self, binding: Option<Binding>, element: &Element) {
        match binding {
            Some(Binding::Wrong) => {}
            Some(_) => self.no_buffer(&element.buffer),
            None => self.unknown(&element.buffer),
        }
        self.look_at(&element.indices);
    }

    pub fn load_located(
        &mut self,
        view: &View,
        element: &Element,
        indices: &Indices,
        gate: Option<NodeId>,
        otherwise: Option<NodeId>,
    ) -> Option<NodeId> {
        let gate = self.guarded(view.memory, &indices.nodes, gate);
        let load = self.load(view.memory, &indices.nodes, gate, otherwise)?;
        self.locate(load, element, indices, view);
        Some(load)
    }

    /// In `unsafe`, an access checks its bounds at run time.
    pub fn guarded(&mut self, memory: usize, indices: &[NodeId], gate: Option<NodeId>) -> Option<NodeId> {
        if self.unsafe_depth == 0 {
            return gate;
        }
        let inside = self.inside(memory, indices);
        match (gate, inside) {
            (Some(gate), Some(inside)) => self.graph.alu(Op::And, &[gate, inside]).ok(),
            (gate, inside) => gate.or(inside),
        }
    }

    /// The condition that all indices are within their axes, in exact arithmetic.
    fn inside(&mut self, memory: usize, indices: &[NodeId]) -> Option<NodeId> {
        let mut conditions = Vec::new();
        for (&index, dim) in indices.iter().zip(self.memories[memory].dims.clone()) {
            let minus_one = self.graph.index(-1);
            for (low, high) in [(minus_one, index), (index, dim)] {
                conditions.push(self.graph.alu(Op::CmpLt, &[low, high]).ok()?);
            }
            conditions.extend(overflow::conditions(&mut self.graph, index));
        }
        conditions.into_iter().map(Some).reduce(|all, one| self.graph.alu(Op::And, &[all?, one?]).ok())?
    }

    fn get(&mut self, element: &Element, default: &Expr) -> Option<Value> {
        let Some(view) = self.view(&element.buffer) else {
            let binding = self.lookup(&element.buffer.to_string()).cloned();
            self.refuse_buffer(binding, element);
            self.look_at([default]);
            return None;
        };
        let indices = self.indices(&view, element);
        let otherwise = self.expression(default);
        let indices = indices?;
        let dtype = self.graph.dtype(self.memories[view.memory].node);
        let otherwise = self.of_dtype(otherwise, dtype, default.at)?;
        let inside = self.inside(view.memory, &indices.nodes);
        let gate = match (self.gate(0), inside) {
            (Some(gate), Some(inside)) => Some(self.graph.alu(Op::And, &[gate, inside]).ok()?),
            (gate, inside) => gate.or(inside),
        };
        self.load_located(&view, element, &indices, gate, Some(otherwise)).map(Value::Node)
    }

    /// The variable of an element of a Reg buffer.
    pub fn register(&mut self, element: &Element, dims: &[i64], first: usize) -> Option<usize> {
        if element.indices.len() != dims.len() {
            let (name, rank, found) = (&element.buffer, dims.len(), element.indices.len());
            self.error(element.at, format!("`{name}` has rank {rank}, found {found} indices"));
            return None;
        }
        let mut position = 0;
        for (index, &size) in element.indices.iter().zip(dims) {
            let value = self.expression(index);
            let known = match value {
                Value::Int(number) => Some(number),
                Value::Node(node) => self.graph.as_int(node),
                _ => None,
            };
            match known {
                Some(number) if (0..size as i128).contains(&number) => {
                    position = position * size as usize + number as usize
                }
                Some(number) => {
                    self.error(index.at, format!("index {number} is outside of the axis, which has {size} elements"));
                    return None;
                }
                None if value == Value::Wrong => return None,
                // It has a number where the function is called.
                None if self.is_alone => {}
                None => {
                    self.error(
                        index.at,
                        "registers have no addresses: an index of a `Reg` buffer is a number or an `unroll` variable",
                    );
                    return None;
                }
            }
        }
        Some(first + position)
    }

    pub fn not(&mut self, condition: NodeId) -> Option<NodeId> {
        let yes = self.graph.constant(Const::int(DType::Bool, 1));
        self.graph.alu(Op::Xor, &[condition, yes]).ok()
    }

    fn unary(&mut self, op: UnaryOp, value: Value, at: At) -> Option<Value> {
        Some(match (op, value) {
            (_, Value::Wrong) => return None,
            (UnaryOp::Neg, Value::Int(number)) => Value::Int(number.checked_neg()?),
            (UnaryOp::Neg, Value::Float(number)) => Value::Float(-number),
            (UnaryOp::Not, Value::Int(number)) => Value::Int(!number),
            (UnaryOp::Not, Value::Node(node)) if self.graph.dtype(node) == DType::Bool => Value::Node(self.not(node)?),
            (op, Value::Node(node)) => {
                let dtype = self.graph.dtype(node);
                let fits = match op {
                    UnaryOp::Neg => dtype != DType::Bool && !dtype.is_unsigned(),
                    UnaryOp::Not => dtype.is_int() && dtype != DType::Index,
                };
                if !fits {
                    let found = written(dtype);
                    let message = match op {
                        UnaryOp::Neg => format!("`-` needs a signed number, found {found}"),
                        UnaryOp::Not => format!("`!` needs a bool or an integer, found {found}"),
                    };
                    self.error(at, message);
                    return None;
                }
                let ones = self.graph.constant(Const::int(dtype, -1));
                let op = if op == UnaryOp::Neg { Op::Mul } else { Op::Xor };
                Value::Node(self.graph.alu(op, &[node, ones]).ok()?)
            }
            (UnaryOp::Not, Value::Float(_)) => {
                self.error(at, "`!` needs a bool or an integer, found a float");
                return None;
            }
        })
    }
}

/// Whether the name is written like a Rust constant.
fn is_in_capitals(name: &str) -> bool {
    name.chars().all(|letter| letter.is_uppercase() || letter.is_numeric() || letter == '_')
}
