//! Expressions: what each kind of Rust's syntax means in a graph.

use super::{Tracer, Value};
use crate::diagnostics::{Place, source_text};
use syn::{BinOp, Expr, ExprBinary, ExprPath, ExprUnary, Lit, Member, RangeLimits, UnOp};
use tinyspec_ir::ops::{METHODS, arithmetic};
use tinyspec_ir::{Builder, DType, NodeId};

/// The text of an expression for messages, if it is short.
pub(super) fn text_of(expression: &Expr) -> Option<String> {
    let expression = match expression {
        Expr::Reference(reference) => &reference.expr,
        Expr::Paren(inner) => &inner.expr,
        other => other,
    };
    Some(source_text(expression)).filter(|text| text.len() <= 40 && !text.contains('\n'))
}

impl Tracer<'_> {
    /// The value of an expression. After a mistake it is [`Value::Unknown`], which is never complained about again.
    pub(super) fn expression(&mut self, expression: &Expr) -> Value {
        match expression {
            Expr::Lit(literal) => self.literal(&literal.lit),
            Expr::Path(path) => self.path(path),
            Expr::Paren(inner) => self.expression(&inner.expr),
            Expr::Group(inner) => self.expression(&inner.expr),
            Expr::Reference(reference) => {
                if let Some(mutability) = &reference.mutability {
                    let message = "tensors are values: nothing can be changed through a reference";
                    self.diagnostics.error_instead_of_rustc(expression, Place::of(mutability), message);
                    return Value::Unknown;
                }
                self.expression(&reference.expr)
            }
            Expr::Unary(unary) => self.unary(unary),
            Expr::Binary(binary) => self.binary(binary, expression),
            Expr::Assign(assign) => {
                let value = self.expression(&assign.right);
                self.assign(&assign.left, value);
                Value::UNIT
            }
            Expr::MethodCall(call) => self.method_call(call, expression),
            Expr::Call(call) => self.call(call, expression),
            Expr::Tuple(tuple) => Value::Tuple(tuple.elems.iter().map(|element| self.expression(element)).collect()),
            Expr::Array(array) => Value::List(array.elems.iter().map(|element| self.expression(element)).collect()),
            Expr::Repeat(repeat) => {
                let value = self.expression(&repeat.expr);
                match self.expression(&repeat.len) {
                    Value::Int(count @ 0..=4096) => Value::List(vec![value; count as usize]),
                    Value::Unknown => Value::Unknown,
                    _ => self.refuse(expression, "the length of an array is a number up to 4096 here"),
                }
            }
            Expr::Index(index) => {
                let (list, position) = (self.expression(&index.expr), self.expression(&index.index));
                match (list, position) {
                    (Value::List(values), Value::Int(position)) => {
                        let count = values.len();
                        let value = usize::try_from(position).ok().and_then(|position| values.into_iter().nth(position));
                        value.unwrap_or_else(|| {
                            let message = format!("index {position} of a list of {count}");
                            self.diagnostics.error(Place::of(&*index.index), message);
                            Value::Unknown
                        })
                    }
                    (Value::Tensor(_), _) => self.refuse(
                        expression,
                        "a tensor is not indexed with `[…]`: use `.narrow(axis, start, length)`, `.shrink(offset, shape)`, or `.index0(indices)`",
                    ),
                    (Value::Unknown, _) | (_, Value::Unknown) => Value::Unknown,
                    (list, position) => {
                        let message = format!("{} cannot be indexed with {} here", list.describe(), position.describe());
                        self.refuse(expression, message)
                    }
                }
            }
            Expr::Field(field) => match (self.expression(&field.base), &field.member) {
                (Value::Tuple(elements), Member::Unnamed(index)) => {
                    elements.into_iter().nth(index.index as usize).unwrap_or(Value::Unknown)
                }
                // A wrong field is rustc's.
                _ => Value::Unknown,
            },
            Expr::Block(block) if block.label.is_none() => self.block(&block.block),
            Expr::Cast(cast) => self.cast(cast),
            Expr::Range(range) => self.range(range, expression),
            Expr::If(branch) => self.branch(branch, expression),
            Expr::ForLoop(looped) => self.for_loop(looped, expression),
            Expr::Struct(literal) => self.options_literal(literal, expression),
            Expr::Macro(call) => self.refuse_macro(&call.mac, expression),
            other => self.refuse_control(other),
        }
    }

    /// `Conv2d { stride: [2, 2], ..default() }`
    fn options_literal(&mut self, literal: &syn::ExprStruct, whole: &Expr) -> Value {
        let name = literal.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        let is_options = METHODS
            .iter()
            .flat_map(|row| row.params)
            .any(|(_, kind)| kind.fields().is_some() && format!("{kind:?}") == name);
        if !is_options {
            return self.refuse_control(whole);
        }
        if let Some(rest) = &literal.rest
            && !matches!(self.expression(rest), Value::Default)
        {
            let message = "the other options are `..default()`";
            self.diagnostics.error_instead_of_rustc(&**rest, Place::of(&**rest), message);
            return Value::Unknown;
        }
        let fields = literal.fields.iter().map(|field| {
            let name = match &field.member {
                Member::Named(name) => name.to_string(),
                Member::Unnamed(index) => index.index.to_string(),
            };
            (name, self.expression(&field.expr))
        });
        let fields: Vec<(String, Value)> = fields.collect();
        if fields.iter().any(|(_, value)| matches!(value, Value::Unknown)) {
            return Value::Unknown;
        }
        for ((name, value), field) in fields.iter().zip(&literal.fields) {
            if let Value::Constant { text, .. } = value {
                let message = format!(
                    "no macro sees the value of `{text}`: write `{name}` out, or make it a `const` inside the function"
                );
                self.diagnostics.error_instead_of_rustc(&field.expr, Place::of(&field.expr), message);
                return Value::Unknown;
            }
        }
        Value::Options(name, fields)
    }

    /// Reports an expression that the typed copy is to leave out.
    pub(super) fn refuse(&mut self, expression: &Expr, message: impl Into<String>) -> Value {
        self.diagnostics.error_instead_of_rustc(expression, Place::of(expression), message);
        Value::Unknown
    }

    fn literal(&mut self, literal: &Lit) -> Value {
        match literal {
            Lit::Int(number) if matches!(number.suffix(), "f32" | "f64") => {
                self.float(number.base10_digits(), number.suffix())
            }
            Lit::Int(number) => number.base10_parse::<i128>().map_or(Value::Unknown, Value::Int),
            Lit::Float(number) => self.float(number.base10_digits(), number.suffix()),
            Lit::Bool(value) => Value::Bool(value.value),
            Lit::Str(text) => Value::Text(text.value()),
            other => {
                self.diagnostics.error(Place::of(other), "a literal here is a number, a bool or a string");
                Value::Unknown
            }
        }
    }

    fn float(&mut self, digits: &str, suffix: &str) -> Value {
        match digits.parse::<f64>() {
            // Rounded as rustc does before the value becomes a constant.
            Ok(number) if suffix == "f32" => {
                digits.parse::<f32>().map_or(Value::Float(number), |small| Value::Float(small.into()))
            }
            Ok(number) => Value::Float(number),
            Err(_) => Value::Unknown,
        }
    }

    fn path(&mut self, path: &ExprPath) -> Value {
        if let Some(name) = path.path.get_ident()
            && let Some(value) = self.lookup(&name.to_string())
        {
            return value.clone();
        }
        if path.path.is_ident("None") {
            return Value::Optional(None);
        }
        let segments: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let [.., ty, name] = segments.as_slice()
            && ty == "DType"
        {
            return match DType::from_name(&name.to_lowercase()) {
                Some(dtype) => Value::DType(dtype),
                None => Value::Unknown, // rustc knows the variants.
            };
        }
        if let [.., ty, name] = segments.as_slice()
            && let Some(value) = super::numbers::known_constant(ty, name)
        {
            // `f32::consts::PI` is rounded, as rustc has it.
            let is_small = segments.iter().any(|segment| segment == "f32");
            return Value::Float(if is_small { (value as f32).into() } else { value });
        }
        Value::Constant { text: source_text(&path.path), path: quote::quote!(#path), kind: None }
    }

    fn unary(&mut self, unary: &ExprUnary) -> Value {
        let value = self.expression(&unary.expr);
        match (unary.op, value) {
            (UnOp::Deref(_), value) => value,
            (UnOp::Neg(_), Value::Int(number)) => Value::Int(-number),
            (UnOp::Neg(_), Value::Float(number)) => Value::Float(-number),
            (UnOp::Not(_), Value::Bool(value)) => Value::Bool(!value),
            (UnOp::Neg(token), Value::Tensor(node)) => {
                self.apply_unary(&unary.expr, node, token.span, |graph, x| arithmetic::neg(graph, x))
            }
            (UnOp::Not(token), Value::Tensor(node)) => {
                self.apply_unary(&unary.expr, node, token.span, |graph, x| arithmetic::not(graph, x))
            }
            (UnOp::Neg(token), Value::Constant { text, .. }) => {
                let message = format!(
                    "`-{text}` has no value here: no macro sees what `{text}` is; make the negative one a constant of its own"
                );
                self.diagnostics.error(Place::between(token.span, Place::of(&*unary.expr).end), message);
                Value::Unknown
            }
            _ => Value::Unknown,
        }
    }

    fn apply_unary(
        &mut self,
        operand: &Expr,
        node: NodeId,
        span: proc_macro2::Span,
        build: impl FnOnce(&mut dyn Builder, NodeId) -> tinyspec_ir::Result<NodeId>,
    ) -> Value {
        match self.build(span, |graph| build(graph, node)) {
            Ok(node) => Value::Tensor(node),
            Err(error) => {
                let place = Place::between(span, Place::of(operand).end);
                let operands = [(text_of(operand).unwrap_or("this".into()), Value::Tensor(node))];
                self.refused(place, &error, &operands)
            }
        }
    }

    fn binary(&mut self, binary: &ExprBinary, whole: &Expr) -> Value {
        let (left, right) = (self.expression(&binary.left), self.expression(&binary.right));
        if let Some(op) = assigning(&binary.op) {
            let value = self.operator(op, left, right, binary, whole);
            self.assign(&binary.left, value);
            return Value::UNIT;
        }
        match comparison_method(&binary.op) {
            Some((symbol, method)) => self.compare(symbol, method, left, right, binary, whole),
            None => self.operator(binary.op, left, right, binary, whole),
        }
    }

    fn operator(&mut self, op: BinOp, left: Value, right: Value, binary: &ExprBinary, whole: &Expr) -> Value {
        if matches!(left, Value::Unknown) || matches!(right, Value::Unknown) {
            return Value::Unknown;
        }
        if !matches!(left, Value::Tensor(_)) && !matches!(right, Value::Tensor(_)) {
            return self.fold(op, &left, &right, whole);
        }
        let Some((_, path)) = operator_path(&op) else {
            let message =
                "`&&` and `||` take bools at run time: for tensors write `&` and `|`, which compute both sides";
            return self.refuse(whole, message);
        };
        let place = Place::of(whole);
        let Some(x) = self.operand(&left, self.dtype_of(&right), &binary.left) else { return Value::Unknown };
        let Some(y) = self.operand(&right, self.dtype_of(&left), &binary.right) else { return Value::Unknown };
        match self.build(place.start, |graph| path(graph, x, y)) {
            Ok(node) => Value::Tensor(node),
            Err(error) => {
                let name = |expression: &Expr, other: &str| text_of(expression).unwrap_or(other.to_string());
                let operands =
                    [(name(&binary.left, "the left side"), left), (name(&binary.right, "the right side"), right)];
                self.refused(place, &error, &operands)
            }
        }
    }

    fn compare(
        &mut self,
        symbol: &str,
        method: &str,
        left: Value,
        right: Value,
        binary: &ExprBinary,
        whole: &Expr,
    ) -> Value {
        if matches!(left, Value::Tensor(_)) || matches!(right, Value::Tensor(_)) {
            let name = |expression: &Expr, other: &str| text_of(expression).unwrap_or(other.to_string());
            let (x, y) = (name(&binary.left, "x"), name(&binary.right, "y"));
            let message =
                format!("`{symbol}` gives one bool at run time; for a tensor of bools write `{x}.{method}({y})`");
            return self.refuse(whole, message);
        }
        self.fold_comparison(binary.op, &left, &right, whole)
    }

    /// `x = value` for a local name.
    fn assign(&mut self, target: &Expr, value: Value) {
        let name = match target {
            Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
            Expr::Paren(inner) => return self.assign(&inner.expr, value),
            Expr::Infer(_) => return,
            Expr::Tuple(tuple) => {
                let values = match value {
                    Value::Tuple(values) if values.len() == tuple.elems.len() => values,
                    _ => vec![Value::Unknown; tuple.elems.len()],
                };
                for (target, value) in tuple.elems.iter().zip(values) {
                    self.assign(target, value);
                }
                return;
            }
            _ => None,
        };
        let slot = name.as_ref().and_then(|name| self.scopes.iter_mut().rev().find_map(|scope| scope.get_mut(name)));
        match slot {
            Some(slot) => *slot = value,
            None => {
                let message =
                    "only a local `let mut` name can be assigned to: a #[function] changes nothing outside itself";
                self.diagnostics.error_instead_of_rustc(target, Place::of(target), message);
            }
        }
    }

    fn range(&mut self, range: &syn::ExprRange, whole: &Expr) -> Value {
        let (start, end) = match (&range.start, &range.end) {
            (None, None) => return Value::All,
            (start, end) => {
                let start = start.as_ref().map_or(Value::Int(0), |start| self.expression(start));
                (start, end.as_ref().map(|end| self.expression(end)))
            }
        };
        match (start, end) {
            (Value::Int(start), Some(Value::Int(end))) => {
                Value::Range(start, if matches!(range.limits, RangeLimits::Closed(_)) { end + 1 } else { end })
            }
            (Value::Unknown, _) | (_, Some(Value::Unknown)) => Value::Unknown,
            _ => self.refuse(whole, "a range in a #[function] has numbers as ends, which are known while it is traced"),
        }
    }
}

type BinaryBuilder = fn(&mut dyn Builder, NodeId, NodeId) -> tinyspec_ir::Result<NodeId>;

/// What the run-time operators build.
fn operator_path(op: &BinOp) -> Option<(&'static str, BinaryBuilder)> {
    Some(match op {
        BinOp::Add(_) => ("+", arithmetic::add),
        BinOp::Sub(_) => ("-", arithmetic::sub),
        BinOp::Mul(_) => ("*", arithmetic::mul),
        BinOp::Div(_) => ("/", arithmetic::div),
        BinOp::Rem(_) => ("%", arithmetic::modulo),
        BinOp::BitAnd(_) => ("&", arithmetic::and),
        BinOp::BitOr(_) => ("|", arithmetic::or),
        BinOp::BitXor(_) => ("^", arithmetic::xor),
        BinOp::Shl(_) => ("<<", arithmetic::shl),
        BinOp::Shr(_) => (">>", arithmetic::shr),
        _ => return None,
    })
}

/// `x += y` is `x = x + y`.
fn assigning(op: &BinOp) -> Option<BinOp> {
    Some(match op {
        BinOp::AddAssign(_) => BinOp::Add(Default::default()),
        BinOp::SubAssign(_) => BinOp::Sub(Default::default()),
        BinOp::MulAssign(_) => BinOp::Mul(Default::default()),
        BinOp::DivAssign(_) => BinOp::Div(Default::default()),
        BinOp::RemAssign(_) => BinOp::Rem(Default::default()),
        BinOp::BitAndAssign(_) => BinOp::BitAnd(Default::default()),
        BinOp::BitOrAssign(_) => BinOp::BitOr(Default::default()),
        BinOp::BitXorAssign(_) => BinOp::BitXor(Default::default()),
        BinOp::ShlAssign(_) => BinOp::Shl(Default::default()),
        BinOp::ShrAssign(_) => BinOp::Shr(Default::default()),
        _ => return None,
    })
}

fn comparison_method(op: &BinOp) -> Option<(&'static str, &'static str)> {
    Some(match op {
        BinOp::Lt(_) => ("<", "lt"),
        BinOp::Le(_) => ("<=", "le"),
        BinOp::Gt(_) => (">", "gt"),
        BinOp::Ge(_) => (">=", "ge"),
        BinOp::Eq(_) => ("==", "eq"),
        BinOp::Ne(_) => ("!=", "ne"),
        _ => return None,
    })
}
