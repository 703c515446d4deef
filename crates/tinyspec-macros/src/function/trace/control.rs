//! Control flow: what is decided while tracing is unrolled or chosen; the rest a graph does not have.

use super::expression::text_of;
use super::{Tracer, Value};
use crate::diagnostics::Place;
use crate::function::{attributes, ungroup};
use quote::ToTokens;
use std::collections::HashMap;
use syn::{Expr, ExprForLoop, ExprIf};

/// Rounds that a loop is unrolled to at most.
const MOST_ROUNDS: i128 = 4096;

impl Tracer<'_> {
    /// `if` on what is known: one branch is traced.
    pub(super) fn branch(&mut self, branch: &ExprIf, whole: &Expr) -> Value {
        if let Expr::Let(condition) = &*branch.cond
            && let syn::Pat::TupleStruct(pattern) = &*condition.pat
            && pattern.path.is_ident("Some")
            && let Some(inner) = pattern.elems.first()
        {
            // Whether an `Option` of a model is there is known.
            return match self.expression(&condition.expr) {
                Value::Optional(Some(value)) => {
                    self.scopes.push(HashMap::new());
                    self.bind(inner, *value);
                    let value = self.block(&branch.then_branch);
                    self.scopes.pop();
                    value
                }
                Value::Optional(None) => match &branch.else_branch {
                    Some((_, other)) => self.expression(other),
                    None => Value::UNIT,
                },
                Value::Unseen => {
                    self.scopes.push(HashMap::new());
                    self.bind(inner, Value::Unseen);
                    self.block(&branch.then_branch);
                    self.scopes.pop();
                    if let Some((_, other)) = &branch.else_branch {
                        self.expression(other);
                    }
                    Value::Unknown
                }
                Value::Unknown => Value::Unknown,
                _ => self.refuse(whole, "`if let` decides at run time: a graph has no branches; take optional parts in functions of their own"),
            };
        }
        if let Expr::Let(_) = &*branch.cond {
            let place = Place::of(&branch.if_token);
            let message =
                "`if let` decides at run time: a graph has no branches; take optional parts in functions of their own";
            self.diagnostics.error_instead_of_rustc(whole, place, message);
            return Value::Wrong;
        }
        match self.expression(&branch.cond) {
            Value::Bool(true) => self.block(&branch.then_branch),
            Value::Bool(false) => match &branch.else_branch {
                Some((_, other)) => self.expression(other),
                None => Value::UNIT,
            },
            Value::Wrong => Value::Wrong,
            Value::Tensor(_) => {
                let name = text_of(&branch.cond).unwrap_or("condition".into());
                let message = format!(
                    "`if` on a tensor: a graph has no branches; compute both and choose by element, `{name}.where_(a, b)`"
                );
                self.diagnostics.error_instead_of_rustc(whole, Place::of(&branch.cond), message);
                Value::Wrong
            }
            Value::Constant { text, .. } => {
                let message = format!(
                    "no macro sees the value of `{text}`: `if` needs a literal or a `const` inside the function; outside, choose between two functions"
                );
                self.diagnostics.error_instead_of_rustc(whole, Place::of(&branch.cond), message);
                Value::Wrong
            }
            _ => Value::Unknown,
        }
    }

    /// `for` over what is known: unrolled.
    pub(super) fn for_loop(&mut self, looped: &ExprForLoop, whole: &Expr) -> Value {
        let rounds: Vec<Value> = match self.expression(&looped.expr) {
            Value::Range(start, end, kind) if end - start <= MOST_ROUNDS => {
                (start..end).map(|number| Value::Int(number, kind)).collect()
            }
            Value::List(values) => values,
            Value::Unseen => vec![Value::Unseen],
            // What stands in the loop is looked at once.
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
                        "a tensor is not iterated over: say what happens to all of it, or `.split(1, 0)` it".to_string()
                    }
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

    fn round(&mut self, looped: &ExprForLoop, value: Value) {
        self.scopes.push(HashMap::new());
        self.bind(&looped.pat, value);
        self.block(&looped.body);
        self.scopes.pop();
    }

    /// What a graph does not have, with what to write instead.
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
            Expr::Match(matched) => (
                Place::of(&matched.match_token),
                "`match` takes a branch at run time: use `if` on literals, or `.where_(a, b)` on tensors",
            ),
            Expr::Try(attempt) => (
                Place::of(&attempt.question_token),
                "`?` is not needed: operations on tensors give tensors, and mistakes in shapes are compile errors",
            ),
            Expr::Return(returned) => (
                Place::of(&returned.return_token),
                "`return` leaves a function early: a graph has one end, its last expression",
            ),
            Expr::Break(token) => (
                Place::of(&token.break_token),
                "`break` ends a loop at run time: loops are unrolled in full; choose the rounds in the range",
            ),
            Expr::Continue(token) => (
                Place::of(&token.continue_token),
                "`continue` skips at run time: loops are unrolled in full; leave rounds out with `if` on the index",
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
        // Mistakes inside are reported in the same run.
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
            if list.is_empty() {
                return self
                    .refuse(whole, "a list does not grow in a #[function]: write all its elements at once, `[a, b]`");
            }
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
                "`{name}!` is not expanded before the function is traced: write its code in place, or as a #[function]"
            )
        };
        self.diagnostics.error_instead_of_rustc(whole, Place::of(mac), message);
        Value::Wrong
    }
}
