//! Expressions: literals take the dtype of their neighbours, nothing else is converted by itself.

use super::statement::is_near;
use super::value::written;
use super::{Binding, Tracer, Value};
use crate::diagnostics::Place as At;
use crate::kernel::syntax::*;
use proc_macro2::Ident;
use tinyspec_ir::ops::{self, MethodArg};
use tinyspec_ir::{Builder, Const, DType, NodeId, Op};

/// Functions of the language: those of the method table that work on one element, and how many values they take.
const FUNCTIONS: &[(&str, &str, usize)] = &[
    ("exp", "exp", 1),
    ("exp2", "exp2", 1),
    ("log", "log", 1),
    ("ln", "log", 1),
    ("log2", "log2", 1),
    ("log10", "log10", 1),
    ("sqrt", "sqrt", 1),
    ("rsqrt", "rsqrt", 1),
    ("recip", "reciprocal", 1),
    ("sin", "sin", 1),
    ("cos", "cos", 1),
    ("tan", "tan", 1),
    ("tanh", "tanh", 1),
    ("sigmoid", "sigmoid", 1),
    ("relu", "relu", 1),
    ("silu", "silu", 1),
    ("gelu", "gelu", 1),
    ("abs", "abs", 1),
    ("sign", "sign", 1),
    ("floor", "floor", 1),
    ("ceil", "ceil", 1),
    ("round", "round", 1),
    ("trunc", "trunc", 1),
    ("square", "square", 1),
    ("isnan", "isnan", 1),
    ("isinf", "isinf", 1),
    ("pow", "pow", 2),
    ("max", "maximum", 2),
    ("min", "minimum", 2),
    ("maximum", "maximum", 2),
    ("minimum", "minimum", 2),
];

/// Those that need a float.
const OF_FLOATS: &[&str] = &[
    "exp", "exp2", "log", "ln", "log2", "log10", "sqrt", "rsqrt", "recip", "sin", "cos", "tan", "tanh", "sigmoid",
    "silu", "gelu", "floor", "ceil", "round", "trunc", "isnan", "isinf", "pow",
];

impl Tracer<'_> {
    pub fn expression(&mut self, expr: &Expr) -> Value {
        self.try_expression(expr).unwrap_or(Value::Wrong)
    }

    /// `None` once a mistake was reported.
    fn try_expression(&mut self, expr: &Expr) -> Option<Value> {
        Some(match &expr.kind {
            ExprKind::Int(number, None) => Value::Int(*number),
            ExprKind::Float(number, None) => Value::Float(*number),
            ExprKind::Int(number, Some(dtype)) => Value::Node(self.of_dtype(Value::Int(*number), *dtype, expr.at)?),
            ExprKind::Float(number, Some(dtype)) => {
                Value::Node(self.of_dtype(Value::Float(*number), *dtype, expr.at)?)
            }
            ExprKind::Bool(value) => Value::Node(self.graph.constant(Const::int(DType::Bool, *value as i128))),
            ExprKind::Name(name) => return self.name(name),
            ExprKind::Path(path) => Value::Node(self.constant(path)),
            ExprKind::Element(element) => return self.element(element),
            ExprKind::Get(element, default) => return self.get(element, default),
            ExprKind::Unary(op, value) => {
                let traced = self.expression(value);
                return self.unary(*op, traced, value.at);
            }
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
                // The right side is only asked for where the left one does not decide, so its reads are gated by it.
                let left = self.expression(a);
                let left = self.condition(left, a.at)?;
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
            ExprKind::If(condition, yes, no) => {
                let value = self.expression(condition);
                let condition = self.condition(value, condition.at)?;
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
            Some(Binding::Memory(_) | Binding::Registers { .. }) => {
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
            // An outer constant, by Rust's way to write one.
            None if text.chars().all(|letter| letter.is_uppercase() || letter.is_numeric() || letter == '_') => {
                Some(Value::Node(self.constant(&name.clone().into())))
            }
            None => {
                self.unknown(name);
                None
            }
        }
    }

    /// The indices of an element, one for each axis.
    pub fn indices(&mut self, memory: usize, element: &Element) -> Option<Vec<NodeId>> {
        let (name, rank) = (self.memories[memory].name.clone(), self.memories[memory].dims.len());
        let mut nodes = Vec::new();
        for index in &element.indices {
            let value = self.expression(index);
            nodes.push(self.index(value, index.at));
        }
        if nodes.len() != rank {
            let axes = if rank == 1 { "axis" } else { "axes" };
            let indices = if nodes.len() == 1 { "index" } else { "indices" };
            self.error(element.at, format!("`{name}` has {rank} {axes}, found {} {indices}", nodes.len()));
            return None;
        }
        nodes.into_iter().collect()
    }

    fn element(&mut self, element: &Element) -> Option<Value> {
        match self.lookup(&element.buffer.to_string()).cloned() {
            Some(Binding::Memory(memory)) => {
                let indices = self.indices(memory, element)?;
                let gate = self.gate(0);
                self.load_located(memory, element, &indices, gate, None).map(Value::Node)
            }
            Some(Binding::Registers { dims, first }) => {
                let number = self.register(element, &dims, first)?;
                if self.is_accumulating(number) {
                    self.refuse_partial(&element.buffer.to_string(), element.at);
                    return None;
                }
                Some(self.variables[number].value)
            }
            Some(Binding::Wrong) => None,
            Some(_) => {
                self.no_buffer(&element.buffer);
                None
            }
            None => {
                self.unknown(&element.buffer);
                None
            }
        }
    }

    pub fn load_located(
        &mut self,
        memory: usize,
        element: &Element,
        indices: &[NodeId],
        gate: Option<NodeId>,
        otherwise: Option<NodeId>,
    ) -> Option<NodeId> {
        let gate = self.guarded(memory, indices, gate);
        let load = self.load(memory, indices, gate, otherwise)?;
        let at = element.indices.iter().map(|index| index.at).collect();
        self.locate(load, element.at, at, memory);
        Some(load)
    }

    /// In `unsafe`, an access looks at run time whether it is inside.
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

    /// All indices are inside their axes.
    fn inside(&mut self, memory: usize, indices: &[NodeId]) -> Option<NodeId> {
        let mut all: Option<NodeId> = None;
        for (&index, dim) in indices.iter().zip(self.memories[memory].dims.clone()) {
            let minus_one = self.graph.index(-1);
            let sides = [(minus_one, index), (index, dim)];
            for (low, high) in sides {
                let less = self.graph.alu(Op::CmpLt, &[low, high]).ok()?;
                all = Some(match all {
                    Some(all) => self.graph.alu(Op::And, &[all, less]).ok()?,
                    None => less,
                });
            }
        }
        all
    }

    fn get(&mut self, element: &Element, default: &Expr) -> Option<Value> {
        let memory = match self.lookup(&element.buffer.to_string()) {
            Some(Binding::Memory(memory)) => *memory,
            Some(Binding::Wrong) => return None,
            Some(_) => {
                self.no_buffer(&element.buffer);
                return None;
            }
            None => {
                self.unknown(&element.buffer);
                return None;
            }
        };
        let indices = self.indices(memory, element);
        let otherwise = self.expression(default);
        let indices = indices?;
        let dtype = self.graph.dtype(self.memories[memory].node);
        let otherwise = self.of_dtype(otherwise, dtype, default.at)?;
        let inside = self.inside(memory, &indices);
        let gate = match (self.gate(0), inside) {
            (Some(gate), Some(inside)) => Some(self.graph.alu(Op::And, &[gate, inside]).ok()?),
            (gate, inside) => gate.or(inside),
        };
        self.load_located(memory, element, &indices, gate, Some(otherwise)).map(Value::Node)
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
                    let what = if op == UnaryOp::Neg { "a signed number" } else { "a bool or an integer" };
                    self.error(at, format!("needs {what}, found {}", written(dtype)));
                    return None;
                }
                let ones = self.graph.constant(Const::int(dtype, -1));
                let op = if op == UnaryOp::Neg { Op::Mul } else { Op::Xor };
                Value::Node(self.graph.alu(op, &[node, ones]).ok()?)
            }
            (UnaryOp::Not, Value::Float(_)) => {
                self.error(at, "needs a bool or an integer, found a float");
                return None;
            }
        })
    }

    /// Both values in one dtype.
    pub fn unify(&mut self, a: Value, a_at: At, b: Value, b_at: At, what: &str, at: At) -> Option<(NodeId, NodeId)> {
        match (self.dtype(a), self.dtype(b)) {
            _ if a == Value::Wrong || b == Value::Wrong => None,
            (Some(left), Some(right)) if left == right => Some((self.node(a)?, self.node(b)?)),
            (Some(left), Some(right)) => {
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
        let made = self.unify(a, a_at, b, b_at, &format!("`{}`", op.symbol()), at).and_then(|(a, b)| {
            let dtype = self.graph.dtype(a);
            match op {
                _ if op.is_comparison() => self.compare(op, a, b),
                _ if dtype == DType::Index => self.index_binary(op, a, b).or_else(|| {
                    self.error(at, format!("`{}` has no meaning for indices", op.symbol()));
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
            // With a nan both are false, so this is more than "not less".
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

    /// Arithmetic of indices; constants are folded.
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

    fn call(&mut self, name: &Ident, arguments: &[Expr], at: At) -> Option<Value> {
        let values: Vec<Value> = arguments.iter().map(|argument| self.expression(argument)).collect();
        let text = name.to_string();
        if matches!(text.as_str(), "where_" | "select") {
            let ([condition, yes, no], [c_at, y_at, n_at]) = (values.as_slice(), arguments) else {
                self.error(at, format!("`{text}(condition, a, b)` takes 3 values, found {}", values.len()));
                return None;
            };
            let condition = self.condition(*condition, c_at.at)?;
            let (yes, no) = self.unify(*yes, y_at.at, *no, n_at.at, &format!("`{text}`"), at)?;
            return Some(Value::Node(self.graph.alu(Op::Where, &[condition, yes, no]).ok()?));
        }
        if matches!(text.as_str(), "barrier" | "atomic_add") {
            self.error(at, format!("`{text}` has no value: it is a statement"));
            return None;
        }
        let Some(&(_, method, count)) = FUNCTIONS.iter().find(|(known, ..)| *known == text) else {
            let near = FUNCTIONS.iter().map(|(known, ..)| *known).find(|known| is_near(known, &text));
            let help = near.map(|near| format!("; is it `{near}`?")).unwrap_or_default();
            self.error(name.span(), format!("`{text}` is no function of a kernel{help}"));
            return None;
        };
        if values.len() != count {
            let plural = if count == 1 { "value" } else { "values" };
            self.error(at, format!("`{text}` takes {count} {plural}, found {}", values.len()));
            return None;
        }
        let mut nodes = Vec::new();
        match (values.as_slice(), arguments) {
            (&[a, b], [x, y]) => {
                if let (Value::Int(a), Value::Int(b), "maximum" | "minimum") = (a, b, method) {
                    return Some(Value::Int(if method == "maximum" { a.max(b) } else { a.min(b) }));
                }
                let (a, b) = self.unify(a, x.at, b, y.at, &format!("`{text}`"), at)?;
                nodes.extend([a, b]);
            }
            (&[a], [_]) => nodes.push(self.node(a)?),
            _ => {}
        }
        let dtype = self.graph.dtype(*nodes.first()?);
        if OF_FLOATS.contains(&text.as_str()) && !dtype.is_float() {
            let found = written(dtype);
            self.error(arguments[0].at, format!("`{text}` needs a float, found {found}: cast it with `as f32`"));
            return None;
        }
        if dtype == DType::Index {
            // Indices stay in the form that can be reasoned about.
            let node = match (method, nodes.as_slice()) {
                ("maximum", &[a, b]) => self.graph.alu(Op::Max, &[a, b]).ok()?,
                ("minimum", &[a, b]) => {
                    let less = self.graph.alu(Op::CmpLt, &[a, b]).ok()?;
                    self.graph.alu(Op::Where, &[less, a, b]).ok()?
                }
                _ => {
                    self.error(arguments[0].at, format!("`{text}` has no meaning for indices: cast with `as i32`"));
                    return None;
                }
            };
            return Some(Value::Node(node));
        }
        let arguments: Vec<MethodArg> = nodes.into_iter().map(MethodArg::Tensor).collect();
        let made = ops::call(method, &mut self.graph, &arguments);
        let made = made.map(|nodes| nodes.first().copied());
        match made {
            Ok(node) => node.map(Value::Node),
            Err(error) => {
                self.made(at, Err(error));
                None
            }
        }
    }
}

/// Arithmetic of numbers known while the kernel is traced; floored, as in the language.
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
