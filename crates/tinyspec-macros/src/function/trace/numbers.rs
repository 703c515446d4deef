//! Numbers: arithmetic on known numbers is computed while tracing, and a number takes the dtype of a tensor operand.

use super::constants::fold_dims;
use super::inference::{Float, Kind, NumberType};
use super::{Tracer, Value};
use crate::diagnostics::{Adaptation, Place, source_text};
use syn::{BinOp, Expr, ExprCast, ExprUnary, LitInt, Type, UnOp};
use tinyspec_ir::function::FIRST_CONSTANT;
use tinyspec_ir::ops::{self, Literal, LiteralKind};
use tinyspec_ir::{Arg, Builder, DType, Dim, NodeId, Op};

/// Whether this is a literal: `1`, `-1`, `(1)`. A cast gives it its type.
fn is_literal(expression: &Expr) -> bool {
    match expression {
        Expr::Lit(_) => true,
        Expr::Paren(inner) => is_literal(&inner.expr),
        Expr::Group(inner) => is_literal(&inner.expr),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => is_literal(expr),
        _ => false,
    }
}

impl Tracer<'_> {
    /// A value where a tensor is expected; a number takes the dtype `like` of the other operand (SEMANTICS, "literals
    /// are weak").
    pub(super) fn operand(&mut self, value: &Value, like: DType, expression: &Expr) -> Result<NodeId, Value> {
        let place = Place::of(expression);
        let literal = match *value {
            Value::Int(number, _) => Some(Literal::Int(number)),
            Value::Float(number) => Some(Literal::Float(self.float(&number))),
            Value::Bool(value) => Some(Literal::Bool(value)),
            _ => None,
        };
        if let Some(literal) = literal {
            let constant = literal.beside(like).map_err(|error| self.refused(place, &error, &[]))?;
            return Ok(self.graph.constant(constant));
        }
        Ok(match value {
            Value::Tensor(node) => *node,
            Value::Dim(dim) => {
                let dtype = LiteralKind::Int.beside(like);
                let built = self.build(place.start, |graph| ops::creation::size(graph, dim, dtype));
                built.map_err(|error| self.refused(place, &error, &[]))?
            }
            Value::Constant { text, path, kind, .. } => {
                let dtype = match kind {
                    Some(kind) => kind.beside(like),
                    None if like.is_float() => like,
                    None => return Err(self.refuse_unknown_kind(text, like, expression)),
                };
                let slot = FIRST_CONSTANT + self.constants.number(text.clone(), path.clone()) as u32;
                let arg = Arg::Param { slot, dtype, device: None, addrspace: None };
                let built = self.build(place.start, |graph| {
                    let shape = graph.shape(&[])?;
                    graph.add(Op::Param, &[shape], arg)
                });
                built.map_err(|error| self.refused(place, &error, &[]))?
            }
            Value::Unseen => return Err(Value::Unknown),
            Value::Unknown | Value::Wrong => return Err(value.clone()),
            other => {
                let message = format!("expected a tensor or a number, found {}", other.describe());
                return Err(self.refuse(expression, message));
            }
        })
    }

    /// Arithmetic on numbers and dims.
    pub(super) fn fold(&mut self, op: BinOp, left: &Value, right: &Value, whole: &Expr) -> Value {
        match (left, right) {
            (&Value::Int(a, left), &Value::Int(b, right)) => self.fold_ints(op, (a, left), (b, right), whole),
            (Value::Float(a), Value::Float(b)) => {
                // rustc reports different types.
                let Some(kind) = self.inference.unify(a.kind, b.kind) else { return Value::Unknown };
                let (wide, narrow) = match op {
                    BinOp::Add(_) => (a.wide + b.wide, a.narrow + b.narrow),
                    BinOp::Sub(_) => (a.wide - b.wide, a.narrow - b.narrow),
                    BinOp::Mul(_) => (a.wide * b.wide, a.narrow * b.narrow),
                    BinOp::Div(_) => (a.wide / b.wide, a.narrow / b.narrow),
                    BinOp::Rem(_) => (a.wide % b.wide, a.narrow % b.narrow),
                    _ => return Value::Unknown,
                };
                Value::Float(Float { wide, narrow, kind })
            }
            (Value::Bool(a), Value::Bool(b)) => match op {
                BinOp::And(_) | BinOp::BitAnd(_) => Value::Bool(*a && *b),
                BinOp::Or(_) | BinOp::BitOr(_) => Value::Bool(*a || *b),
                BinOp::BitXor(_) => Value::Bool(a ^ b),
                _ => Value::Unknown,
            },
            (left, right) => {
                if let Some(constant) = self.fold_constants(op, left, right) {
                    return constant;
                }
                let (Some(a), Some(b)) = (self.as_dim(left), self.as_dim(right)) else {
                    return match (left, right) {
                        (Value::Constant { text, .. }, _) | (_, Value::Constant { text, .. }) => {
                            let shown = super::expression::name_of(whole);
                            let message = format!(
                                "macros cannot see the value of `{text}`, so `{shown}` has none here: compute it outside the function, as a `const` of its own"
                            );
                            self.refuse(whole, message)
                        }
                        (Value::Dim(_), Value::Float(_)) | (Value::Float(_), Value::Dim(_)) => self.refuse(
                            whole,
                            "sizes and decimal numbers do not mix: apply them to the tensor one at a time, `x * B * 0.5`",
                        ),
                        // rustc reports types that do not fit.
                        _ => Value::Unknown,
                    };
                };
                if matches!(op, BinOp::Div(_) | BinOp::Rem(_)) && b.is(0) {
                    return self.refuse(whole, format!("`{}` divides by 0", source_text(whole)));
                }
                match fold_dims(op, &a, &b) {
                    Some(dim) => Value::Dim(dim),
                    None => self.refuse(whole, "dims are made with `+`, `-`, `*`, `/` and `%`"),
                }
            }
        }
    }

    /// Arithmetic on integers, within the range of their type.
    fn fold_ints(&mut self, op: BinOp, (a, left): (i128, Kind), (b, right): (i128, Kind), whole: &Expr) -> Value {
        let symbol = source_text(&op);
        if matches!(op, BinOp::Shl(_) | BinOp::Shr(_)) {
            let ty = self.inference.used(left, NumberType::I32);
            let Some(count) = u32::try_from(b).ok().filter(|count| *count < ty.bits()) else {
                let message = format!("{a} {symbol} {b} has no value: `{}` has {} bits", ty.name(), ty.bits());
                return self.refuse(whole, message);
            };
            let is_left = matches!(op, BinOp::Shl(_));
            return Value::Int(if is_left { ty.wrapped(ty.wrapped(a) << count) } else { a >> count }, left);
        }
        // rustc reports different types.
        let Some(kind) = self.inference.unify(left, right) else { return Value::Unknown };
        let result = match op {
            BinOp::Add(_) => a.checked_add(b),
            BinOp::Sub(_) => a.checked_sub(b),
            BinOp::Mul(_) => a.checked_mul(b),
            BinOp::Div(_) => a.checked_div(b),
            BinOp::Rem(_) => a.checked_rem(b),
            BinOp::BitAnd(_) => Some(a & b),
            BinOp::BitOr(_) => Some(a | b),
            BinOp::BitXor(_) => Some(a ^ b),
            _ => None,
        };
        match result {
            Some(result) => self.int(result, kind, whole),
            None => self.refuse(whole, format!("{a} {symbol} {b} has no value")),
        }
    }

    /// An integer, if it is in the range of its type.
    fn int(&mut self, value: i128, kind: Kind, whole: &Expr) -> Value {
        match self.inference.known(kind) {
            Some(ty) if !ty.holds(value) => self.refuse(whole, overflow(value, ty)),
            Some(_) => Value::Int(value, kind),
            None => {
                self.inference.check_later(kind, Place::of(whole), value);
                Value::Int(value, kind)
            }
        }
    }

    /// The value of a number in the graph.
    pub(super) fn float(&mut self, number: &Float) -> f64 {
        match self.inference.used(number.kind, NumberType::F64) {
            NumberType::F32 => number.narrow.into(),
            _ => number.wide,
        }
    }

    /// The same where Rust expects an `f64`.
    pub(super) fn as_f64(&mut self, number: &Float) -> Option<f64> {
        self.inference.unify(number.kind, Kind::Known(NumberType::F64)).map(|_| number.wide)
    }

    /// A number where Rust expects one of this type; rustc reports another type.
    pub(super) fn typed(&mut self, value: Value, ty: NumberType) -> Value {
        let wanted = Kind::Known(ty);
        match value {
            Value::Int(number, kind) if !ty.is_float() => match self.inference.unify(kind, wanted) {
                Some(kind) if ty.holds(number) => Value::Int(number, kind),
                _ => Value::Unknown,
            },
            Value::Float(number) if ty.is_float() => {
                let kind = self.inference.unify(number.kind, wanted);
                kind.map_or(Value::Unknown, |kind| Value::Float(Float { kind, ..number }))
            }
            value => value,
        }
    }

    /// A number passed as a scalar argument.
    pub(super) fn passed(&mut self, value: Value, dtype: DType) -> Value {
        match NumberType::from_name(dtype.name()) {
            Some(ty) if matches!((&value, ty.is_float()), (Value::Int(..), false) | (Value::Float(_), true)) => {
                self.typed(value, ty)
            }
            _ => value,
        }
    }

    /// `let k: u8 = 3;`: the annotation determines the types of the numbers.
    pub(super) fn annotated(&mut self, annotation: &Type, value: Value) -> Value {
        match (annotation, value) {
            (Type::Reference(reference), value) => self.annotated(&reference.elem, value),
            (Type::Paren(inner), value) => self.annotated(&inner.elem, value),
            (Type::Tuple(types), Value::Tuple(values)) if types.elems.len() == values.len() => {
                Value::Tuple(types.elems.iter().zip(values).map(|(ty, value)| self.annotated(ty, value)).collect())
            }
            (Type::Array(array), Value::List(values)) => {
                Value::List(values.into_iter().map(|value| self.annotated(&array.elem, value)).collect())
            }
            (Type::Slice(slice), Value::List(values)) => {
                Value::List(values.into_iter().map(|value| self.annotated(&slice.elem, value)).collect())
            }
            (Type::Path(path), value @ (Value::Int(..) | Value::Float(_))) => {
                match path.path.get_ident().and_then(|name| NumberType::from_name(&name.to_string())) {
                    Some(ty) => self.typed(value, ty),
                    None => value,
                }
            }
            (_, value) => value,
        }
    }

    /// Numbers of one list, or of one variable, have one type.
    pub(super) fn unify(&mut self, one: &Value, other: &Value) {
        match (one, other) {
            (&Value::Int(_, one), &Value::Int(_, other)) => drop(self.inference.unify(one, other)),
            (Value::Float(one), Value::Float(other)) => drop(self.inference.unify(one.kind, other.kind)),
            (Value::List(one), Value::List(other)) | (Value::Tuple(one), Value::Tuple(other)) => {
                one.iter().zip(other).for_each(|(one, other)| self.unify(one, other));
            }
            _ => {}
        }
    }

    /// A literal with its sign: only together can they be the least value of a type.
    pub(super) fn int_literal(&mut self, literal: &LitInt, is_negative: bool, whole: &Expr) -> Value {
        // rustc reports a number too large for any type.
        let Ok(number) = literal.base10_parse::<i128>() else { return Value::Unknown };
        let value = if is_negative { -number } else { number };
        let kind = match (literal.suffix(), NumberType::from_name(literal.suffix())) {
            ("", _) => self.inference.literal(Place::of(literal)),
            (_, Some(ty)) => Kind::Known(ty),
            (suffix, None) => {
                return self.refuse(whole, format!("numbers of the type `{suffix}` are not computed while tracing"));
            }
        };
        match self.inference.known(kind) {
            // The type has no minus, which rustc reports.
            Some(ty) if is_negative && !ty.is_signed() => Value::Unknown,
            Some(ty) if !ty.holds(value) => self.refuse(whole, overflow(value, ty)),
            _ => Value::Int(value, kind),
        }
    }

    /// `-x` and `!x` of numbers.
    pub(super) fn fold_unary(&mut self, op: UnOp, value: Value, whole: &Expr) -> Value {
        match (op, value) {
            (UnOp::Neg(_), Value::Int(number, kind)) => match self.inference.known(kind) {
                Some(ty) if !ty.is_signed() => Value::Unknown,
                _ => self.int(-number, kind, whole),
            },
            (UnOp::Neg(_), Value::Float(number)) => {
                Value::Float(Float { wide: -number.wide, narrow: -number.narrow, ..number })
            }
            (UnOp::Not(_), Value::Bool(value)) => Value::Bool(!value),
            (op, value @ Value::Constant { .. }) => self.negated_constant(op, &value),
            (UnOp::Not(_), Value::Int(number, kind)) => {
                let ty = self.inference.used(kind, NumberType::I32);
                Value::Int(ty.wrapped(!number), kind)
            }
            // rustc reports types without this operator.
            _ => Value::Unknown,
        }
    }

    /// Comparisons of known values.
    pub(super) fn fold_comparison(&mut self, op: BinOp, left: &Value, right: &Value, whole: &Expr) -> Value {
        let order = match (left, right) {
            (&Value::Int(a, left), &Value::Int(b, right)) => match self.inference.unify(left, right) {
                Some(_) => Some(a.cmp(&b)),
                None => return Value::Unknown,
            },
            (Value::Float(a), Value::Float(b)) => match self.inference.unify(a.kind, b.kind) {
                Some(_) => self.float(a).partial_cmp(&self.float(b)),
                None => return Value::Unknown,
            },
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
            (Value::Dim(a), Value::Dim(b)) if a == b => Some(std::cmp::Ordering::Equal),
            (Value::DType(a), Value::DType(b)) => Some(a.cmp(b)),
            (left, right) => {
                if let Some(spoiled) = Value::without_value([left, right]) {
                    return spoiled;
                }
                if let Some(constant) = self.compared_constants(op, left, right) {
                    return constant;
                }
                let shown = super::expression::name_of(whole);
                let message = match (left, right) {
                    (Value::Dim(_), _) | (_, Value::Dim(_)) => format!(
                        "whether `{shown}` holds is known when the function is called: one graph serves all sizes; write two functions, and choose where they are called"
                    ),
                    (Value::Constant { text, .. }, _) | (_, Value::Constant { text, .. }) => {
                        let message = format!(
                            "macros cannot see the value of `{text}`: write it out, or make it a `const` inside the function"
                        );
                        return self.refuse(whole, message);
                    }
                    // rustc reports types that do not fit.
                    _ => return Value::Unknown,
                };
                return self.refuse(whole, message);
            }
        };
        Value::Bool(match op {
            BinOp::Lt(_) => order.is_some_and(|order| order.is_lt()),
            BinOp::Le(_) => order.is_some_and(|order| order.is_le()),
            BinOp::Gt(_) => order.is_some_and(|order| order.is_gt()),
            BinOp::Ge(_) => order.is_some_and(|order| order.is_ge()),
            BinOp::Eq(_) => order.is_some_and(|order| order.is_eq()),
            _ => !order.is_some_and(|order| order.is_eq()),
        })
    }

    /// A value as a size.
    pub(super) fn as_dim(&mut self, value: &Value) -> Option<Dim> {
        match value {
            Value::Int(number, kind) => {
                self.inference.pass(*kind);
                i64::try_from(*number).ok().map(Dim::from)
            }
            Value::Dim(dim) => Some(dim.clone()),
            Value::Constant { path, .. } if self.is_open(path) => None,
            Value::Constant { size: Some(size), .. } => Some(size.clone()),
            Value::Constant { text, path, .. } => Some(self.constants.dim(text.clone(), path.clone())),
            _ => None,
        }
    }

    /// `value as f32`
    pub(super) fn cast(&mut self, cast: &ExprCast) -> Value {
        let mut value = self.expression(&cast.expr);
        let to = match &*cast.ty {
            Type::Path(path) => path.path.get_ident().map(ToString::to_string).unwrap_or_default(),
            _ => String::new(),
        };
        let to_type = NumberType::from_name(&to);
        if let Some(ty) = to_type
            && is_literal(&cast.expr)
        {
            value = match value {
                // A literal has the type that it is cast to.
                Value::Int(number, Kind::Open(_)) if !ty.is_float() => {
                    if !ty.is_signed() && number < 0 {
                        return Value::Unknown; // The type has no minus, which rustc reports.
                    }
                    if !ty.holds(number) {
                        return self.refuse(&Expr::Cast(cast.clone()), overflow(number, ty));
                    }
                    self.typed(value, ty)
                }
                Value::Float(Float { kind: Kind::Open(_), .. }) if ty.is_float() => self.typed(value, ty),
                value => value,
            };
        }
        match (value, to_type) {
            (Value::Int(number, _), Some(NumberType::F32)) => Value::Float(Float::narrow(number as f32)),
            (Value::Int(number, _), Some(NumberType::F64)) => Value::Float(Float::wide(number as f64)),
            (Value::Float(number), Some(NumberType::F32)) => {
                Value::Float(match self.inference.used(number.kind, NumberType::F64) {
                    NumberType::F32 => number,
                    _ => Float::narrow(number.wide as f32),
                })
            }
            (Value::Float(number), Some(NumberType::F64)) => Value::Float(Float::wide(self.float(&number))),
            (Value::Float(number), Some(ty)) => Value::Int(ty.saturated(self.float(&number)), Kind::Known(ty)),
            (Value::Int(number, _), Some(ty)) => Value::Int(ty.wrapped(number), Kind::Known(ty)),
            (Value::Bool(value), Some(ty)) if !ty.is_float() => Value::Int(value.into(), Kind::Known(ty)),
            (Value::Int(..) | Value::Float(_) | Value::Bool(_), None) => {
                let shown = source_text(&cast.ty);
                let message = match &*cast.ty {
                    Type::Infer(_) => "macros cannot see what `_` is: write the type out".to_string(),
                    _ => format!(
                        "a number is cast to `f32`, `i64` and the like here, not to `{shown}`, which macros cannot see"
                    ),
                };
                self.refuse(&Expr::Cast(cast.clone()), message)
            }
            (Value::Constant { text, path, .. }, Some(ty)) => {
                let text = if text.contains(' ') { format!("({text}) as {to}") } else { format!("{text} as {to}") };
                let kind = if ty.is_float() { LiteralKind::Float } else { LiteralKind::Int };
                let ty = &cast.ty;
                let path = quote::quote!((#path as #ty));
                Value::Constant { text, path, kind: Some(kind), size: None }
            }
            (Value::Tensor(_), _) => {
                let name = super::expression::text_of(&cast.expr).unwrap_or("x".into());
                let dtype =
                    tinyspec_ir::DType::from_name(&to).map_or(to.to_uppercase(), |dtype| dtype.name().to_uppercase());
                let message = match DType::from_name(&to) {
                    Some(_) => format!("`as` converts numbers; for a tensor write `{name}.cast(DType::{dtype})`"),
                    None => "`as` converts numbers; for a tensor write `.cast(DType::F32)`".to_string(),
                };
                self.refuse(&Expr::Cast(cast.clone()), message)
            }
            // A cast to `usize` keeps the size; a cast to any other type makes it a number of the graph.
            (value @ Value::Dim(_), Some(NumberType::Usize)) => {
                self.diagnostics.adapt(cast, Adaptation::Size);
                value
            }
            (Value::Dim(dim), Some(ty)) if ty.dtype().is_some() => {
                let dtype = ty.dtype().unwrap_or(DType::I64);
                self.diagnostics.adapt(cast, Adaptation::SizeAs(dtype));
                let place = Place::of(cast);
                match self.build(place.start, |graph| ops::creation::size(graph, &dim, dtype)) {
                    Ok(node) => Value::Tensor(node),
                    Err(error) => self.refused(place, &error, &[]),
                }
            }
            (Value::Dim(_), _) => {
                let message = "a size is cast to `f32`, `i64` and the like, which gives a tensor of shape `()`";
                self.refuse(&Expr::Cast(cast.clone()), message)
            }
            (Value::Wrong, _) => Value::Wrong,
            _ => Value::Unknown,
        }
    }

    /// A method of a number, computed while tracing by the rules of its type.
    pub(super) fn number_method(
        &mut self,
        name: &str,
        receiver: &Value,
        arguments: &[Value],
        whole: &Expr,
    ) -> Option<Value> {
        // The receiver and the argument have one type.
        if let [argument] = arguments
            && matches!(name, "min" | "max" | "powf" | "rem_euclid" | "div_euclid")
        {
            self.unify(receiver, argument);
        }
        match *receiver {
            Value::Float(x) => match (self.inference.known(x.kind), arguments) {
                // rustc does not know the type either.
                (None, _) => Some(Value::Unknown),
                (Some(NumberType::F32), []) => float_method!(x.narrow, name).map(Float::narrow).map(Value::Float),
                (Some(_), []) => float_method!(x.wide, name).map(Float::wide).map(Value::Float),
                (Some(ty), [Value::Float(y)]) => {
                    if self.inference.known(y.kind) != Some(ty) {
                        return Some(Value::Unknown);
                    }
                    Some(Value::Float(match (ty, name) {
                        (NumberType::F32, "powf") => Float::narrow(x.narrow.powf(y.narrow)),
                        (NumberType::F32, "min") => Float::narrow(x.narrow.min(y.narrow)),
                        (NumberType::F32, "max") => Float::narrow(x.narrow.max(y.narrow)),
                        (_, "powf") => Float::wide(x.wide.powf(y.wide)),
                        (_, "min") => Float::wide(x.wide.min(y.wide)),
                        (_, "max") => Float::wide(x.wide.max(y.wide)),
                        _ => return None,
                    }))
                }
                (Some(ty), &[Value::Int(n, _)]) if name == "powi" => {
                    let n = i32::try_from(n).ok()?;
                    Some(Value::Float(match ty {
                        NumberType::F32 => Float::narrow(x.narrow.powi(n)),
                        _ => Float::wide(x.wide.powi(n)),
                    }))
                }
                _ => None,
            },
            Value::Int(x, kind) => {
                let Some(ty) = self.inference.known(kind) else { return Some(Value::Unknown) };
                let result = match (name, arguments) {
                    ("pow", &[Value::Int(n, _)]) => x.checked_pow(u32::try_from(n).ok()?),
                    ("abs", []) if ty.is_signed() => Some(x.abs()),
                    ("min", &[Value::Int(y, _)]) => Some(x.min(y)),
                    ("max", &[Value::Int(y, _)]) => Some(x.max(y)),
                    ("rem_euclid", &[Value::Int(y, _)]) => x.checked_rem_euclid(y),
                    ("div_euclid", &[Value::Int(y, _)]) => x.checked_div_euclid(y),
                    _ => return None,
                };
                Some(match result {
                    Some(result) => self.int(result, kind, whole),
                    None => self.refuse(whole, format!("`{}` has no value", source_text(whole))),
                })
            }
            _ => None,
        }
    }
}

/// Methods of floats without arguments.
macro_rules! float_method {
    ($x:expr, $name:expr) => {
        float_method!($x, $name; sqrt exp exp2 exp_m1 ln ln_1p log2 log10 recip abs signum floor ceil round trunc sin cos tan tanh)
    };
    ($x:expr, $name:expr; $($method:ident)*) => {
        match $name { $(stringify!($method) => Some($x.$method()),)* _ => None }
    };
}
use float_method;

/// The message for a number that its type does not have.
pub(super) fn overflow(value: i128, ty: NumberType) -> String {
    let (least, greatest) = ty.range();
    format!("{value} does not fit `{}`, which goes from {least} to {greatest}", ty.name())
}
