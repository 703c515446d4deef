//! What constants outside of the function, and flags, decide: which branch is taken, how often a loop runs, along which axis.
//!
//! No macro sees their values. The body is traced once for each way in which they may decide, so that every mistake is found;
//! a mistake of one way is reported by `const` evaluation if the constants have decided for it. The graph itself is made by
//! the typed copy, where Rust knows the values, when the function is first used.

use super::inference::{Kind, NumberType};
use super::{Check, Outcome, Tracer, Value};
use crate::diagnostics::{Diagnostics, Place};
use proc_macro2::{Literal, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use std::collections::HashMap;
use tinyspec_ir::ops::LiteralKind;

/// Ways in which constants may decide that are looked at, at most.
pub(super) const MOST_WAYS: usize = 64;

/// A question that a body asks of a constant.
#[derive(Clone)]
pub(super) struct Decision {
    /// The constant as written.
    pub text: String,
    /// The constant in Rust.
    pub path: TokenStream,
    /// What it may be: 0 and 1 of a `bool`.
    pub values: Vec<i64>,
    /// It is a `bool`.
    pub is_bool: bool,
    /// Where it is asked.
    pub place: Place,
    /// `const` evaluation knows it: it is no flag and no index of a loop.
    pub is_constant: bool,
}

impl Decision {
    /// The condition that it was decided like this, in Rust.
    fn holds(&self, value: i64) -> TokenStream {
        let path = &self.path;
        if self.is_bool {
            return if value == 1 { quote!(#path) } else { quote!(!#path) };
        }
        let value = Literal::i64_unsuffixed(value);
        quote!(((#path) as i64 == #value))
    }
}

/// What was decided so far, by the constant as it stands in Rust.
pub(super) type Decided = HashMap<String, i64>;

impl Tracer<'_> {
    /// What a constant of bools says; none where the trace has to be repeated for each of its values.
    pub(super) fn decide(&mut self, text: &str, path: &TokenStream, place: Place) -> Option<bool> {
        self.decide_among(text, path, vec![1, 0], true, place).map(|value| value == 1)
    }

    /// What a constant says that has one of these values.
    pub(super) fn decide_among(
        &mut self,
        text: &str,
        path: &TokenStream,
        values: Vec<i64>,
        is_bool: bool,
        place: Place,
    ) -> Option<i64> {
        self.is_deferred = true;
        if let Some(&value) = self.decided.get(&path.to_string()) {
            return Some(value);
        }
        if self.undecided.is_none() {
            let is_constant = !self.is_open(path);
            let path = path.clone();
            self.undecided = Some(Decision { text: text.to_string(), path, values, is_bool, place, is_constant });
        }
        None
    }

    /// An axis, or axes, that constants say: each that a tensor of this rank has is looked at.
    pub(super) fn decided_axes(&mut self, value: &Value, rank: usize, place: Place) -> Result<Value, Value> {
        match value {
            Value::Constant { text, path, kind: None | Some(LiteralKind::Int), .. } => {
                // A new axis may be behind all.
                let axes = (0..=rank as i64).chain(-1 - rank as i64..0).collect();
                let axis = self.decide_among(text, path, axes, false, place);
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

    /// The value depends on a flag, or on the index of a loop that a constant ends: `const` evaluation does not know it.
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

/// A body that was traced in one way.
pub(super) struct Way {
    /// What was decided.
    pub decisions: Vec<(Decision, i64)>,
    /// What came of it.
    pub outcome: Outcome,
    /// What is wrong in this way.
    pub found: Diagnostics,
    /// Equalities that `const` evaluation looks at.
    pub checks: Vec<Check>,
}

/// One outcome of all ways. What is wrong in every way, or in one that flags may choose, is reported; the rest is for `const`
/// evaluation, which knows the way.
pub(super) fn joined(ways: Vec<Way>, diagnostics: &mut Diagnostics) -> Outcome {
    let mut checks = vec![];
    let mut chosen: Option<Outcome> = None;
    let all_wrong = ways.iter().all(|way| !way.found.is_empty());
    let mut is_wrong = false;
    for way in ways {
        let Way { decisions, outcome, found, checks: equalities } = way;
        let conditions = decisions.iter().filter(|(decision, _)| decision.is_constant);
        let conditions: Vec<TokenStream> = conditions.map(|(decision, value)| decision.holds(*value)).collect();
        let condition = quote!(#(#conditions)&&*);
        let when = (!conditions.is_empty()).then_some(&condition);
        checks.extend(equalities.iter().map(|check| check.to_tokens_when(when)));
        checks.extend(outcome.checks.iter().cloned());
        if !found.is_empty() && !all_wrong && !conditions.is_empty() {
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
    let outcome = chosen.unwrap_or_else(|| unreachable!("a body is traced in one way at least"));
    let (traced, open) = (outcome.traced.filter(|_| !is_wrong), outcome.open.filter(|_| !is_wrong));
    Outcome { traced, open, checks, ..outcome }
}
