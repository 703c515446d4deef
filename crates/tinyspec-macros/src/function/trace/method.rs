//! Methods of tensors, by the one method table; and the few that are no rows of it.

use super::expression::text_of;
use super::{Tracer, Value};
use crate::diagnostics::Place;
use proc_macro2::Span;
use syn::{Expr, ExprMethodCall, Ident};
use tinyspec_ir::ops::{self, METHODS, Method, MethodArg, ParamKind};
use tinyspec_ir::{Arg, Builder, Const, DType, NodeId, Op, Shape};

/// Methods that read or change what only exists at run time, and what to do instead.
const AT_RUN_TIME: &[(&str, &str)] = &[
    ("to_vec", "reads values, which exist once the function is called: call it on the result, outside"),
    ("item", "reads a value, which exists once the function is called: call it on the result, outside"),
    ("realize", "computes now; a #[function] is computed when its result is read"),
    ("assign", "changes its tensor; a #[function] changes nothing: `let` a new name, or return the new value"),
    ("to", "moves to a device, which the caller chooses: move the arguments or the result, outside"),
    ("sizes", "reads a shape as numbers; dims are symbols here: name them in the signature"),
    ("error", "looks for a run-time error; here mistakes are compile errors"),
    ("is_realized", "asks about run time"),
    ("device", "asks about run time"),
];

impl Tracer<'_> {
    pub(super) fn method_call(&mut self, call: &ExprMethodCall, whole: &Expr) -> Value {
        let receiver = self.expression(&call.receiver);
        let place = Place::between(call.method.span(), call.paren_token.span.close());
        let name = call.method.to_string();
        match receiver {
            Value::Tensor(node) => {
                let receiver = (text_of(&call.receiver).unwrap_or("this".into()), Value::Tensor(node));
                self.tensor_method(&call.method, Some(receiver), &call.args, place, whole)
            }
            Value::Unknown => {
                // It may be a tensor: the name at least can be looked at.
                self.check_name(&call.method, whole);
                call.args.iter().for_each(|argument| drop(self.expression(argument)));
                Value::Unknown
            }
            Value::List(values) => match (name.as_str(), call.args.len()) {
                ("iter" | "into_iter" | "to_vec" | "clone" | "as_slice", 0) => Value::List(values),
                ("len", 0) => Value::Int(values.len() as i128),
                ("rev", 0) => Value::List(values.into_iter().rev().collect()),
                _ => self.refuse(whole, format!("`{name}` of a list is not traced: use `for`, or an index")),
            },
            Value::Range(start, end) if name == "rev" && call.args.is_empty() && end - start <= 4096 => {
                Value::List((start..end).rev().map(Value::Int).collect())
            }
            receiver => {
                let arguments: Vec<Value> = call.args.iter().map(|argument| self.expression(argument)).collect();
                if name == "clone" && arguments.is_empty() {
                    return receiver;
                }
                if arguments.iter().any(|argument| matches!(argument, Value::Unknown)) {
                    return Value::Unknown;
                }
                self.number_method(&name, &receiver, &arguments).unwrap_or_else(|| {
                    let message = format!(
                        "`{name}` of {} is not computed while tracing: make it a `const` outside the function",
                        receiver.describe()
                    );
                    self.refuse(whole, message)
                })
            }
        }
    }

    /// `Tensor::zeros([B, 4])`
    pub(super) fn associated(&mut self, name: &Ident, call: &syn::ExprCall, whole: &Expr) -> Value {
        let place = Place::between(name.span(), call.paren_token.span.close());
        self.tensor_method(name, None, &call.args, place, whole)
    }

    fn check_name(&mut self, method: &Ident, whole: &Expr) -> bool {
        let name = method.to_string();
        if let Some((_, what)) = AT_RUN_TIME.iter().find(|(known, _)| *known == name) {
            self.diagnostics.error_instead_of_rustc(whole, Place::of(method), format!("`{name}` {what}"));
            return false;
        }
        let known = METHODS.iter().any(|row| row.name == name) || OUTSIDE_THE_TABLE.contains(&name.as_str());
        if !known {
            let near = ops::nearest(&name).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            let message = format!("tensors have no method `{name}`{near}");
            self.diagnostics.error_instead_of_rustc(whole, Place::of(method), message);
        }
        known
    }

    fn tensor_method(
        &mut self,
        method: &Ident,
        receiver: Option<(String, Value)>,
        arguments: &syn::punctuated::Punctuated<Expr, syn::Token![,]>,
        place: Place,
        whole: &Expr,
    ) -> Value {
        let name = method.to_string();
        if !self.check_name(method, whole) {
            arguments.iter().for_each(|argument| drop(self.expression(argument)));
            return Value::Unknown;
        }
        if OUTSIDE_THE_TABLE.contains(&name.as_str()) {
            return self.outside_the_table(&name, receiver, arguments, place, whole);
        }
        let Some(row) = METHODS.iter().find(|row| row.name == name) else { return Value::Unknown };
        let is_method = row.params.first().is_some_and(|(_, kind)| *kind == ParamKind::tensor);
        if is_method != receiver.is_some() {
            let message = match row.params {
                _ if is_method => format!("`{name}` is a method: write `x.{name}(…)`"),
                _ => format!("`{name}` has no tensor before the dot: write `Tensor::{name}(…)`"),
            };
            return self.refuse(whole, message);
        }
        let expected = &row.params[is_method as usize..];
        if expected.len() != arguments.len() {
            let message = format!("`{name}` takes {}, found {}", arguments_of(expected), arguments.len());
            self.diagnostics.error_instead_of_rustc(whole, place, message);
            arguments.iter().for_each(|argument| drop(self.expression(argument)));
            return Value::Unknown;
        }
        let like = receiver.as_ref().map_or(DType::Void, |(_, value)| self.dtype_of(value));
        let mut operands: Vec<(String, Value)> = receiver.into_iter().collect();
        let mut args: Vec<Option<MethodArg>> = operands
            .iter()
            .map(|(_, value)| match value {
                Value::Tensor(node) => Some(MethodArg::Tensor(*node)),
                _ => None,
            })
            .collect();
        for ((param, kind), argument) in expected.iter().zip(arguments) {
            let value = self.expression(argument);
            args.push(self.argument(&name, param, *kind, &value, like, argument));
            operands.push((text_of(argument).unwrap_or_else(|| param.to_string()), value));
        }
        let Some(args) = args.into_iter().collect::<Option<Vec<_>>>() else { return Value::Unknown };
        self.finish(row, &args, method.span(), place, &operands)
    }

    fn finish(
        &mut self,
        row: &Method,
        args: &[MethodArg],
        span: Span,
        place: Place,
        operands: &[(String, Value)],
    ) -> Value {
        match self.build(span, |graph| ops::call(row.name, graph, args)) {
            Ok(nodes) if row.is_list => Value::List(nodes.into_iter().map(Value::Tensor).collect()),
            Ok(nodes) => nodes.into_iter().next().map_or(Value::Unknown, Value::Tensor),
            Err(error) => self.refused(place, &error, operands),
        }
    }

    /// An argument as its row of the table wants it.
    fn argument(
        &mut self,
        method: &str,
        param: &str,
        kind: ParamKind,
        value: &Value,
        like: DType,
        expression: &Expr,
    ) -> Option<MethodArg> {
        if matches!(value, Value::Unknown) {
            return None;
        }
        let int = |value: &Value| match value {
            Value::Int(number) => i64::try_from(*number).ok(),
            _ => None,
        };
        let ints = |value: &Value| match value {
            Value::List(values) => values.iter().map(int).collect::<Option<Vec<i64>>>(),
            _ => None,
        };
        let found = match (kind, value) {
            (ParamKind::tensor, value) => return self.operand(value, like, expression).map(MethodArg::Tensor),
            (ParamKind::tensors, Value::List(values)) => {
                let nodes: Option<Vec<_>> = values
                    .iter()
                    .map(|value| match value {
                        Value::Tensor(node) => Some(*node),
                        _ => None,
                    })
                    .collect();
                if nodes.is_none() && values.iter().any(|value| matches!(value, Value::Unknown)) {
                    return None;
                }
                nodes.map(MethodArg::Tensors)
            }
            (ParamKind::optional, Value::Optional(None)) => Some(MethodArg::Nothing),
            (ParamKind::optional, Value::Optional(Some(value))) => match **value {
                Value::Unknown => return None,
                Value::Tensor(node) => Some(MethodArg::Tensor(node)),
                _ => None,
            },
            (kind, value @ (Value::Options(..) | Value::Default)) if kind.fields().is_some() => {
                return self.options(method, kind, value, expression);
            }
            (ParamKind::int, value) => int(value).map(MethodArg::Int),
            (ParamKind::ints, value) => ints(value).map(MethodArg::Ints),
            (ParamKind::float, Value::Float(number)) => Some(MethodArg::Float(*number)),
            (ParamKind::flag, Value::Bool(value)) => Some(MethodArg::Flag(*value)),
            (ParamKind::dtype, Value::DType(dtype)) => Some(MethodArg::DType(*dtype)),
            (ParamKind::text, Value::Text(text)) => Some(MethodArg::Text(text.clone())),
            (ParamKind::axes, Value::All) => Some(MethodArg::AllAxes),
            (ParamKind::axes, value) => {
                int(value).map(|axis| MethodArg::Ints(vec![axis])).or_else(|| ints(value).map(MethodArg::Ints))
            }
            (ParamKind::shape, value) => self.shape_of(value).map(MethodArg::Shape),
            _ => None,
        };
        if found.is_none() {
            let message = match value {
                Value::Constant { text, .. } => format!(
                    "`{method}`: `{param}` must be {}, and no macro sees the value of `{text}`: write it out, or make it a `const` inside the function",
                    kind_text(kind)
                ),
                _ => format!("`{method}`: `{param}` must be {}, found {}", kind_text(kind), value.describe()),
            };
            self.diagnostics.error_instead_of_rustc(expression, Place::of(expression), message);
        }
        found
    }

    /// `Conv2d { stride: [2, 2], ..default() }`, or `default()`.
    fn options(&mut self, method: &str, kind: ParamKind, value: &Value, expression: &Expr) -> Option<MethodArg> {
        let Value::Options(name, given) = value else { return Some(MethodArg::Options(vec![])) };
        let (expected, known) = (format!("{kind:?}"), kind.fields().unwrap_or_default());
        if *name != expected {
            let message = format!("`{method}` takes options of the type `{expected}`, found `{name}`");
            self.diagnostics.error_instead_of_rustc(expression, Place::of(expression), message);
            return None;
        }
        let mut fields = vec![];
        for (field, value) in given {
            if !known.contains(&field.as_str()) {
                let message = format!("`{expected}` has no option `{field}`: they are `{}`", known.join("`, `"));
                self.diagnostics.error_instead_of_rustc(expression, Place::of(expression), message);
                return None;
            }
            fields.push((field.clone(), method_arg(value)?));
        }
        Some(MethodArg::Options(fields))
    }

    /// `[B, 64]`, `x.shape()`, `()`, or one size.
    pub(super) fn shape_of(&mut self, value: &Value) -> Option<Shape> {
        match value {
            Value::List(values) => values.iter().map(|value| self.as_dim(value)).collect(),
            Value::Tuple(elements) if elements.is_empty() => Some(Shape::new()),
            value => Some(Shape::from_iter([self.as_dim(value)?])),
        }
    }

    fn outside_the_table(
        &mut self,
        name: &str,
        receiver: Option<(String, Value)>,
        arguments: &syn::punctuated::Punctuated<Expr, syn::Token![,]>,
        place: Place,
        whole: &Expr,
    ) -> Value {
        let values: Vec<Value> = arguments.iter().map(|argument| self.expression(argument)).collect();
        if values.iter().any(|value| matches!(value, Value::Unknown)) {
            return Value::Unknown;
        }
        let node = match &receiver {
            Some((_, Value::Tensor(node))) => Some(*node),
            _ => None,
        };
        let like = node.map(|node| (self.graph.dtype(node), self.graph.props(node).shape.clone()));
        let built = match (name, &like, values.as_slice()) {
            ("clone", Some(_), []) => return receiver.map_or(Value::Unknown, |(_, value)| value),
            ("shape", Some((_, shape)), []) => return Value::List(shape.iter().cloned().map(Value::Dim).collect()),
            ("rank", Some((_, shape)), []) => return Value::Int(shape.len() as i128),
            ("dtype", Some((dtype, _)), []) => return Value::DType(*dtype),
            ("zeros", None, [shape]) => self.filled(shape, &Value::Float(0.0), Some(DType::F32), place),
            ("ones", None, [shape]) => self.filled(shape, &Value::Float(1.0), Some(DType::F32), place),
            ("full", None, [shape, value]) => self.filled(shape, value, None, place),
            ("full_of", None, [shape, value, Value::DType(dtype)]) => self.filled(shape, value, Some(*dtype), place),
            ("zeros_like", Some((dtype, shape)), []) => self.filled_like(shape, &Value::Int(0), *dtype, place),
            ("ones_like", Some((dtype, shape)), []) => self.filled_like(shape, &Value::Int(1), *dtype, place),
            ("full_like", Some((dtype, shape)), [value]) => self.filled_like(shape, value, *dtype, place),
            ("arange", None, [Value::Int(count)]) => {
                let count = *count as f64;
                self.build(place.start, |graph| ops::creation::arange(graph, 0.0, count, 1.0, DType::I32)).map(Some)
            }
            ("randn" | "uniform", ..) => {
                let message = format!(
                    "`Tensor::{name}` draws new numbers: a #[function] gives the same result for the same arguments; draw outside and pass the tensor"
                );
                return self.refuse(whole, message);
            }
            _ => Ok(None),
        };
        match built {
            Ok(Some(node)) => Value::Tensor(node),
            Ok(None) => {
                let message = format!("these are not the arguments of `{name}`: it takes {}", usage(name));
                self.diagnostics.error_instead_of_rustc(whole, place, message);
                Value::Unknown
            }
            Err(error) => self.refused(place, &error, &[]),
        }
    }

    fn filled(
        &mut self,
        shape: &Value,
        value: &Value,
        dtype: Option<DType>,
        place: Place,
    ) -> tinyspec_ir::Result<Option<NodeId>> {
        let Some(shape) = self.shape_of(shape) else { return Ok(None) };
        let dtype = dtype.or(match value {
            Value::Float(_) => Some(DType::F32),
            Value::Int(_) => Some(DType::I32),
            Value::Bool(_) => Some(DType::Bool),
            _ => None,
        });
        match dtype {
            Some(dtype) => self.filled_like(&shape, value, dtype, place),
            None => Ok(None),
        }
    }

    /// As the run time does: a constant, expanded.
    fn filled_like(
        &mut self,
        shape: &Shape,
        value: &Value,
        dtype: DType,
        place: Place,
    ) -> tinyspec_ir::Result<Option<NodeId>> {
        let value = match value {
            Value::Float(number) => Const::float(dtype, *number),
            Value::Int(number) => Const::int(dtype, *number),
            Value::Bool(value) => Const::int(dtype, *value as i128),
            _ => return Ok(None),
        };
        self.build(place.start, |graph| {
            let value = graph.constant(value);
            let shape = graph.shape(shape)?;
            graph.add(Op::Expand, &[value, shape], Arg::None).map(Some)
        })
    }
}

/// Functions of `Tensor` that are written by hand, since their arguments have defaults.
const OUTSIDE_THE_TABLE: &[&str] = &[
    "clone",
    "shape",
    "rank",
    "dtype",
    "zeros",
    "ones",
    "full",
    "full_of",
    "zeros_like",
    "ones_like",
    "full_like",
    "arange",
    "randn",
    "uniform",
];

fn usage(name: &str) -> &'static str {
    match name {
        "zeros" | "ones" => "a shape, as in `Tensor::zeros([B, 64])`",
        "full" => "a shape and a number, as in `Tensor::full([B, 64], 0.5)`",
        "full_of" => "a shape, a number and a dtype, as in `Tensor::full_of([B, 64], 1, DType::I64)`",
        "full_like" => "a number",
        "arange" => "the number of elements, as a literal",
        _ => "nothing",
    }
}

/// A value of an option.
fn method_arg(value: &Value) -> Option<MethodArg> {
    Some(match value {
        Value::Int(number) => MethodArg::Int(i64::try_from(*number).ok()?),
        Value::Float(number) => MethodArg::Float(*number),
        Value::Bool(value) => MethodArg::Flag(*value),
        Value::Text(text) => MethodArg::Text(text.clone()),
        Value::DType(dtype) => MethodArg::DType(*dtype),
        Value::Optional(None) => MethodArg::Nothing,
        Value::Optional(Some(value)) => method_arg(value)?,
        Value::List(values) => {
            let numbers = values.iter().map(|value| match value {
                Value::Int(number) => i64::try_from(*number).ok(),
                _ => None,
            });
            MethodArg::Ints(numbers.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// `1 argument (`axis`: a whole number)`
fn arguments_of(params: &[(&str, ParamKind)]) -> String {
    let shown: Vec<String> = params.iter().map(|(name, kind)| format!("`{name}`: {}", kind_text(*kind))).collect();
    match shown.as_slice() {
        [] => "no arguments".to_string(),
        [one] => format!("1 argument ({one})"),
        more => format!("{} arguments ({})", more.len(), more.join(", ")),
    }
}

fn kind_text(kind: ParamKind) -> &'static str {
    match kind {
        ParamKind::tensor => "a tensor or a number",
        ParamKind::tensors => "tensors, as in `&[&a, &b]`",
        ParamKind::int => "a whole number",
        ParamKind::ints => "whole numbers, as in `[0, 1]`",
        ParamKind::float => "a number with a point",
        ParamKind::flag => "`true` or `false`",
        ParamKind::dtype => "a dtype, as in `DType::F32`",
        ParamKind::shape => "a shape, as in `[B, 64]`",
        ParamKind::axes => "an axis, axes as in `[0, 1]`, or `..` for all",
        ParamKind::text => "a string",
        ParamKind::optional => "`None`, or `Some(&tensor)`",
        _ => "a struct of options, as in `Conv2d { stride: [2, 2], ..default() }`",
    }
}
