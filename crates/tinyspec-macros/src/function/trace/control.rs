//! Control flow: loops and branches that are decided while tracing are unrolled or chosen; a graph has no others.

use super::{Tracer, Value};
use crate::diagnostics::Place;
use crate::function::{attributes, ungroup};
use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use std::collections::HashMap;
use syn::{Expr, ExprForLoop};
use tinyspec_ir::ops::LiteralKind;

/// The most iterations that a loop is unrolled to.
const MOST_ROUNDS: i128 = 4096;

impl Tracer<'_> {
    /// A `for` loop over a known range or list: unrolled.
    pub(super) fn for_loop(&mut self, looped: &ExprForLoop, whole: &Expr) -> Value {
        let rounds: Vec<Value> = match self.expression(&looped.expr) {
            Value::Range(start, end, kind) if end - start <= MOST_ROUNDS => {
                (start..end).map(|number| Value::Int(number, kind)).collect()
            }
            Value::List(values) => values,
            Value::OpenRange { text, count } => return self.open_loop(looped, &text, &count, whole),
            Value::Unseen => vec![Value::Unseen],
            // The body is checked once.
            value @ (Value::Unknown | Value::Wrong) => {
                self.round(looped, value.clone());
                return value;
            }
            refused => {
                let message = match refused {
                    Value::Range(start, end, _) => {
                        format!("this loop is unrolled, {} times: at most {MOST_ROUNDS}", end - start)
                    }
                    Value::Tensor(_) => {
                        "a tensor cannot be iterated over: operate on the whole tensor, or use `.split(1, 0)`"
                            .to_string()
                    }
                    Value::Constant { text, .. } => format!(
                        "macros cannot see the value of `{text}`: for a loop over a constant, make it a `const` inside the function"
                    ),
                    other => format!(
                        "`for` in a #[function] goes over a range of numbers or a list, found {}",
                        other.describe()
                    ),
                };
                self.diagnostics.error_instead_of_rustc(whole, Place::of(&*looped.expr), message);
                self.round(looped, Value::Wrong);
                return Value::Wrong;
            }
        };
        rounds.into_iter().for_each(|value| self.round(looped, value));
        Value::UNIT
    }

    /// `for i in 0..LAYERS`: an iteration must keep the types of what it changes, so tracing one is enough.
    fn open_loop(&mut self, looped: &ExprForLoop, text: &str, count: &TokenStream, whole: &Expr) -> Value {
        self.is_deferred = true;
        let place = Place::of(&*looped.expr);
        if !self.is_open(count) {
            let message = format!("this loop, over `{text}`, is unrolled: at most {MOST_ROUNDS} times");
            let (most, refuse) =
                (Literal::i128_unsuffixed(MOST_ROUNDS), quote_spanned!(place.start=> ::tinyspec::__private::refuse));
            self.counts.push(quote_spanned!(place.end=> const _: () = if #count > #most { #refuse(#message) };));
        }
        let before = self.scopes.clone();
        let names = super::names_of(&looped.pat);
        self.scopes.push(HashMap::new());
        for name in &names {
            let text = name.to_string();
            self.open_names.push(text.clone());
            self.declare(
                &text,
                Value::Constant { text: text.clone(), path: quote!(#name), kind: Some(LiteralKind::Int), size: None },
            );
        }
        self.block(&looped.body);
        self.scopes.pop();
        let after = self.scopes.clone();
        for (level, (before, after)) in before.iter().zip(&after).enumerate() {
            let mut changed: Vec<(&String, String)> = before
                .iter()
                .filter_map(|(name, value)| Some((name, self.change_of(value, after.get(name)?)?)))
                .collect();
            changed.sort();
            // Their values after the loop are unknown.
            for (name, _) in &changed {
                self.scopes[level].insert(name.to_string(), Value::Wrong);
            }
            if let Some((name, change)) = changed.into_iter().next() {
                let message = format!(
                    "an iteration of this loop changes `{name}` {change}, and `{text}`, whose value macros cannot see, decides how many iterations there are: make its end a number, or a `const` inside the function"
                );
                self.diagnostics.error_instead_of_rustc(whole, place, message);
                return Value::Wrong;
            }
        }
        Value::UNIT
    }

    /// How a value has changed after an iteration, if its type differs or its value is known while tracing.
    fn change_of(&self, before: &Value, after: &Value) -> Option<String> {
        let shown = |value: &Value| match value {
            Value::Int(number, _) => number.to_string(),
            Value::Bool(value) => value.to_string(),
            Value::Tensor(node) => self.type_of(*node),
            other => other.describe().to_string(),
        };
        let is_same = match (before, after) {
            (Value::Tensor(one), Value::Tensor(other)) => self.tensor_type(*one) == self.tensor_type(*other),
            (Value::Int(one, _), Value::Int(other, _)) => one == other,
            (Value::Float(one), Value::Float(other)) => one.wide.to_bits() == other.wide.to_bits(),
            (Value::Bool(one), Value::Bool(other)) => one == other,
            (Value::Dim(one), Value::Dim(other)) => one == other,
            (Value::Constant { path: one, .. }, Value::Constant { path: other, .. }) => {
                one.to_string() == other.to_string()
            }
            (Value::List(one), Value::List(other)) | (Value::Tuple(one), Value::Tuple(other))
                if one.len() == other.len() =>
            {
                return one.iter().zip(other).find_map(|(one, other)| self.change_of(one, other));
            }
            (Value::Optional(None), Value::Optional(None)) => true,
            (Value::Optional(Some(one)), Value::Optional(Some(other))) => return self.change_of(one, other),
            (Value::Unknown | Value::Unseen | Value::Wrong, _) | (_, Value::Unknown | Value::Unseen | Value::Wrong) => {
                true
            }
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        };
        (!is_same).then(|| format!("from {} to {}", shown(before), shown(after)))
    }

    fn round(&mut self, looped: &ExprForLoop, value: Value) {
        self.scopes.push(HashMap::new());
        self.bind(&looped.pat, value);
        self.block(&looped.body);
        self.scopes.pop();
    }

    /// Refuses control flow that a graph does not have, and says what to write instead.
    pub(super) fn refuse_control(&mut self, expression: &Expr) -> Value {
        let (place, message) = match expression {
            Expr::While(looped) => (
                Place::of(&looped.while_token),
                "`while` decides at run time when to stop: use `for i in 0..8`, which is unrolled, or loop around the call",
            ),
            Expr::Loop(looped) => (
                Place::of(&looped.loop_token),
                "`loop` has no end that is known here: use `for i in 0..8`, which is unrolled, or loop around the call",
            ),
            Expr::Try(attempt) => (
                Place::of(&attempt.question_token),
                "`?` is not needed: operations on tensors give tensors, and mistakes in shapes are compile errors",
            ),
            Expr::Return(returned) => (
                Place::of(&returned.return_token),
                "`return` leaves a function early: a graph has one result, its last expression",
            ),
            Expr::Break(token) => (
                Place::of(&token.break_token),
                "`break` ends a loop at run time: loops are unrolled in full; choose the iterations by the range",
            ),
            Expr::Continue(token) => (
                Place::of(&token.continue_token),
                "`continue` skips at run time: loops are unrolled in full; skip iterations with `if` on the index",
            ),
            Expr::Closure(closure) => {
                (Place::of(closure), "closures are not traced: write the code in place, or as a #[function] of its own")
            }
            Expr::Await(awaited) => {
                (Place::of(&awaited.await_token), "a graph does not wait: await outside the function")
            }
            Expr::Unsafe(block) => (Place::of(&block.unsafe_token), "nothing in a #[function] needs `unsafe`"),
            Expr::Async(block) => {
                (Place::of(&block.async_token), "a graph is not `async`: call the function from async code")
            }
            Expr::Struct(literal) => {
                (Place::of(&literal.path), "structs are not built in a #[function]: return a tuple of tensors")
            }
            other => {
                (Place::of(other), "this is not traced: a #[function] is made of `let`, operators, methods and calls")
            }
        };
        self.diagnostics.error_instead_of_rustc(expression, place, message);
        // Mistakes inside are reported too.
        match expression {
            Expr::Try(attempt) => {
                self.expression(&attempt.expr);
            }
            Expr::Return(returned) => {
                if let Some(value) = &returned.expr {
                    self.expression(value);
                }
            }
            Expr::While(looped) => {
                self.block(&looped.body);
            }
            Expr::Loop(looped) => {
                self.block(&looped.body);
            }
            Expr::Unsafe(block) => {
                self.block(&block.block);
            }
            _ => {}
        }
        Value::Wrong
    }

    /// `vec![a, b]` is a list; other macros are refused.
    pub(super) fn macro_call(&mut self, mac: &syn::Macro, whole: &Expr) -> Value {
        if let Some(list) = ungroup::elements(mac) {
            list.iter().for_each(|element| attributes::check_expression(element, self.diagnostics));
            return self.list(list.iter());
        }
        self.refuse_macro(mac, whole)
    }

    /// `println!(…)` and the like.
    pub(super) fn refuse_macro(&mut self, mac: &syn::Macro, whole: &impl ToTokens) -> Value {
        let name = crate::diagnostics::source_text(&mac.path);
        let message = if super::super::STD_MACROS.contains(&name.as_str()) {
            format!("`{name}!` runs while the program runs, not in a graph: use it outside the #[function]")
        } else {
            format!(
                "`{name}!` is not expanded before the function is traced: write its code in place, or as a #[function], or define it inside this one"
            )
        };
        self.diagnostics.error_instead_of_rustc(whole, Place::of(mac), message);
        Value::Wrong
    }
}
