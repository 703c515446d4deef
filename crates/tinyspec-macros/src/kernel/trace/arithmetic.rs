//! Operators: both operands have one dtype, and a literal takes that of the other operand.

use super::value::written;
use super::{Tracer, Value};
use crate::diagnostics::Place as At;
use crate::kernel::syntax::*;
use tinyspec_ir::ops;
use tinyspec_ir::{Builder, DType, NodeId, Op};

impl Tracer<'_> {
    /// Converts both values to one dtype.
    pub fn unify(&mut self, a: Value, a_at: At, b: Value, b_at: At, what: &str, at: At) -> Option<(NodeId, NodeId)> {
        match (self.dtype(a), self.dtype(b)) {
            _ if a == Value::Wrong || b == Value::Wrong => None,
            (Some(left), Some(right)) if left == right => Some((self.node(a)?, self.node(b)?)),
            (Some(left), Some(right)) => {
                for (value, value_at, other) in [(a, a_at, right), (b, b_at, left)] {
                    if let Some(help) = self.help_for_constant(value, other) {
                        self.error(value_at, help);
                        return None;
                    }
                }
                let (left, right) = (written(left), written(right));
                self.error(at, format!("{what} mixes {left} and {right}: cast one side, as in `… as {left}`"));
                None
            }
            (Some(dtype), None) => Some((self.node(a)?, self.literal(b, dtype, b_at)?)),
            (None, Some(dtype)) => Some((self.literal(a, dtype, a_at)?, self.node(b)?)),
            (None, None) => {
                let dtype = match (a, b) {
                    (Value::Int(_), Value::Int(_)) => DType::I32,
                    _ => DType::F32,
                };
                Some((self.of_dtype(a, dtype, a_at)?, self.of_dtype(b, dtype, b_at)?))
            }
        }
    }

    fn literal(&mut self, value: Value, dtype: DType, at: At) -> Option<NodeId> {
        if dtype == DType::Index { self.index(value, at) } else { self.of_dtype(value, dtype, at) }
    }

    pub fn binary(&mut self, op: BinaryOp, a: Value, a_at: At, b: Value, b_at: At, at: At) -> Value {
        if let (Value::Int(a), Value::Int(b)) = (a, b)
            && let Some(number) = fold(op, a, b)
        {
            return Value::Int(number);
        }
        if let (Value::Float(a), Value::Float(b)) = (a, b) {
            match op {
                BinaryOp::Add => return Value::Float(a + b),
                BinaryOp::Sub => return Value::Float(a - b),
                BinaryOp::Mul => return Value::Float(a * b),
                BinaryOp::Div => return Value::Float(a / b),
                _ => {}
            }
        }
        let is_number = |value: Value| match value {
            Value::Int(_) => true,
            Value::Node(node) => self.graph.dtype(node) == DType::Index,
            _ => false,
        };
        let is_zero = match b {
            Value::Int(number) => number == 0,
            Value::Node(node) => self.graph.as_int(node) == Some(0),
            _ => false,
        };
        // Division of data by zero is 0, as everywhere in the language.
        if matches!(op, BinaryOp::Div | BinaryOp::Rem) && is_zero && is_number(a) && is_number(b) {
            self.error(at, "this divides by 0");
            return Value::Wrong;
        }
        let made = self.unify(a, a_at, b, b_at, &format!("`{}`", op.symbol()), at).and_then(|(a, b)| {
            let dtype = self.graph.dtype(a);
            match op {
                _ if op.is_comparison() => self.compare(op, a, b),
                _ if dtype == DType::Index => self.index_binary(op, a, b).or_else(|| {
                    let has_meaning = matches!(op.symbol(), "+" | "-" | "*" | "/" | "%");
                    let message = match has_meaning {
                        true => "this index does not fit an i64".to_string(),
                        false => format!("`{}` has no meaning for indices", op.symbol()),
                    };
                    self.error(at, message);
                    None
                }),
                _ => self.data_binary(op, a, b, at),
            }
        });
        made.map_or(Value::Wrong, Value::Node)
    }

    fn compare(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
        let is_float = self.graph.dtype(a).is_float();
        let graph = &mut self.graph;
        match op {
            BinaryOp::Lt => graph.alu(Op::CmpLt, &[a, b]).ok(),
            BinaryOp::Gt => graph.alu(Op::CmpLt, &[b, a]).ok(),
            BinaryOp::Ne => graph.alu(Op::CmpNe, &[a, b]).ok(),
            BinaryOp::Eq => {
                let differs = graph.alu(Op::CmpNe, &[a, b]).ok()?;
                self.not(differs)
            }
            // With a NaN both are false, so this is not just "not less".
            BinaryOp::Le | BinaryOp::Ge if is_float => {
                let function = if op == BinaryOp::Le { ops::arithmetic::le } else { ops::arithmetic::ge };
                function(graph, a, b).ok()
            }
            BinaryOp::Le => {
                let less = graph.alu(Op::CmpLt, &[b, a]).ok()?;
                self.not(less)
            }
            BinaryOp::Ge => {
                let less = graph.alu(Op::CmpLt, &[a, b]).ok()?;
                self.not(less)
            }
            _ => None,
        }
    }

    /// Arithmetic on indices; constants are folded.
    pub fn index_binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
        let (left, right) = (self.graph.as_int(a), self.graph.as_int(b));
        if let (Some(left), Some(right)) = (left, right) {
            let number = i64::try_from(fold(op, left, right)?).ok()?;
            return Some(self.graph.index(number));
        }
        match (op, left, right) {
            (BinaryOp::Add, Some(0), _) | (BinaryOp::Mul, Some(1), _) => return Some(b),
            (BinaryOp::Add | BinaryOp::Sub, _, Some(0)) | (BinaryOp::Mul | BinaryOp::Div, _, Some(1)) => {
                return Some(a);
            }
            _ => {}
        }
        let op = match op {
            BinaryOp::Add => Op::Add,
            BinaryOp::Sub => {
                let minus = match right {
                    Some(number) => self.graph.index(i64::try_from(-number).ok()?),
                    None => {
                        let minus = self.graph.index(-1);
                        self.graph.alu(Op::Mul, &[b, minus]).ok()?
                    }
                };
                return self.graph.alu(Op::Add, &[a, minus]).ok();
            }
            BinaryOp::Mul => Op::Mul,
            BinaryOp::Div => Op::Idiv,
            BinaryOp::Rem => Op::Mod,
            _ => return None,
        };
        self.graph.alu(op, &[a, b]).ok()
    }

    fn data_binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId, at: At) -> Option<NodeId> {
        let dtype = self.graph.dtype(a);
        let fits = match op {
            BinaryOp::Rem => dtype.is_int(),
            BinaryOp::Shl | BinaryOp::Shr => dtype.is_int(),
            BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => !dtype.is_float(),
            _ => dtype != DType::Bool,
        };
        if !fits {
            self.error(at, format!("`{}` has no meaning for {dtype}", op.symbol()));
            return None;
        }
        let op = match op {
            BinaryOp::Add => Op::Add,
            BinaryOp::Sub => {
                let made = ops::arithmetic::sub(&mut self.graph, a, b);
                return self.made(at, made);
            }
            BinaryOp::Mul => Op::Mul,
            BinaryOp::Div if dtype.is_float() => Op::Div,
            BinaryOp::Div => Op::Idiv,
            BinaryOp::Rem => Op::Mod,
            BinaryOp::BitAnd => Op::And,
            BinaryOp::BitOr => Op::Or,
            BinaryOp::BitXor => Op::Xor,
            BinaryOp::Shl => Op::Shl,
            BinaryOp::Shr => Op::Shr,
            _ => return None,
        };
        let made = self.graph.alu(op, &[a, b]);
        self.made(at, made)
    }
}

/// Arithmetic on numbers known while tracing; division is floored, as in the language.
fn fold(op: BinaryOp, a: i128, b: i128) -> Option<i128> {
    Some(match op {
        BinaryOp::Add => a.checked_add(b)?,
        BinaryOp::Sub => a.checked_sub(b)?,
        BinaryOp::Mul => a.checked_mul(b)?,
        BinaryOp::Div if b != 0 => a.div_euclid(b) - if b < 0 && a.rem_euclid(b) != 0 { 1 } else { 0 },
        BinaryOp::Rem if b > 0 => a.rem_euclid(b),
        BinaryOp::Shl if (0..64).contains(&b) => a.checked_shl(b as u32)?,
        BinaryOp::Shr if (0..64).contains(&b) => a >> b,
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        _ => return None,
    })
}
