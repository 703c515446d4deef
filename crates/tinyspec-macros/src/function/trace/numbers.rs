//! Numbers: what is known while tracing is computed, and a number beside a tensor takes the tensor's dtype.

use super::{Tracer, Value};
use crate::diagnostics::Place;
use syn::{BinOp, Expr, ExprCast, Type};
use tinyspec_ir::function::FIRST_CONSTANT;
use tinyspec_ir::ops::{self, Literal, LiteralKind};
use tinyspec_ir::{Arg, Builder, DType, Dim, NodeId, Op};

/// Constants of `std` that a body may name: `f32::consts::PI`.
pub(super) fn known_constant(module: &str, name: &str) -> Option<f64> {
    use std::f64::consts;
    Some(match (module, name) {
        ("consts", "PI") => consts::PI,
        ("consts", "E") => consts::E,
        ("consts", "TAU") => consts::TAU,
        ("consts", "LN_2") => consts::LN_2,
        ("consts", "SQRT_2") => consts::SQRT_2,
        ("f32" | "f64", "INFINITY") => f64::INFINITY,
        ("f32" | "f64", "NEG_INFINITY") => f64::NEG_INFINITY,
        ("f32" | "f64", "NAN") => f64::NAN,
        ("f32", "MAX") => f32::MAX.into(),
        ("f32", "MIN") => f32::MIN.into(),
        ("f32", "EPSILON") => f32::EPSILON.into(),
        ("f64", "MAX") => f64::MAX,
        ("f64", "MIN") => f64::MIN,
        ("f64", "EPSILON") => f64::EPSILON,
        _ => return None,
    })
}

impl Tracer<'_> {
    /// A value where a tensor is wanted; a number takes the dtype `like` of its neighbour (SEMANTICS, "literals are weak").
    pub(super) fn operand(&mut self, value: &Value, like: DType, expression: &Expr) -> Result<NodeId, Value> {
        let place = Place::of(expression);
        let literal = match *value {
            Value::Int(number) => Some(Literal::Int(number)),
            Value::Float(number) => Some(Literal::Float(number)),
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
            Value::Constant { text, path, kind } => {
                let dtype = match kind {
                    Some(kind) => kind.beside(like),
                    None if like.is_float() => like,
                    None => {
                        let message = format!(
                            "no macro sees whether `{text}` is a whole number: write `{text} as f32` or `{text} as i32`"
                        );
                        return Err(self.refuse(expression, message));
                    }
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
            (Value::Int(a), Value::Int(b)) => {
                let (a, b) = (*a, *b);
                let result = match op {
                    BinOp::Add(_) => a.checked_add(b),
                    BinOp::Sub(_) => a.checked_sub(b),
                    BinOp::Mul(_) => a.checked_mul(b),
                    BinOp::Div(_) => a.checked_div(b),
                    BinOp::Rem(_) => a.checked_rem(b),
                    BinOp::BitAnd(_) => Some(a & b),
                    BinOp::BitOr(_) => Some(a | b),
                    BinOp::BitXor(_) => Some(a ^ b),
                    BinOp::Shl(_) => u32::try_from(b).ok().and_then(|b| a.checked_shl(b)),
                    BinOp::Shr(_) => u32::try_from(b).ok().and_then(|b| a.checked_shr(b)),
                    _ => None,
                };
                result.map_or_else(
                    || self.refuse(whole, format!("{a} {} {b} has no value", crate::diagnostics::source_text(&op))),
                    Value::Int,
                )
            }
            (Value::Float(a), Value::Float(b)) => match op {
                BinOp::Add(_) => Value::Float(a + b),
                BinOp::Sub(_) => Value::Float(a - b),
                BinOp::Mul(_) => Value::Float(a * b),
                BinOp::Div(_) => Value::Float(a / b),
                BinOp::Rem(_) => Value::Float(a % b),
                _ => Value::Unknown,
            },
            (Value::Bool(a), Value::Bool(b)) => match op {
                BinOp::And(_) | BinOp::BitAnd(_) => Value::Bool(*a && *b),
                BinOp::Or(_) | BinOp::BitOr(_) => Value::Bool(*a || *b),
                BinOp::BitXor(_) => Value::Bool(a ^ b),
                _ => Value::Unknown,
            },
            (left, right) => {
                let (Some(a), Some(b)) = (self.as_dim(left), self.as_dim(right)) else {
                    return match (left, right) {
                        (Value::Constant { text, .. }, _) | (_, Value::Constant { text, .. }) => {
                            let shown = super::expression::name_of(whole);
                            let message = format!(
                                "no macro sees the value of `{text}`, so `{shown}` has none here: compute it outside the function, as a `const` of its own"
                            );
                            self.refuse(whole, message)
                        }
                        (Value::Dim(_), Value::Float(_)) | (Value::Float(_), Value::Dim(_)) => self.refuse(
                            whole,
                            "a size has no number with a point beside it: let the tensor meet them one by one, `x * B * 0.5`",
                        ),
                        // Types that do not fit are rustc's.
                        _ => Value::Unknown,
                    };
                };
                Value::Dim(match op {
                    BinOp::Add(_) => a + b,
                    BinOp::Sub(_) => a - b,
                    BinOp::Mul(_) => a * b,
                    BinOp::Div(_) => a.idiv(&b),
                    BinOp::Rem(_) => a.modulo(&b),
                    _ => return self.refuse(whole, "dims are made with `+`, `-`, `*`, `/` and `%`"),
                })
            }
        }
    }

    /// Comparisons of what is known.
    pub(super) fn fold_comparison(&mut self, op: BinOp, left: &Value, right: &Value, whole: &Expr) -> Value {
        let order = match (left, right) {
            (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
            (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
            (Value::Dim(a), Value::Dim(b)) if a == b => Some(std::cmp::Ordering::Equal),
            (Value::DType(a), Value::DType(b)) => Some(a.cmp(b)),
            (left, right) => {
                if let Some(spoiled) = Value::without_value([left, right]) {
                    return spoiled;
                }
                let shown = super::expression::name_of(whole);
                let message = match (left, right) {
                    (Value::Dim(_), _) | (_, Value::Dim(_)) => format!(
                        "whether `{shown}` holds is known when the function is called: one graph serves all sizes; write two functions, and choose where they are called"
                    ),
                    (Value::Constant { text, .. }, _) | (_, Value::Constant { text, .. }) => {
                        let message = format!(
                            "no macro sees the value of `{text}`: write it out, or make it a `const` inside the function"
                        );
                        return self.refuse(whole, message);
                    }
                    // Types that do not fit are rustc's.
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
            Value::Int(number) => i64::try_from(*number).ok().map(Dim::from),
            Value::Dim(dim) => Some(dim.clone()),
            Value::Constant { text, path, .. } => Some(self.constants.dim(text.clone(), path.clone())),
            _ => None,
        }
    }

    /// `value as f32`
    pub(super) fn cast(&mut self, cast: &ExprCast) -> Value {
        let value = self.expression(&cast.expr);
        let to = match &*cast.ty {
            Type::Path(path) => path.path.get_ident().map(ToString::to_string).unwrap_or_default(),
            _ => String::new(),
        };
        let is_float = matches!(to.as_str(), "f32" | "f64");
        let is_int =
            tinyspec_ir::DType::from_name(&to).is_some_and(DType::is_int) || matches!(to.as_str(), "usize" | "isize");
        match value {
            Value::Int(number) if is_float => Value::Float(number as f64),
            Value::Float(number) if to == "f32" => Value::Float((number as f32).into()),
            Value::Float(number) if is_float => Value::Float(number),
            Value::Float(number) if is_int => Value::Int(number as i128),
            Value::Int(number) if is_int => Value::Int(number),
            Value::Bool(value) if is_int => Value::Int(value as i128),
            Value::Constant { text, path, .. } if is_float || is_int => {
                let text = format!("{text} as {to}");
                let ty = &cast.ty;
                let path = quote::quote!((#path as #ty));
                Value::Constant { text, path, kind: Some(if is_float { LiteralKind::Float } else { LiteralKind::Int }) }
            }
            Value::Tensor(_) => {
                let name = super::expression::text_of(&cast.expr).unwrap_or("x".into());
                let dtype =
                    tinyspec_ir::DType::from_name(&to).map_or(to.to_uppercase(), |dtype| dtype.name().to_uppercase());
                let message = match DType::from_name(&to) {
                    Some(_) => format!("`as` converts numbers; for a tensor write `{name}.cast(DType::{dtype})`"),
                    None => "`as` converts numbers; for a tensor write `.cast(DType::F32)`".to_string(),
                };
                self.refuse(&Expr::Cast(cast.clone()), message)
            }
            Value::Dim(_) => {
                let message = "a size is no Rust number while it is open, and needs no `as` beside a tensor: `x / B` takes the dtype of `x`";
                self.refuse(&Expr::Cast(cast.clone()), message)
            }
            Value::Wrong => Value::Wrong,
            _ => Value::Unknown,
        }
    }

    /// A method of a number: computed while tracing.
    pub(super) fn number_method(&mut self, name: &str, receiver: &Value, arguments: &[Value]) -> Option<Value> {
        let float = match (receiver, name, arguments) {
            (Value::Float(x), "sqrt", []) => x.sqrt(),
            (Value::Float(x), "exp", []) => x.exp(),
            (Value::Float(x), "exp2", []) => x.exp2(),
            (Value::Float(x), "ln", []) => x.ln(),
            (Value::Float(x), "log2", []) => x.log2(),
            (Value::Float(x), "recip", []) => x.recip(),
            (Value::Float(x), "abs", []) => x.abs(),
            (Value::Float(x), "powi", [Value::Int(n)]) => x.powi(i32::try_from(*n).ok()?),
            (Value::Float(x), "powf", [Value::Float(y)]) => x.powf(*y),
            (Value::Float(x), "min", [Value::Float(y)]) => x.min(*y),
            (Value::Float(x), "max", [Value::Float(y)]) => x.max(*y),
            (Value::Int(x), "pow", [Value::Int(n)]) => return x.checked_pow(u32::try_from(*n).ok()?).map(Value::Int),
            (Value::Int(x), "abs", []) => return Some(Value::Int(x.abs())),
            (Value::Int(x), "min", [Value::Int(y)]) => return Some(Value::Int(*x.min(y))),
            (Value::Int(x), "max", [Value::Int(y)]) => return Some(Value::Int(*x.max(y))),
            _ => return None,
        };
        Some(Value::Float(float))
    }
}
