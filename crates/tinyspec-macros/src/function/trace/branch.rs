//! `if` and `match`: one branch is traced, chosen by what is known while tracing; where constants decide, each
//! alternative has its own trace.

use super::constants::in_rust;
use super::expression::{comparison_method, text_of};
use super::inference::Kind;
use super::{Tracer, Value};
use crate::diagnostics::Place;
use proc_macro2::TokenStream;
use quote::quote;
use std::cmp::Ordering;
use std::collections::HashMap;
use syn::{BinOp, Expr, ExprIf, ExprMatch, Pat, RangeLimits, UnOp};

/// Whether a value is what a pattern describes.
enum Fit {
    /// It is; these are the values of the pattern's names.
    Yes(Vec<(syn::Ident, Value)>),
    /// It is not.
    No,
    /// Not known here.
    Open,
    /// A pattern that is not traced: the mistake is reported.
    Wrong,
}

impl Tracer<'_> {
    /// `if` on a known condition: one branch is traced.
    pub(super) fn branch(&mut self, branch: &ExprIf, whole: &Expr) -> Value {
        let otherwise = branch.else_branch.as_ref().map(|(_, other)| &**other);
        if let Expr::Let(condition) = &*branch.cond {
            let value = self.expression(&condition.expr);
            let spoiled = Value::without_value([&value]);
            return match self.fit(&condition.pat, &value) {
                Fit::Yes(names) => self.with_names(names, |tracer| tracer.block(&branch.then_branch)),
                Fit::No => otherwise.map_or(Value::UNIT, |other| self.expression(other)),
                Fit::Wrong => Value::Wrong,
                // Only the next expansion knows what a model's companion says.
                Fit::Open if matches!(value, Value::Unseen) => {
                    self.with_pattern(&condition.pat, Value::Unseen, |tracer| tracer.block(&branch.then_branch));
                    otherwise.map(|other| self.expression(other));
                    Value::Unknown
                }
                Fit::Open => spoiled.unwrap_or_else(|| {
                    let message = "`if let` on what is known at run time: a graph has no branches; take optional parts in functions of their own";
                    self.diagnostics.error_instead_of_rustc(whole, Place::of(&branch.if_token), message);
                    Value::Wrong
                }),
            };
        }
        if let Some(wrong) = self.condition_of_tensors(&branch.cond, whole) {
            return wrong;
        }
        match self.expression(&branch.cond) {
            Value::Bool(true) => self.block(&branch.then_branch),
            Value::Bool(false) => otherwise.map_or(Value::UNIT, |other| self.expression(other)),
            Value::Wrong => Value::Wrong,
            Value::Tensor(_) => self.refuse_condition(&branch.cond, whole),
            Value::Constant { text, path, .. } => match self.decide(&text, &path, Place::of(&branch.cond)) {
                Some(true) => self.block(&branch.then_branch),
                Some(false) => otherwise.map_or(Value::UNIT, |other| self.expression(other)),
                None => Value::Wrong,
            },
            _ => Value::Unknown,
        }
    }

    /// A condition that compares tensors: one message names both steps, the mask and `where_`.
    fn condition_of_tensors(&mut self, condition: &Expr, whole: &Expr) -> Option<Value> {
        let Expr::Binary(binary) = condition else { return None };
        if comparison_method(&binary.op).is_none() && !matches!(binary.op, BinOp::And(_) | BinOp::Or(_)) {
            return None;
        }
        let mut compared = vec![];
        operands(condition, &mut compared);
        // Only names and chains of methods, whose values are found without tracing.
        let is_tensor = compared.iter().any(|operand| self.is_of_tensor(operand));
        is_tensor.then(|| self.refuse_condition(condition, whole))
    }

    fn is_of_tensor(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Path(path) => path
                .path
                .get_ident()
                .and_then(|name| self.lookup(&name.to_string()))
                .is_some_and(|value| matches!(value, Value::Tensor(_))),
            Expr::MethodCall(call) => {
                !matches!(call.method.to_string().as_str(), "rank" | "shape" | "dtype")
                    && self.is_of_tensor(&call.receiver)
            }
            Expr::Paren(inner) => self.is_of_tensor(&inner.expr),
            Expr::Group(inner) => self.is_of_tensor(&inner.expr),
            Expr::Reference(inner) => self.is_of_tensor(&inner.expr),
            Expr::Unary(inner) => self.is_of_tensor(&inner.expr),
            Expr::Binary(binary) => self.is_of_tensor(&binary.left) || self.is_of_tensor(&binary.right),
            _ => false,
        }
    }

    fn refuse_condition(&mut self, condition: &Expr, whole: &Expr) -> Value {
        let mask = mask(condition);
        let mask = if mask.len() <= 60 { mask } else { "mask".to_string() };
        let message = format!(
            "`if` on a tensor: a graph has no branches; compute both and choose by element, `{mask}.where_(a, b)`"
        );
        self.diagnostics.error_instead_of_rustc(whole, Place::of(condition), message);
        Value::Wrong
    }

    /// `match` on a known value: the first arm that fits is traced.
    pub(super) fn match_on(&mut self, matched: &ExprMatch, whole: &Expr) -> Value {
        let value = self.expression(&matched.expr);
        let refused = match &value {
            Value::Tensor(_) => Some(
                "`match` on a tensor: a graph has no branches; compute the arms and choose by element, `x.eq(0).where_(a, b)`".to_string(),
            ),
            Value::Dim(_) => Some(
                "`match` on a size, which is known when the function is called: one graph serves all sizes; write a function for each, and choose where they are called".to_string(),
            ),
            Value::Model(_) => Some("match the fields of a model, not the model, as in `match &self.bias { Some(b) => … }`".to_string()),
            _ => None,
        };
        if let Some(message) = refused {
            self.diagnostics.error_instead_of_rustc(whole, Place::of(&*matched.expr), message);
            return Value::Wrong;
        }
        if let Some(spoiled) = Value::without_value([&value]) {
            // Each arm is checked once.
            for arm in &matched.arms {
                self.with_pattern(&arm.pat, value.clone(), |tracer| tracer.expression(&arm.body));
            }
            return spoiled;
        }
        for arm in &matched.arms {
            let (pattern, guard) = match &arm.pat {
                Pat::Guard(guarded) => (&*guarded.pat, Some(&*guarded.guard)),
                pattern => (pattern, None),
            };
            let names = match self.fit(pattern, &value) {
                Fit::Yes(names) => names,
                Fit::No => continue,
                Fit::Wrong => return Value::Wrong,
                // rustc compares the types.
                Fit::Open => return Value::Unknown,
            };
            let Some(guard) = guard else {
                return self.with_names(names, |tracer| tracer.expression(&arm.body));
            };
            match self.with_names(names.clone(), |tracer| tracer.expression(guard)) {
                Value::Bool(true) => return self.with_names(names, |tracer| tracer.expression(&arm.body)),
                Value::Bool(false) => {}
                Value::Tensor(_) => {
                    let message = "a guard on a tensor: a graph has no branches; compute both arms and choose by element, `.where_(a, b)`";
                    return self.refuse_at(guard, whole, message);
                }
                Value::Constant { text, path, .. } => match self.decide(&text, &path, Place::of(guard)) {
                    Some(true) => return self.with_names(names, |tracer| tracer.expression(&arm.body)),
                    Some(false) => {}
                    None => return Value::Wrong,
                },
                Value::Wrong => return Value::Wrong,
                _ => return Value::Unknown,
            }
        }
        // rustc checks that the arms are exhaustive.
        Value::Unknown
    }

    fn refuse_at(&mut self, at: &Expr, whole: &Expr, message: impl Into<String>) -> Value {
        self.diagnostics.error_instead_of_rustc(whole, Place::of(at), message);
        Value::Wrong
    }

    fn with_names(&mut self, names: Vec<(syn::Ident, Value)>, trace: impl FnOnce(&mut Self) -> Value) -> Value {
        self.scopes.push(HashMap::new());
        names.into_iter().for_each(|(name, value)| self.declare(&name.to_string(), value));
        let value = trace(self);
        self.scopes.pop();
        value
    }

    /// Binds all names of the pattern to one value.
    fn with_pattern(&mut self, pattern: &Pat, value: Value, trace: impl FnOnce(&mut Self) -> Value) -> Value {
        let names = super::names_of(pattern).into_iter().map(|name| (name, value.clone())).collect();
        self.with_names(names, trace)
    }

    fn fit(&mut self, pattern: &Pat, value: &Value) -> Fit {
        match (pattern, value) {
            (Pat::Paren(inner), value) => self.fit(&inner.pat, value),
            (Pat::Reference(inner), value) => self.fit(&inner.pat, value),
            (Pat::Type(typed), value) => self.fit(&typed.pat, value),
            (Pat::Wild(_), _) => Fit::Yes(vec![]),
            (Pat::Ident(name), value) if name.ident == "None" && name.subpat.is_none() => match value {
                Value::Optional(None) => Fit::Yes(vec![]),
                Value::Optional(Some(_)) => Fit::No,
                _ => Fit::Open,
            },
            (Pat::Ident(name), value) => {
                if name.ident.to_string().starts_with(char::is_uppercase)
                    && self.lookup(&name.ident.to_string()).is_none()
                {
                    let constant = name.ident.clone();
                    return self.is_constant(pattern, &constant.to_string(), &quote!(#constant), value);
                }
                if name.ident.to_string().starts_with(char::is_uppercase)
                    && let Some(known) = self.lookup(&name.ident.to_string()).cloned()
                {
                    return self.equals(&known, value);
                }
                let bound = vec![(name.ident.clone(), value.clone())];
                match &name.subpat {
                    None => Fit::Yes(bound),
                    Some((_, inner)) => match self.fit(inner, value) {
                        Fit::Yes(names) => Fit::Yes(bound.into_iter().chain(names).collect()),
                        other => other,
                    },
                }
            }
            (Pat::Or(cases), value) => {
                for case in &cases.cases {
                    match self.fit(case, value) {
                        Fit::No => {}
                        other => return other,
                    }
                }
                Fit::No
            }
            (Pat::TupleStruct(pattern), value) if pattern.path.is_ident("Some") && pattern.elems.len() == 1 => {
                match value {
                    Value::Optional(Some(value)) => self.fit(&pattern.elems[0], value),
                    Value::Optional(None) => Fit::No,
                    _ => Fit::Open,
                }
            }
            (Pat::Tuple(pattern), Value::Tuple(values)) => self.fit_all(&pattern.elems, values),
            (Pat::Slice(pattern), Value::List(values)) => self.fit_all(&pattern.elems, values),
            (Pat::Tuple(_) | Pat::Slice(_), _) => Fit::Open,
            (Pat::Lit(literal), Value::Constant { text, path, .. }) => {
                if let syn::Lit::Bool(wanted) = &literal.lit {
                    return match (self.decided(text, path, Place::of(pattern)), wanted.value) {
                        (Fit::Yes(_), false) => Fit::No,
                        (Fit::No, false) => Fit::Yes(vec![]),
                        (fit, _) => fit,
                    };
                }
                let text = crate::diagnostics::source_text(literal);
                self.is_constant(pattern, &text, &quote!(#literal), value)
            }
            (Pat::Range(range), Value::Constant { text, path, .. }) => {
                let low = range.start.as_ref().map(|start| quote!(#start <= #path)).into_iter();
                let high = range.end.as_ref().map(|end| match range.limits {
                    RangeLimits::Closed(_) => quote!(#path <= #end),
                    RangeLimits::HalfOpen(_) => quote!(#path < #end),
                });
                let within = low.chain(high);
                let text = format!("{text} in {}", crate::diagnostics::source_text(range));
                self.decided(&text, &quote!((true #(&& #within)*)), Place::of(pattern))
            }
            (Pat::Lit(literal), value) => {
                let written = self.expression(&Expr::Lit(literal.clone()));
                self.equals(&written, value)
            }
            (Pat::Range(range), &Value::Int(number, kind)) => {
                let mut end = |end: Option<&Expr>| match end.map(|end| self.expression(end)) {
                    None => Some(None),
                    Some(Value::Int(end, other)) => self.inference.unify(kind, other).map(|_| Some(end)),
                    Some(_) => None,
                };
                let (Some(start), Some(stop)) = (end(range.start.as_deref()), end(range.end.as_deref())) else {
                    return Fit::Open;
                };
                let is_below = stop.is_none_or(|stop| match range.limits {
                    RangeLimits::Closed(_) => number <= stop,
                    RangeLimits::HalfOpen(_) => number < stop,
                });
                if start.is_none_or(|start| start <= number) && is_below { Fit::Yes(vec![]) } else { Fit::No }
            }
            // `DType::F32`
            (Pat::Path(path), Value::DType(_)) => {
                let written = self.expression(&Expr::Path(path.clone()));
                self.equals(&written, value)
            }
            (Pat::Path(path), _) => {
                let text = crate::diagnostics::source_text(&path.path);
                self.is_constant(pattern, &text, &quote!(#path), value)
            }
            (Pat::TupleStruct(_) | Pat::Struct(_), _) => {
                let message = "a pattern here is a number, a range, a string, `Some(…)`, `None`, or a tuple of them";
                self.diagnostics.error_instead_of_rustc(pattern, Place::of(pattern), message);
                Fit::Wrong
            }
            _ => Fit::Open,
        }
    }

    fn fit_all(&mut self, patterns: &syn::punctuated::Punctuated<Pat, syn::Token![,]>, values: &[Value]) -> Fit {
        let rest = patterns.iter().position(|pattern| matches!(pattern, Pat::Rest(_)));
        let (front, back) = match rest {
            Some(position) => (position, patterns.len() - position - 1),
            None => (patterns.len(), 0),
        };
        if front + back > values.len() || (rest.is_none() && front != values.len()) {
            return Fit::Open;
        }
        let firsts = patterns.iter().take(front).zip(values);
        let lasts = patterns.iter().skip(front + 1).zip(&values[values.len() - back..]);
        let mut bound = vec![];
        for (pattern, value) in firsts.chain(lasts) {
            match self.fit(pattern, value) {
                Fit::Yes(names) => bound.extend(names),
                other => return other,
            }
        }
        Fit::Yes(bound)
    }

    fn equals(&mut self, one: &Value, other: &Value) -> Fit {
        let order = match (one, other) {
            (&Value::Int(one, left), &Value::Int(other, right)) => {
                let known: Option<Kind> = self.inference.unify(left, right);
                known.map(|_| one.cmp(&other))
            }
            (Value::Bool(one), Value::Bool(other)) => Some(one.cmp(other)),
            (Value::Text(one), Value::Text(other)) => Some(one.cmp(other)),
            (Value::DType(one), Value::DType(other)) => Some(one.cmp(other)),
            (Value::Float(one), Value::Float(other)) => match self.inference.unify(one.kind, other.kind) {
                Some(_) => self.float(one).partial_cmp(&self.float(other)),
                None => None,
            },
            _ => None,
        };
        match order {
            Some(Ordering::Equal) => Fit::Yes(vec![]),
            Some(_) => Fit::No,
            None => Fit::Open,
        }
    }

    /// A pattern that is a constant, or is compared with one: the constant's value decides.
    fn is_constant(&mut self, pattern: &Pat, text: &str, path: &TokenStream, value: &Value) -> Fit {
        let Some((other, found, _)) = in_rust(value) else { return Fit::Open };
        let text = format!("{other} == {text}");
        self.decided(&text, &quote!((#found == #path)), Place::of(pattern))
    }

    fn decided(&mut self, text: &str, path: &TokenStream, place: Place) -> Fit {
        match self.decide(text, path, place) {
            Some(true) => Fit::Yes(vec![]),
            Some(false) => Fit::No,
            None => Fit::Wrong,
        }
    }
}

/// The operands that a condition compares.
fn operands<'e>(condition: &'e Expr, found: &mut Vec<&'e Expr>) {
    match condition {
        Expr::Binary(binary) if comparison_method(&binary.op).is_some() => {
            found.extend([&*binary.left, &*binary.right])
        }
        Expr::Binary(binary) if matches!(binary.op, BinOp::And(_) | BinOp::Or(_)) => {
            operands(&binary.left, found);
            operands(&binary.right, found);
        }
        Expr::Paren(inner) => operands(&inner.expr, found),
        Expr::Unary(inner) if matches!(inner.op, UnOp::Not(_)) => operands(&inner.expr, found),
        other => found.push(other),
    }
}

/// The condition as a tensor of bools: `x.gt(0.0) & y.lt(1.0)` for `x > 0.0 && y < 1.0`.
fn mask(condition: &Expr) -> String {
    let text = |expression: &Expr| text_of(expression).unwrap_or("x".into());
    match condition {
        Expr::Binary(binary) => match (comparison_method(&binary.op), &binary.op) {
            (Some((_, method)), _) => format!("{}.{method}({})", text(&binary.left), text(&binary.right)),
            (None, BinOp::And(_)) => format!("({} & {})", mask(&binary.left), mask(&binary.right)),
            (None, BinOp::Or(_)) => format!("({} | {})", mask(&binary.left), mask(&binary.right)),
            _ => format!("({})", text(condition)),
        },
        Expr::Paren(inner) => mask(&inner.expr),
        Expr::Unary(inner) if matches!(inner.op, UnOp::Not(_)) => format!("(!{})", mask(&inner.expr)),
        other => text(other),
    }
}
