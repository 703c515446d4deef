//! Values during the trace: a literal has no dtype until it is used with another operand.

use super::Tracer;
use crate::diagnostics::Place as At;
use tinyspec_ir::{Arg, Builder, Const, DType, NodeId, Op};

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// An integer literal, which takes the dtype of the other operand.
    Int(i128),
    /// The same for a float literal.
    Float(f64),
    Node(NodeId),
    /// Its mistake is reported already.
    Wrong,
}

/// A variable of a kernel.
#[derive(Clone)]
pub struct Variable {
    pub name: String,
    pub value: Value,
    pub mutable: bool,
    /// The number of loops around its declaration.
    pub depth: usize,
}

impl Tracer<'_> {
    /// The value as a node; a bare literal becomes i32 or f32.
    pub fn node(&mut self, value: Value) -> Option<NodeId> {
        match value {
            Value::Int(number) => Some(self.graph.constant(Const::int(DType::I32, number))),
            Value::Float(number) => Some(self.graph.constant(Const::float(DType::F32, number))),
            Value::Node(node) => Some(node),
            Value::Wrong => None,
        }
    }

    /// The dtype, if known.
    pub fn dtype(&self, value: Value) -> Option<DType> {
        match value {
            Value::Node(node) => Some(self.graph.dtype(node)),
            _ => None,
        }
    }

    /// Help for an outer constant where a float of this dtype is expected.
    pub fn help_for_constant(&self, value: Value, wanted: DType) -> Option<String> {
        let Value::Node(node) = value else { return None };
        if !wanted.is_float() {
            return None;
        }
        let Arg::Param { slot, .. } = *self.graph.arg(node) else { return None };
        let path = self.constants.get(slot.checked_sub(self.first_constant)? as usize)?;
        let name = crate::diagnostics::source_text(path);
        let passed = path.segments.last()?.ident.to_string().to_lowercase();
        Some(format!(
            "`{name}` comes from outside, where a kernel takes only integers: pass it as a scalar, `{passed}: {wanted}`, or, if it is an integer, write `{name} as {wanted}`"
        ))
    }

    /// The value's kind, for messages.
    pub fn kind(&self, value: Value) -> String {
        match value {
            Value::Int(_) => "an integer".into(),
            Value::Float(_) => "a float".into(),
            Value::Node(node) => self.graph.dtype(node).to_string(),
            Value::Wrong => "nothing".into(),
        }
    }

    /// The value in `dtype`; a literal takes it, anything else must have it.
    pub fn of_dtype(&mut self, value: Value, dtype: DType, at: At) -> Option<NodeId> {
        let constant = match value {
            Value::Wrong => return None,
            Value::Node(node) if self.graph.dtype(node) == dtype => return Some(node),
            Value::Int(number) if dtype.is_float() => Some(Const::float(dtype, number as f64)),
            Value::Int(number) => {
                let range = dtype.int_range().filter(|_| dtype != DType::Bool);
                match range {
                    Some((low, high)) if low <= number && number <= high => Some(Const::int(dtype, number)),
                    Some(_) => {
                        self.error(at, format!("the number {number} does not fit {dtype}"));
                        return None;
                    }
                    None => None,
                }
            }
            Value::Float(number) if dtype.is_float() => Some(Const::float(dtype, number)),
            _ => None,
        };
        match constant {
            Some(constant) => Some(self.graph.constant(constant)),
            None => {
                let is_f64 = matches!(value, Value::Node(node) if self.graph.dtype(node) == DType::F64);
                let message = match self.help_for_constant(value, dtype) {
                    Some(help) => help,
                    // A variable has the dtype of its first value.
                    None if is_f64 && dtype == DType::F32 => {
                        "expected f32, found f64: cast it with `as f32`, or begin with an f64, as in `0.0f64`"
                            .to_string()
                    }
                    None => {
                        format!("expected {dtype}, found {}: cast it with `as {}`", self.kind(value), written(dtype))
                    }
                };
                self.error(at, message);
                None
            }
        }
    }

    /// The value as an index: integers of data are converted.
    pub fn index(&mut self, value: Value, at: At) -> Option<NodeId> {
        match value {
            Value::Wrong => None,
            Value::Int(number) => match i64::try_from(number) {
                Ok(number) => Some(self.graph.index(number)),
                Err(_) => {
                    self.error(at, format!("{number} is not an index"));
                    None
                }
            },
            Value::Node(node) if self.graph.dtype(node) == DType::Index => Some(node),
            Value::Node(node) if self.graph.dtype(node).is_int() => {
                self.graph.add(Op::Cast, &[node], Arg::DType(DType::Index)).ok()
            }
            other => {
                let found = self.kind(other);
                self.error(at, format!("an index is an integer, found {found}"));
                None
            }
        }
    }

    /// A condition.
    pub fn condition(&mut self, value: Value, at: At) -> Option<NodeId> {
        match value {
            Value::Wrong => None,
            Value::Node(node) if self.graph.dtype(node) == DType::Bool => Some(node),
            other => {
                let found = self.kind(other);
                self.error(at, format!("a condition is a bool, found {found}: compare it, as in `x != 0`"));
                None
            }
        }
    }
}

/// The dtype as users write it.
pub fn written(dtype: DType) -> &'static str {
    if dtype == DType::Index { "usize" } else { dtype.name() }
}
