//! Options of a method as a struct literal: `Conv2d { stride: [2, 2], ..default() }`.

use super::{Tracer, Value};
use crate::diagnostics::Place;
use syn::{Expr, ExprStruct, Member};
use tinyspec_ir::Dim;
use tinyspec_ir::ops::{METHODS, MethodArg, ParamKind};

impl Tracer<'_> {
    /// The literal.
    pub(super) fn options_literal(&mut self, literal: &ExprStruct, whole: &Expr) -> Value {
        let name = literal.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        let mut kinds = METHODS.iter().flat_map(|row| row.params).map(|(_, kind)| *kind);
        let Some(known) = kinds.find(|kind| format!("{kind:?}") == name).and_then(ParamKind::fields) else {
            return self.refuse_control(whole);
        };
        let mut is_wrong = false;
        let mut fields = vec![];
        for field in &literal.fields {
            let value = self.expression(&field.expr);
            let value = self.decided_numbers(&value, 0, &field.expr).unwrap_or_else(|wrong| wrong);
            is_wrong |= matches!(Value::without_value([&value]), Some(Value::Wrong));
            match &field.member {
                Member::Named(member) if known.contains(&member.to_string().as_str()) => {
                    fields.push((member.to_string(), value));
                }
                other => {
                    let message =
                        format!("`{name}` has no option `{}`: they are `{}`", member(other), known.join("`, `"));
                    self.diagnostics.error(Place::of(other), message);
                    is_wrong = true;
                }
            }
        }
        match &literal.rest {
            Some(rest) if !is_default(rest) => {
                self.diagnostics.error(Place::of(&**rest), "the other options are `..default()`");
                is_wrong = true;
            }
            None if fields.len() < known.len() && !is_wrong => {
                let message = format!("the other options of `{name}` are missing: end with `..default()`");
                self.diagnostics.error(Place::of(literal), message);
                is_wrong = true;
            }
            _ => {}
        }
        for ((option, value), field) in fields.iter().zip(&literal.fields) {
            let message = if let Some(text) = constant_in(value) {
                Some(format!(
                    "macros cannot see the value of `{text}`: write `{option}` out, or make `{text}` a `const` inside the function"
                ))
            } else if let Some(dim) = dim_in(value) {
                let dim = tinyspec_ir::dim::with_names(&self.names(), || dim.to_string());
                Some(format!(
                    "`{option}` is a number, and the size {dim} is known when the function is called: make it a number or a `const`"
                ))
            } else {
                None
            };
            if let Some(message) = message {
                is_wrong |= matches!(self.refuse(&field.expr, message), Value::Wrong);
            }
        }
        if is_wrong { Value::Wrong } else { Value::Options(name, fields) }
    }

    /// The options of a method: a literal's, or `default()`.
    pub(super) fn options(
        &mut self,
        method: &str,
        kind: ParamKind,
        value: &Value,
        expression: &Expr,
    ) -> Result<MethodArg, Value> {
        let Value::Options(name, given) = value else { return Ok(MethodArg::Options(vec![])) };
        let expected = format!("{kind:?}");
        if *name != expected {
            let message = format!("`{method}` takes options of the type `{expected}`, found `{name}`");
            return Err(self.refuse(expression, message));
        }
        // rustc reports a value of another type.
        let fields = given.iter().map(|(field, value)| Some((field.clone(), self.option_value(value)?)));
        fields.collect::<Option<_>>().map(MethodArg::Options).ok_or(Value::Unknown)
    }

    /// The value of an option.
    fn option_value(&mut self, value: &Value) -> Option<MethodArg> {
        Some(match value {
            Value::Int(number, kind) => {
                self.inference.pass(*kind);
                MethodArg::Int(i64::try_from(*number).ok()?)
            }
            Value::Float(number) => MethodArg::Float(self.as_f64(number)?),
            Value::Bool(value) => MethodArg::Flag(*value),
            Value::Text(text) => MethodArg::Text(text.clone()),
            Value::DType(dtype) => MethodArg::DType(*dtype),
            Value::Optional(None) => MethodArg::Nothing,
            Value::Optional(Some(value)) => self.option_value(value)?,
            Value::List(values) => {
                let numbers = values.iter().map(|value| match value {
                    Value::Int(number, _) => i64::try_from(*number).ok(),
                    _ => None,
                });
                MethodArg::Ints(numbers.collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }
}

fn member(member: &Member) -> String {
    match member {
        Member::Named(name) => name.to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}

fn is_default(rest: &Expr) -> bool {
    match rest {
        Expr::Call(call) if call.args.is_empty() => match &*call.func {
            Expr::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "default"),
            _ => false,
        },
        _ => false,
    }
}

fn dim_in(value: &Value) -> Option<&Dim> {
    match value {
        Value::Dim(dim) => Some(dim),
        Value::List(values) => values.iter().find_map(dim_in),
        Value::Optional(Some(value)) => dim_in(value),
        _ => None,
    }
}

fn constant_in(value: &Value) -> Option<String> {
    match value {
        Value::Constant { text, .. } => Some(text.clone()),
        Value::List(values) => values.iter().find_map(constant_in),
        Value::Optional(Some(value)) => constant_in(value),
        _ => None,
    }
}
