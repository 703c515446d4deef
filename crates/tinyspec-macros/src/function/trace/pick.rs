//! Parts of tensors, `x.at((1..3, .., -1))`, and methods that give a local name a new value, `x.set(0, 1.0)`,
//! `x.assign(&y)`.

use super::expression::{name_of, text_of};
use super::{Tracer, Value};
use crate::diagnostics::{Adaptation, Place};
use syn::{Expr, ExprMethodCall, RangeLimits};
use tinyspec_ir::ops::LiteralKind;
use tinyspec_ir::ops::pick::{self, Pick};
use tinyspec_ir::ops::slice::Slice;
use tinyspec_ir::{Dim, NodeId};

/// Methods of parts and of assignment.
pub(super) const PICKING: &[&str] = &["at", "set", "assign"];

impl Tracer<'_> {
    /// Traces a call of one of [`PICKING`] on a tensor.
    pub(super) fn picking(&mut self, call: &ExprMethodCall, x: NodeId, place: Place, whole: &Expr) -> Value {
        let name = call.method.to_string();
        let mut operands = vec![(name_of(&call.receiver), Value::Tensor(x))];
        let arguments: Vec<&Expr> = call.args.iter().collect();
        let built = match (name.as_str(), arguments.as_slice()) {
            ("at", [picks]) => match self.picks(picks) {
                Ok(picks) => self.build(call.method.span(), |graph| pick::at(graph, x, &picks)),
                Err(spoiled) => return spoiled,
            },
            ("set", [picks, value]) => {
                let picks = self.picks(picks);
                let written = self.expression(value);
                operands.push((name_of(value), written.clone()));
                let node = match Value::without_value([&written]) {
                    Some(spoiled) => Err(spoiled),
                    None => self.operand(&written, self.graph.dtype(x), value),
                };
                match (picks, node) {
                    (Ok(picks), Ok(node)) => self.build(call.method.span(), |graph| pick::set(graph, x, &picks, node)),
                    (Err(spoiled), _) | (_, Err(spoiled)) => return self.change(call, spoiled, whole),
                }
            }
            ("assign", [value]) => {
                let written = self.expression(value);
                operands.push((name_of(value), written.clone()));
                match written {
                    Value::Tensor(node) => self.build(call.method.span(), |graph| pick::assigned(graph, x, node)),
                    // rustc reports what is not a tensor.
                    other => return self.change(call, other, whole),
                }
            }
            // rustc reports a wrong number of arguments.
            _ => return self.arguments(&call.args),
        };
        let value = match built {
            Ok(node) => Value::Tensor(node),
            Err(error) => self.refused(place, &error, &operands),
        };
        if name == "at" { value } else { self.change(call, value, whole) }
    }

    /// From here on the receiver's name has a new value.
    fn change(&mut self, call: &ExprMethodCall, value: Value, whole: &Expr) -> Value {
        self.assign(&call.receiver, value, whole)
    }

    /// A pick, or a tuple of them.
    fn picks(&mut self, picks: &Expr) -> Result<Vec<Pick>, Value> {
        match picks {
            Expr::Tuple(tuple) => {
                let picks: Vec<Result<Pick, Value>> = tuple.elems.iter().map(|one| self.pick(one)).collect();
                picks.into_iter().collect()
            }
            Expr::Paren(inner) => self.picks(&inner.expr),
            Expr::Group(inner) => self.picks(&inner.expr),
            one => Ok(vec![self.pick(one)?]),
        }
    }

    fn pick(&mut self, one: &Expr) -> Result<Pick, Value> {
        let last = |path: &syn::Path| path.segments.last().map(|segment| segment.ident.to_string());
        match one {
            Expr::Paren(inner) => return self.pick(&inner.expr),
            Expr::Group(inner) => return self.pick(&inner.expr),
            Expr::Range(range) => {
                if let Some(pick) = self.sizes(range)? {
                    return Ok(pick);
                }
                let start = range.start.as_deref().map(|end| self.end(end)).transpose()?;
                let stop = range.end.as_deref().map(|end| self.end(end)).transpose()?;
                let stop = match range.limits {
                    // `..=-1` has no end.
                    RangeLimits::Closed(_) => stop.filter(|&stop| stop != -1).map(|stop| stop.saturating_add(1)),
                    RangeLimits::HalfOpen(_) => stop,
                };
                return Ok(Pick::Slice(Slice::Span { start, stop, step: 1 }));
            }
            Expr::Call(call) => {
                if let (Expr::Path(function), [range, step]) = (&*call.func, &call.args.iter().collect::<Vec<_>>()[..])
                    && last(&function.path).as_deref() == Some("stepped")
                {
                    let (range, step) = (self.pick(range)?, self.end(step)?);
                    return Ok(match range {
                        Pick::Slice(Slice::Span { start, stop, .. }) => Pick::Slice(Slice::Span { start, stop, step }),
                        other => other,
                    });
                }
            }
            Expr::Path(path) => match last(&path.path).as_deref() {
                Some("NewAxis") => return Ok(Pick::NewAxis),
                Some("Rest") => return Ok(Pick::Rest),
                _ => {}
            },
            _ => {}
        }
        let value = self.expression(one);
        match value {
            Value::Tensor(node) => Ok(Pick::Tensor(node)),
            Value::Int(..) => self.position(&value, one).map(|position| Pick::Slice(Slice::At(position.into()))),
            Value::Range(start, stop, kind) => {
                self.inference.pass(kind);
                let (start, stop) = (i64::try_from(start).ok(), i64::try_from(stop).ok());
                Ok(Pick::Slice(Slice::Span { start, stop, step: 1 }))
            }
            Value::Dim(dim) => Ok(Pick::Slice(Slice::At(dim))),
            // The index of a loop with a constant bound: whatever it picks has the same shape.
            Value::Constant { ref path, kind: Some(LiteralKind::Int), .. } if self.is_open(path) => {
                Ok(Pick::Slice(Slice::At(Dim::from(0))))
            }
            Value::Constant { .. } if self.as_dim(&value).is_some() => {
                let dim = self.as_dim(&value).unwrap_or(Dim::from(0));
                self.diagnostics.adapt(one, Adaptation::Size);
                Ok(Pick::Slice(Slice::At(dim)))
            }
            Value::All => Ok(Pick::Slice(Slice::ALL)),
            other => Err(self.no_position(other, one)),
        }
    }

    /// A range in which at least one end is a size.
    fn sizes(&mut self, range: &syn::ExprRange) -> Result<Option<Pick>, Value> {
        let mut end = |end: &Option<Box<Expr>>| end.as_ref().map(|end| self.expression(end));
        let (start, stop) = (end(&range.start), end(&range.end));
        let is_size = |end: &Option<Value>| matches!(end, Some(Value::Dim(_) | Value::Constant { .. }));
        if !is_size(&start) && !is_size(&stop) {
            return Ok(None);
        }
        let mut dim = |value: Option<Value>, written: &Option<Box<Expr>>| match (value, written) {
            (Some(value), Some(written)) => match self.as_dim(&value) {
                Some(dim) => {
                    self.diagnostics.adapt(&**written, Adaptation::Size);
                    Ok(Some(dim))
                }
                None => Err(self.no_position(value, written)),
            },
            _ => Ok(None),
        };
        let (start, stop) = (dim(start, &range.start)?, dim(stop, &range.end)?);
        let stop = match range.limits {
            RangeLimits::Closed(_) => stop.map(|stop| stop + Dim::from(1)),
            RangeLimits::HalfOpen(_) => stop,
        };
        Ok(Some(Pick::Slice(Slice::Sizes { start: start.unwrap_or(Dim::from(0)), stop })))
    }

    /// An end of a range, or a step.
    fn end(&mut self, end: &Expr) -> Result<i64, Value> {
        let value = self.expression(end);
        self.position(&value, end)
    }

    fn position(&mut self, value: &Value, expression: &Expr) -> Result<i64, Value> {
        match *value {
            Value::Int(number, kind) => {
                self.inference.pass(kind);
                i64::try_from(number).map_err(|_| Value::Unknown)
            }
            ref other => Err(self.no_position(other.clone(), expression)),
        }
    }

    fn no_position(&mut self, value: Value, expression: &Expr) -> Value {
        if let Some(spoiled) = Value::without_value([&value]) {
            return spoiled;
        }
        let text = text_of(expression).unwrap_or("this".into());
        let message = match &value {
            Value::Dim(_) => format!(
                "`{text}` is known when the function is called: a step is a number, and so is a position that a loop variable gives"
            ),
            Value::Constant { .. } => format!(
                "the value of `{text}` is needed, which macros cannot see: write a number, or make the constant a `const` inside the function"
            ),
            // rustc reports which types can pick.
            Value::Float(_) | Value::Bool(_) | Value::Text(_) => return Value::Unknown,
            other => format!("{} picks nothing: write a position, a range, or a tensor of positions", other.describe()),
        };
        self.refuse(expression, message)
    }
}
