//! Decisions that depend on constants outside the function or on flags: which branch is taken, how often a loop runs,
//! along which axis.
//!
//! Macros cannot see their values. The body is traced once for each combination of decisions, so that every mistake is
//! found. A mistake in only some of these alternatives is reported by `const` evaluation if the constants choose one of
//! them. The graph itself is made by the typed copy, where Rust knows the values, when the function is first used.

use super::inference::{Kind, NumberType};
use super::{Check, Outcome, Tracer, Value};
use crate::diagnostics::{Adaptation, Diagnostics, Place};
use proc_macro2::{Literal, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use std::collections::HashMap;
use syn::Expr;
use tinyspec_ir::ops::LiteralKind;

/// The most alternatives that are traced.
pub(super) const MOST_ALTERNATIVES: usize = 400;

/// The largest value that is tried for a constant used as a number: a stride, a padding, a window size, the `k` of a
/// top-k. Smaller if several constants would give too many alternatives.
pub(super) const MOST_NUMBERS: [i64; 3] = [16, 7, 4];

/// A decision that depends on a constant.
#[derive(Clone)]
pub(super) struct Decision {
    /// The constant as written.
    pub text: String,
    /// The constant in Rust.
    pub path: TokenStream,
    /// Its possible values: 0 and 1 for a `bool`.
    pub values: Vec<i64>,
    /// It is a `bool`.
    pub is_bool: bool,
    /// It is an axis of a tensor of this rank.
    pub rank: Option<usize>,
    /// Where it is needed.
    pub place: Place,
    /// `const` evaluation knows it: it is neither a flag nor a loop index.
    pub is_constant: bool,
}

impl Decision {
    /// A Rust expression that is true if the decision has this value.
    fn holds(&self, value: i64) -> TokenStream {
        let path = &self.path;
        if self.is_bool {
            return if value == 1 { quote!(#path) } else { quote!(!#path) };
        }
        let value = Literal::i64_unsuffixed(value);
        quote!(((#path) as i64 == #value))
    }
}

/// The decisions so far, by the constant's Rust expression.
pub(super) type Decided = HashMap<String, i64>;

impl Tracer<'_> {
    /// The value of a `bool` constant in this alternative; `None` if the trace has to be repeated for each of its
    /// values.
    pub(super) fn decide(&mut self, text: &str, path: &TokenStream, place: Place) -> Option<bool> {
        self.decide_among(text, path, vec![1, 0], (true, None), place).map(|value| value == 1)
    }

    /// The value in this alternative of a constant that has one of these values.
    pub(super) fn decide_among(
        &mut self,
        text: &str,
        path: &TokenStream,
        values: Vec<i64>,
        (is_bool, rank): (bool, Option<usize>),
        place: Place,
    ) -> Option<i64> {
        self.is_deferred = true;
        if let Some(&value) = self.decided.get(&path.to_string()) {
            return Some(value);
        }
        if self.undecided.is_none() {
            let is_constant = !self.is_open(path);
            let path = path.clone();
            self.undecided = Some(Decision { text: text.to_string(), path, values, is_bool, rank, place, is_constant });
        }
        None
    }

    /// Values of constants where a method or an option takes numbers: a few candidates are tried.
    pub(super) fn decided_numbers(&mut self, value: &Value, least: i64, written: &Expr) -> Result<Value, Value> {
        match (value, written) {
            (Value::Constant { text, path, kind: None | Some(LiteralKind::Int), .. }, _) if !self.is_open(path) => {
                let number = self.decide_among(
                    text,
                    path,
                    (least..=self.most_number).collect(),
                    (false, None),
                    Place::of(written),
                );
                self.diagnostics.adapt(written, Adaptation::Whole);
                number.map(|number| Value::Int(number.into(), Kind::Known(NumberType::I64))).ok_or(Value::Wrong)
            }
            (Value::List(values), Expr::Array(array)) if values.len() == array.elems.len() => {
                let elements = values.iter().zip(&array.elems);
                let values: Result<Vec<Value>, Value> =
                    elements.map(|(value, written)| self.decided_numbers(value, least, written)).collect();
                Ok(Value::List(values?))
            }
            (Value::Optional(Some(value)), Expr::Call(call)) if call.args.len() == 1 => {
                Ok(Value::Optional(Some(Box::new(self.decided_numbers(value, least, &call.args[0])?))))
            }
            (other, Expr::Reference(inner)) => self.decided_numbers(other, least, &inner.expr),
            (other, Expr::Paren(inner)) => self.decided_numbers(other, least, &inner.expr),
            (other, _) => Ok(other.clone()),
        }
    }

    /// Values of constants used as axes: every axis of a tensor of this rank is tried.
    pub(super) fn decided_axes(&mut self, value: &Value, rank: usize, place: Place) -> Result<Value, Value> {
        match value {
            Value::Constant { text, path, kind: None | Some(LiteralKind::Int), .. } => {
                // A new axis may come last.
                let axes = (0..=rank as i64).chain(-1 - rank as i64..0).collect();
                let axis = self.decide_among(text, path, axes, (false, Some(rank)), place);
                axis.map(|axis| Value::Int(axis.into(), Kind::Known(NumberType::I64))).ok_or(Value::Wrong)
            }
            Value::List(values) => {
                let values: Result<Vec<Value>, Value> =
                    values.iter().map(|value| self.decided_axes(value, rank, place)).collect();
                Ok(Value::List(values?))
            }
            other => Ok(other.clone()),
        }
    }

    /// Whether the value depends on a flag, or on the index of a loop with a constant bound: `const` evaluation does
    /// not know it.
    pub(super) fn is_open(&self, path: &TokenStream) -> bool {
        fn names(tokens: TokenStream, open: &[String]) -> bool {
            tokens.into_iter().any(|token| match token {
                TokenTree::Ident(ident) => open.iter().any(|name| ident == name),
                TokenTree::Group(group) => names(group.stream(), open),
                _ => false,
            })
        }
        !self.open_names.is_empty() && names(path.clone(), &self.open_names)
    }
}

/// A check for `const` evaluation, which refuses a constant with a value that was not tried, if `before` was decided
/// like this.
pub(super) fn covered(question: &Decision, before: &[(Decision, i64)]) -> Option<TokenStream> {
    if question.is_bool || !question.is_constant {
        return None;
    }
    let constants = before.iter().filter(|(decision, _)| decision.is_constant);
    let before: Vec<TokenStream> = constants.map(|(decision, value)| decision.holds(*value)).collect();
    let values: Vec<TokenStream> = question.values.iter().map(|&value| question.holds(value)).collect();
    let message = match question.rank {
        Some(rank) => format!(
            "`{}` is not an axis of a tensor of rank {rank}: axes count from 0, or from -1 at the end",
            question.text
        ),
        None => {
            let shown = match question.values.as_slice() {
                [first, .., last] if *last - *first + 1 == question.values.len() as i64 => {
                    [first.to_string(), last.to_string()].join(" to ")
                }
                values => values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            };
            format!(
                "macros cannot see the value of `{}`: what was looked at is {shown}; write another number out, or make it a `const` inside the function",
                question.text
            )
        }
    };
    let refuse = quote_spanned!(question.place.start=> ::tinyspec::__private::refuse);
    Some(quote_spanned!(question.place.end=>
        const _: () = if #(#before &&)* !(#(#values)||*) { #refuse(#message) };))
}

/// The trace of one alternative.
pub(super) struct Alternative {
    /// Its decisions.
    pub decisions: Vec<(Decision, i64)>,
    /// Its outcome.
    pub outcome: Outcome,
    /// Its mistakes.
    pub found: Diagnostics,
    /// Equalities that `const` evaluation checks.
    pub checks: Vec<Check>,
    /// Arithmetic on constants that `const` evaluation has to accept.
    pub computed: Vec<TokenStream>,
}

/// Merges the outcomes of all alternatives. Errors that every alternative has in the same words, or that flags may
/// choose, are reported here; the others are left to `const` evaluation, which knows the alternative that is chosen.
pub(super) fn joined(
    alternatives: Vec<Alternative>,
    covered: Vec<TokenStream>,
    diagnostics: &mut Diagnostics,
) -> Outcome {
    let mut checks = covered;
    let mut chosen: Option<Outcome> = None;
    let of_all = alternatives.split_first().map_or(Diagnostics::default(), |(first, others)| {
        first.found.shared_with(others.iter().map(|alternative| &alternative.found))
    });
    let is_reported = !of_all.is_empty();
    diagnostics.extend(of_all);
    let mut is_wrong = is_reported;
    for alternative in alternatives {
        let Alternative { decisions, outcome, found, checks: equalities, computed } = alternative;
        let conditions = decisions.iter().filter(|(decision, _)| decision.is_constant);
        let conditions: Vec<TokenStream> = conditions.map(|(decision, value)| decision.holds(*value)).collect();
        let condition = quote!(#(#conditions)&&*);
        let when = (!conditions.is_empty()).then_some(&condition);
        checks.extend(equalities.iter().map(|check| check.to_tokens_when(when)));
        let computed = computed.iter().map(|value| match when {
            None => quote!(#[allow(unused_parens, clippy::all)] const _: () = { let _ = #value; };),
            Some(condition) => {
                quote!(#[allow(unused_parens, clippy::all)] const _: () = if #condition { let _ = #value; };)
            }
        });
        checks.extend(computed);
        checks.extend(outcome.checks.iter().cloned());
        if !found.is_empty() && !conditions.is_empty() {
            if is_reported {
                diagnostics.extend(found.without_errors());
                chosen = chosen.or(Some(outcome));
                continue;
            }
            checks.extend(found.errors().map(|(place, message)| {
                let refuse = quote_spanned!(place.start=> ::tinyspec::__private::refuse);
                quote_spanned!(place.end=> const _: () = if #condition { #refuse(#message) };)
            }));
            diagnostics.extend(found.adaptations());
            chosen = chosen.or(Some(outcome));
            continue;
        }
        is_wrong |= !found.is_empty();
        let is_right = found.is_empty();
        diagnostics.extend(found);
        if is_right || chosen.is_none() {
            chosen = Some(outcome);
        }
    }
    let outcome = chosen.unwrap_or_else(|| unreachable!("a body is traced in one alternative at least"));
    let (traced, open) = (outcome.traced.filter(|_| !is_wrong), outcome.open.filter(|_| !is_wrong));
    Outcome { traced, open, checks, ..outcome }
}
