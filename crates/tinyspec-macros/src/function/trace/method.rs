//! Methods of tensors, from the method table, and the few that are not in it.

use super::constants::FLOAT_METHODS;
use super::expression::name_of;
use super::inference::{Float, Kind, NumberType};
use super::pick::PICKING;
use super::words::{AT_RUN_TIME, arguments_of, found_text, instead, kind_text, may_be, sample, usage, usual};
use super::{Tracer, Value, elsewhere};
use crate::diagnostics::{Place, source_text};
use crate::function::source::is_list;
use proc_macro2::Span;
use syn::punctuated::Punctuated;
use syn::{Expr, ExprMethodCall, Ident, Token};
use tinyspec_ir::ops::{self, LiteralKind, METHODS, Method, MethodArg, ParamKind};
use tinyspec_ir::{Arg, Builder, Const, DType, ErrorKind, NodeId, Op, Shape};

/// Methods of lists; no callee can return a list yet, but half-typed code may call these.
const LIST_METHODS: &[&str] = &[
    "iter",
    "iter_mut",
    "into_iter",
    "to_vec",
    "as_slice",
    "len",
    "rev",
    "enumerate",
    "zip",
    "step_by",
    "collect",
    "push",
];

impl Tracer<'_> {
    pub(super) fn method_call(&mut self, call: &ExprMethodCall, whole: &Expr) -> Value {
        let receiver = self.expression(super::expression::without_deref(&call.receiver));
        if let Some(wrong) = self.named_argument(&call.args, whole) {
            return wrong;
        }
        let place = Place::between(call.method.span(), call.paren_token.span.close());
        let name = call.method.to_string();
        match receiver {
            Value::Tensor(node) if PICKING.contains(&name.as_str()) => self.picking(call, node, place, whole),
            Value::Tensor(node) => {
                let receiver = (name_of(&call.receiver), Value::Tensor(node));
                self.tensor_method(&call.method, Some(receiver), &call.args, place, whole)
            }
            Value::Wrong => {
                // It may have been a tensor, so the name of the method can at least be checked. `x.to_vec().unwrap()`
                // is one mistake.
                if !matches!(name.as_str(), "unwrap" | "expect") {
                    self.check_name(&call.method, whole, true);
                }
                self.arguments(&call.args);
                Value::Wrong
            }
            Value::Unseen | Value::Unknown if PICKING.contains(&name.as_str()) => Value::Unknown,
            Value::Unseen => {
                self.arguments(&call.args);
                if matches!(name.as_str(), "iter" | "iter_mut" | "as_ref" | "as_mut" | "clone") {
                    Value::Unseen
                } else {
                    Value::Unknown
                }
            }
            Value::Model(model) => {
                if name == "clone" && call.args.is_empty() {
                    return self.resolved(Value::Model(model));
                }
                self.model_method(&model, call, whole)
            }
            Value::Optional(inner) if matches!(name.as_str(), "is_some" | "is_none") => {
                Value::Bool(inner.is_some() == (name == "is_some"))
            }
            Value::Optional(inner) if matches!(name.as_str(), "as_ref" | "as_mut") && call.args.is_empty() => {
                Value::Optional(inner)
            }
            Value::Optional(inner) if name == "clone" && call.args.is_empty() => self.resolved(Value::Optional(inner)),
            Value::Unknown => self.method_of_unknown(call, place, whole),
            Value::List(values) => self.list_method(values, call, place, whole),
            Value::Range(start, end, kind)
                if end - start <= 4096 && matches!(name.as_str(), "rev" | "step_by" | "into_iter") =>
            {
                let values = (start..end).map(|number| Value::Int(number, kind)).collect();
                self.list_method(values, call, place, whole)
            }
            receiver => {
                let arguments: Vec<Value> = call.args.iter().map(|argument| self.expression(argument)).collect();
                if name == "clone" && arguments.is_empty() {
                    return receiver;
                }
                if let Some(spoiled) = Value::without_value(&arguments) {
                    return spoiled;
                }
                let has_constant =
                    || [&receiver].into_iter().chain(&arguments).any(|value| matches!(value, Value::Constant { .. }));
                if has_constant()
                    && let Some(value) = self.constant_method(&call.method, &receiver, &arguments)
                {
                    return value;
                }
                if let Some(value) = self.number_method(&name, &receiver, &arguments, whole) {
                    return value;
                }
                let message = match &receiver {
                    Value::Constant { text, .. } => {
                        let message = format!(
                            "`{text}` is not a tensor, and macros cannot see its value: only methods of tensors and #[function]s are traced"
                        );
                        return self.refuse(whole, message);
                    }
                    // rustc reports that a tuple has no such method.
                    Value::Tuple(_) => return Value::Unknown,
                    Value::Dim(_)
                        if FLOAT_METHODS.contains(&name.as_str()) && METHODS.iter().any(|row| row.name == name) =>
                    {
                        let (size, arguments) = (source_text(&call.receiver), source_text(&call.args));
                        format!(
                            "`{name}` of a size, which is not a tensor: write `({size} as f32).{name}({arguments})`"
                        )
                    }
                    Value::Dim(_) => {
                        format!("`{name}` of a size, which is open here: sizes have `+`, `-`, `*`, `/` and `%`")
                    }
                    Value::Int(..) | Value::Float(_) | Value::Bool(_) => {
                        format!(
                            "`{name}` of a number is not computed while tracing: make it a `const` outside the function"
                        )
                    }
                    Value::Optional(_) => {
                        let text = super::expression::text_of(&call.receiver).unwrap_or("part".into());
                        let text = text.strip_suffix(".as_ref()").unwrap_or(&text);
                        format!(
                            "`{name}` of an Option: whether it is present is known, so write `if let Some(part) = &{text} {{ … }}`"
                        )
                    }
                    Value::OpenRange { text, .. } => format!(
                        "`{name}` of `{text}` is not traced, as macros cannot see where it ends: write a number, or make the constant a `const` inside the function"
                    ),
                    other => format!("`{name}` of {} is not traced", other.describe()),
                };
                self.refuse(whole, message)
            }
        }
    }

    /// `Tensor::zeros([B, 4])`
    pub(super) fn associated(&mut self, name: &Ident, call: &syn::ExprCall, whole: &Expr) -> Value {
        let place = Place::between(name.span(), call.paren_token.span.close());
        self.tensor_method(name, None, &call.args, place, whole)
    }

    /// Whether tensors have a method of this name; if not, it is reported. If the receiver may not be a tensor, only a
    /// near miss is.
    fn check_name(&mut self, method: &Ident, whole: &Expr, only_near: bool) -> bool {
        let name = method.to_string();
        // PyTorch's in-place methods, such as `relu_`.
        let plain = name.strip_suffix('_').filter(|plain| !plain.is_empty() && !is_known(&name)).unwrap_or(&name);
        if let Some((_, what)) = AT_RUN_TIME.iter().find(|(known, _)| *known == plain) {
            self.diagnostics.error_instead_of_rustc(whole, Place::of(method), format!("`{name}` {what}"));
            return false;
        }
        let known = is_known(&name);
        if !known {
            let in_place = is_known(plain).then(|| {
                format!(": tensors are values, so give what `{plain}` makes a name, as in `let x = x.{plain}(…);`")
            });
            let other = in_place.or_else(|| elsewhere::hint(plain).map(|hint| format!(": {hint}")));
            let help = other.or_else(|| ops::nearest(&name).map(|near| format!("; did you mean `{near}`?")));
            if help.is_some() || !only_near {
                // rustc would suggest traits in scope.
                let help = help.unwrap_or_else(|| {
                    format!(
                        ": methods of traits are not seen here, so write yours as a #[function] and call `{name}(…)`"
                    )
                });
                let message = format!("tensors have no method `{name}`{help}");
                self.diagnostics.error_instead_of_rustc(whole, Place::of(method), message);
            }
        }
        known
    }

    /// A method of another function's result, before its signature is known.
    fn method_of_unknown(&mut self, call: &ExprMethodCall, place: Place, whole: &Expr) -> Value {
        let name = call.method.to_string();
        let is_of_lists = LIST_METHODS.contains(&name.as_str());
        if is_of_lists || self.check_name(&call.method, whole, false) {
            // With the signature the same will be reported; rustc should not report it too.
            let row = METHODS.iter().find(|row| row.name == name && row.params.len() != call.args.len() + 1);
            if let Some(row) = row.filter(|_| !is_of_lists) {
                let called = format!("{}.", name_of(&call.receiver));
                let expected = row.params.get(1..).unwrap_or_default();
                self.wrong_count(row, expected, &called, &call.args, place, whole);
                self.arguments(&call.args);
                return Value::Wrong;
            }
            return self.arguments(&call.args);
        }
        self.arguments(&call.args);
        Value::Wrong
    }

    fn list_method(&mut self, values: Vec<Value>, call: &ExprMethodCall, place: Place, whole: &Expr) -> Value {
        let name = call.method.to_string();
        let arguments: Vec<Value> = match name.as_str() {
            // The closure is refused, not its parameters.
            "map" | "fold" | "for_each" | "filter" | "reduce" => vec![],
            _ => call.args.iter().map(|argument| self.expression(argument)).collect(),
        };
        if matches!(Value::without_value(&arguments), Some(Value::Wrong)) {
            return Value::Wrong;
        }
        match (name.as_str(), arguments.as_slice()) {
            ("iter" | "iter_mut" | "into_iter" | "as_slice", []) => Value::List(values),
            ("to_vec" | "clone", []) => self.resolved(Value::List(values)),
            ("len", []) => Value::Int(values.len() as i128, Kind::Known(NumberType::Usize)),
            ("rev", []) => Value::List(values.into_iter().rev().collect()),
            ("enumerate", []) => {
                let pair =
                    |(number, value)| Value::Tuple(vec![Value::Int(number, Kind::Known(NumberType::Usize)), value]);
                Value::List((0..).zip(values).map(pair).collect())
            }
            ("zip", [Value::List(others)]) => {
                let pairs = values.into_iter().zip(others.iter().cloned());
                Value::List(pairs.map(|(one, other)| Value::Tuple(vec![one, other])).collect())
            }
            ("step_by", &[Value::Int(step @ 1.., _)]) => {
                Value::List(values.into_iter().step_by(usize::try_from(step).unwrap_or(usize::MAX)).collect())
            }
            ("collect", []) => Value::List(values),
            ("push", [value]) if self.is_local_list(&call.receiver) => {
                let mut values = values;
                values.push(value.clone());
                self.assign(&call.receiver, Value::List(values), whole)
            }
            ("push" | "extend" | "insert" | "pop", _) => {
                self.forget(&call.receiver);
                let message =
                    format!("`{name}` changes a list: write all its elements at once, `[a, b]`, or bind a new list");
                self.diagnostics.error_instead_of_rustc(whole, place, message);
                Value::Wrong
            }
            _ => {
                let message = format!(
                    "`{name}` of a list is not traced: go over it with `for`, or write its elements out, as in `&parts[0]`"
                );
                self.diagnostics.error_instead_of_rustc(whole, place, message);
                Value::Wrong
            }
        }
    }

    /// Whether this is a list made in the body, which may grow during the trace.
    fn is_local_list(&self, receiver: &Expr) -> bool {
        let Expr::Path(path) = receiver else { return false };
        let locals = self.scopes.get(1..).unwrap_or_default();
        let name = path.path.get_ident().map(ToString::to_string);
        name.is_some_and(|name| locals.iter().any(|scope| matches!(scope.get(&name), Some(Value::List(_)))))
    }

    fn tensor_method(
        &mut self,
        method: &Ident,
        receiver: Option<(String, Value)>,
        arguments: &Punctuated<Expr, Token![,]>,
        place: Place,
        whole: &Expr,
    ) -> Value {
        let name = method.to_string();
        if !self.check_name(method, whole, false) {
            self.arguments(arguments);
            return Value::Wrong;
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
            let called = receiver.as_ref().map_or("Tensor::".to_string(), |(name, _)| format!("{name}."));
            self.wrong_count(row, expected, &called, arguments, place, whole);
            self.arguments(arguments);
            return Value::Wrong;
        }
        let like = receiver.as_ref().map_or(DType::Void, |(_, value)| self.dtype_of(value));
        let rank = match &receiver {
            Some((_, Value::Tensor(node))) => self.graph.props(*node).shape.len(),
            _ => 0,
        };
        let mut operands: Vec<(String, Value)> = receiver.into_iter().collect();
        let mut args: Vec<Result<MethodArg, Value>> = operands
            .iter()
            .map(|(_, value)| match value {
                Value::Tensor(node) => Ok(MethodArg::Tensor(*node)),
                other => Err(other.clone()),
            })
            .collect();
        let values: Vec<Value> = arguments.iter().map(|argument| self.expression(argument)).collect();
        for (position, ((param, kind), argument)) in expected.iter().zip(arguments).enumerate() {
            // A number takes the dtype of the other choice. Two numbers keep their own types: the condition's dtype is
            // irrelevant.
            let like = match name.as_str() {
                "where_" => match (self.dtype_of(&values[1 - position]), &values[position]) {
                    // The integer type is not known here.
                    (DType::Void, Value::Constant { kind: Some(LiteralKind::Int), .. }) => return Value::Unknown,
                    (DType::Void, number @ Value::Int(..)) => match self.dtype_of_number(number) {
                        Some(dtype) => dtype,
                        None => return Value::Unknown,
                    },
                    (DType::Void, _) => like,
                    (other, _) => other,
                },
                _ => like,
            };
            args.push(self.argument(&name, param, *kind, &values[position], (like, rank), argument));
        }
        operands.extend(arguments.iter().map(name_of).zip(values));
        let spoiled: Vec<Value> = args.iter().filter_map(|arg| arg.as_ref().err().cloned()).collect();
        if let Some(spoiled) = Value::without_value(&spoiled) {
            return spoiled;
        }
        let Ok(args) = args.into_iter().collect::<Result<Vec<_>, _>>() else { return Value::Wrong };
        self.finish(row, &args, method.span(), place, &operands)
    }

    /// The error for a wrong number of arguments, which shows the right call.
    fn wrong_count(
        &mut self,
        row: &Method,
        expected: &[(&str, ParamKind)],
        called: &str,
        arguments: &Punctuated<Expr, Token![,]>,
        place: Place,
        whole: &Expr,
    ) {
        let given: Vec<&Expr> = arguments.iter().collect();
        // The given arguments keep their order; each goes to the next parameter of its kind.
        let mut left = given.iter().peekable();
        let shown = expected.iter().enumerate().map(|(position, (parameter, kind))| {
            let fits = given.len() < expected.len() && left.peek().is_some_and(|argument| may_be(argument, *kind));
            match left.next_if(|_| fits) {
                Some(argument) => source_text(argument),
                None => usual(parameter).map_or_else(
                    || if *kind == ParamKind::int { position.to_string() } else { sample(*kind) },
                    str::to_string,
                ),
            }
        });
        let shown = shown.collect::<Vec<_>>().join(", ");
        let (name, count, takes) = (row.name, given.len(), arguments_of(expected));
        let pairwise = match name {
            "max" => "maximum",
            "min" => "minimum",
            _ => "",
        };
        let message = match &given[..] {
            [other] if !pairwise.is_empty() && !may_be(other, ParamKind::axes) => {
                let other = source_text(other);
                format!(
                    "`{name}` takes {takes}, found {count}\n  help: `{called}{pairwise}({other})` compares element by element"
                )
            }
            _ => format!("`{name}` takes {takes}, found {count}\n  help: as in `{called}{name}({shown})`"),
        };
        self.diagnostics.error_instead_of_rustc(whole, place, message);
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
            // rustc checks the types of a literal's fields.
            Err(error) if error.kind() == ErrorKind::Arity && has_options(args) => Value::Unknown,
            Err(error) => match self.assume_of_method(place, row.name, args) {
                Some(value) => value,
                None => match self.stand_in_of_method(place, row, args) {
                    Some(value) => value,
                    None => self.refused(place, &error, operands),
                },
            },
        }
    }

    /// An argument, converted to the kind that the method table requires.
    fn argument(
        &mut self,
        method: &str,
        param: &str,
        kind: ParamKind,
        value: &Value,
        (like, rank): (DType, usize),
        expression: &Expr,
    ) -> Result<MethodArg, Value> {
        if let Some(spoiled) = Value::without_value([value]) {
            return Err(spoiled);
        }
        let value = &self.resolved(value.clone());
        let names_axis = param.starts_with("ax") || param == "from" || param == "to";
        let is_of_axes = kind == ParamKind::axes || kind == ParamKind::int && names_axis;
        let decided = if is_of_axes { self.decided_axes(value, rank, Place::of(expression))? } else { value.clone() };
        let decided = match kind {
            ParamKind::int | ParamKind::ints if !is_of_axes => self.decided_numbers(&decided, -1, expression)?,
            _ => decided,
        };
        let value = &decided;
        if let (Value::Constant { text, .. }, true, Expr::Path(path)) = (value, kind == ParamKind::shape, expression)
            && path.path.get_ident().is_some_and(is_list)
        {
            let message = format!(
                "macros cannot see how many sizes `{text}` has: write them one by one, `[{text}[0], {text}[1]]`"
            );
            return Err(self.refuse(expression, message));
        }
        if let Value::Constant { text, path, kind: number, .. } = value {
            match (kind, number) {
                (ParamKind::flag, None) => {
                    let decided = self.decide(text, path, Place::of(expression)).map(MethodArg::Flag);
                    return decided.ok_or(Value::Wrong);
                }
                // Shapes do not depend on it.
                (ParamKind::float, None | Some(LiteralKind::Float)) => {
                    self.is_deferred = true;
                    return Ok(MethodArg::Float(0.5));
                }
                _ => {}
            }
        }
        let inference = &mut self.inference;
        let mut int = |value: &Value| match value {
            Value::Int(number, kind) => {
                inference.pass(*kind);
                i64::try_from(*number).ok()
            }
            _ => None,
        };
        let mut ints = |value: &Value| match value {
            Value::List(values) => values.iter().map(&mut int).collect::<Option<Vec<i64>>>(),
            value => int(value).map(|number| vec![number]),
        };
        if let (ParamKind::tensors, Value::List(_), Expr::Array(_) | Expr::Macro(_)) = (kind, value, expression) {
            let shown = match expression {
                Expr::Macro(list) => format!("[{}]", source_text(&list.mac.tokens)),
                array => source_text(array),
            };
            return Err(self.refuse(expression, format!("`{method}`: `{param}` is borrowed: write `&{shown}`")));
        }
        let found = match (kind, value) {
            (ParamKind::tensor, value) => {
                let wrong = self.moved(expression, value);
                return wrong.map_or_else(|| self.operand(value, like, expression), Err).map(MethodArg::Tensor);
            }
            (ParamKind::tensors, Value::List(values)) => {
                let nodes: Option<Vec<_>> = values
                    .iter()
                    .map(|value| match value {
                        Value::Tensor(node) => Some(*node),
                        _ => None,
                    })
                    .collect();
                nodes.map(MethodArg::Tensors)
            }
            (ParamKind::optional, Value::Optional(None)) => Some(MethodArg::Nothing),
            (ParamKind::optional, Value::Optional(Some(value))) => match **value {
                Value::Tensor(node) => Some(MethodArg::Tensor(node)),
                _ => None,
            },
            (kind, value @ (Value::Options(..) | Value::Default)) if kind.fields().is_some() => {
                return self.options(method, kind, value, expression);
            }
            (ParamKind::int, value @ Value::Int(..)) => {
                ints(value).and_then(|one| one.first().copied()).map(MethodArg::Int)
            }
            (ParamKind::ints, value @ Value::List(_)) => ints(value).map(MethodArg::Ints),
            (ParamKind::float, Value::Float(number)) => {
                // rustc reports another type.
                return self.as_f64(number).map(MethodArg::Float).ok_or(Value::Unknown);
            }
            (ParamKind::flag, Value::Bool(value)) => Some(MethodArg::Flag(*value)),
            (ParamKind::dtype, Value::DType(dtype)) => Some(MethodArg::DType(*dtype)),
            (ParamKind::text, Value::Text(text)) => Some(MethodArg::Text(text.clone())),
            (ParamKind::axes, Value::All) => Some(MethodArg::AllAxes),
            (ParamKind::axes, value) => ints(value).map(MethodArg::Ints),
            (ParamKind::shape, value) => self.shape_of(value).map(MethodArg::Shape),
            (ParamKind::size, value) => self.as_dim(value).map(|dim| MethodArg::Shape(Shape::from_iter([dim]))),
            _ => None,
        };
        found.ok_or_else(|| {
            let wanted = format!("`{method}`: `{param}` must be {}", kind_text(kind));
            if let (Value::Constant { text, .. }, true) = (value, kind != ParamKind::dtype) {
                let message = format!(
                    "{wanted}, and macros cannot see the value of `{text}`: write it out, or make it a `const` inside the function"
                );
                return self.refuse(expression, message);
            }
            let instead = tinyspec_ir::dim::with_names(&self.names(), || instead(method, kind, value, expression));
            let message = format!("{wanted}, found {}{instead}", found_text(kind, value));
            self.refuse(expression, message)
        })
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
        arguments: &Punctuated<Expr, Token![,]>,
        place: Place,
        whole: &Expr,
    ) -> Value {
        let values: Vec<Value> = arguments.iter().map(|argument| self.expression(argument)).collect();
        if let Some(spoiled) = Value::without_value(&values) {
            return spoiled;
        }
        let node = match &receiver {
            Some((_, Value::Tensor(node))) => Some(*node),
            _ => None,
        };
        let like = node.map(|node| (self.graph.dtype(node), self.graph.props(node).shape.clone()));
        let built = match (name, &like, values.as_slice()) {
            ("clone", Some(_), []) => return receiver.map_or(Value::Unknown, |(_, value)| value),
            ("shape", Some((_, shape)), []) => return Value::List(shape.iter().cloned().map(Value::Dim).collect()),
            ("rank", Some((_, shape)), []) => return Value::Int(shape.len() as i128, Kind::Known(NumberType::Usize)),
            ("dtype", Some((dtype, _)), []) => return Value::DType(*dtype),
            ("zeros", None, [shape]) => self.filled(shape, &Value::Float(Float::narrow(0.0)), Some(DType::F32), place),
            ("ones", None, [shape]) => self.filled(shape, &Value::Float(Float::narrow(1.0)), Some(DType::F32), place),
            ("full", None, [shape, value]) => self.filled(shape, value, None, place),
            ("full_of", None, [shape, value, Value::DType(dtype)]) => self.filled(shape, value, Some(*dtype), place),
            ("zeros_like", Some((dtype, shape)), []) => self.filled_like(shape, &Value::Bool(false), *dtype, place),
            ("ones_like", Some((dtype, shape)), []) => self.filled_like(shape, &Value::Bool(true), *dtype, place),
            ("full_like", Some((dtype, shape)), [value]) => self.filled_like(shape, value, *dtype, place),
            ("arange", None, [count]) => match self.as_dim(count) {
                Some(count) => self.build(place.start, |graph| ops::creation::count(graph, &count)).map(Some),
                None => Ok(None),
            },
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
                Value::Wrong
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
        match dtype.or_else(|| self.dtype_of_number(value)) {
            Some(dtype) => self.filled_like(&shape, value, dtype, place),
            None => Ok(None),
        }
    }

    /// The dtype of a number that is not an operand of a tensor.
    fn dtype_of_number(&mut self, value: &Value) -> Option<DType> {
        match value {
            Value::Float(_) => Some(DType::F32),
            Value::Int(_, kind) => self.inference.used(*kind, NumberType::I32).dtype(),
            Value::Bool(_) => Some(DType::Bool),
            _ => None,
        }
    }

    /// A constant, expanded, as at run time.
    fn filled_like(
        &mut self,
        shape: &Shape,
        value: &Value,
        dtype: DType,
        place: Place,
    ) -> tinyspec_ir::Result<Option<NodeId>> {
        let value = match value {
            Value::Float(number) => Const::float(dtype, self.float(number)),
            Value::Int(number, _) => Const::int(dtype, *number),
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

/// Whether tensors have a method of this name.
fn is_known(name: &str) -> bool {
    METHODS.iter().any(|row| row.name == name) || OUTSIDE_THE_TABLE.contains(&name) || PICKING.contains(&name)
}

/// Functions of `Tensor` that are written by hand because their arguments have defaults.
pub(super) const OUTSIDE_THE_TABLE: &[&str] = &[
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

fn has_options(args: &[MethodArg]) -> bool {
    args.iter().any(|arg| matches!(arg, MethodArg::Options(given) if !given.is_empty()))
}
