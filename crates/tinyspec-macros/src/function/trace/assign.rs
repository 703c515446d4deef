//! Assignments: a local name gets a new value; nothing else can be changed.

use super::{Tracer, Value};
use crate::diagnostics::Place;
use crate::function::signature::Parameter;
use syn::Expr;

impl Tracer<'_> {
    /// `x = value` for a local name.
    pub(super) fn assign(&mut self, target: &Expr, value: Value, whole: &Expr) -> Value {
        if matches!(value, Value::Wrong) {
            // The name may have had any type, and what is left out does not determine it.
            self.diagnostics.leave_out(whole);
        }
        if matches!(self.root(target), Some(Value::Wrong | Value::Unseen)) && !matches!(target, Expr::Path(_)) {
            // Its owner has been refused, or is not known yet.
            self.diagnostics.leave_out(whole);
            return Value::UNIT;
        }
        if !matches!(target, Expr::Paren(_) | Expr::Tuple(_) | Expr::Infer(_)) {
            match self.place(target) {
                // `mean = …` rebinds a local name, `*mean = …` assigns to the buffer that it refers to.
                Some(Value::Buffer(number)) if !is_rebound(target, whole) => {
                    return self.assign_buffer(number, target, value, whole);
                }
                _ => {
                    if let Some(refused) = self.refuse_parameter(target, whole) {
                        return refused;
                    }
                }
            }
        }
        let message = match target {
            Expr::Paren(inner) => return self.assign(&inner.expr, value, whole),
            Expr::Infer(_) => return Value::UNIT,
            Expr::Tuple(tuple) => {
                let values = match value {
                    Value::Tuple(values) if values.len() == tuple.elems.len() => values,
                    Value::Wrong => vec![Value::Wrong; tuple.elems.len()],
                    _ => vec![Value::Unknown; tuple.elems.len()],
                };
                for (target, value) in tuple.elems.iter().zip(values) {
                    self.assign(target, value, whole);
                }
                return Value::UNIT;
            }
            Expr::Path(path) if path.path.get_ident().is_some() => {
                let name = path.path.get_ident().map(ToString::to_string).unwrap_or_default();
                let locals = self.scopes.get_mut(1..).unwrap_or_default();
                if let Some(slot) = locals.iter_mut().rev().find_map(|scope| scope.get_mut(&name)) {
                    let before = std::mem::replace(slot, value.clone());
                    self.unify(&before, &value);
                    return Value::UNIT;
                }
                if self.scopes.first().is_some_and(|scope| scope.contains_key(&name)) {
                    format!("`{name}` comes from the signature: `let {name} = …;` gives the name to another value")
                } else if let (Some(ident), true) = (path.path.get_ident(), name.starts_with(char::is_lowercase)) {
                    self.unknown_name(ident);
                    self.declare(&name, Value::Wrong);
                    return Value::UNIT;
                } else {
                    format!("`{name}` is not a local variable: a #[function] changes nothing outside itself")
                }
            }
            Expr::Path(_) => "a #[function] changes nothing outside itself: return the new value".to_string(),
            Expr::Field(_) | Expr::Index(_) | Expr::Unary(_) => {
                self.forget(target);
                "parts cannot be assigned to: tensors, lists and tuples are values; bind the new one to a name"
                    .to_string()
            }
            _ => "only names can be assigned to".to_string(),
        };
        self.diagnostics.error_instead_of_rustc(whole, Place::of(target), message);
        Value::UNIT
    }

    /// Refuses `self.w = …` for a parameter, which only optimisers change.
    pub(super) fn refuse_parameter(&mut self, target: &Expr, whole: &Expr) -> Option<Value> {
        if !matches!(self.place(target), Some(Value::Tensor(_))) || !self.is_of_model(target) {
            return None;
        }
        if self.signature.parameters.iter().any(Parameter::changes_nothing) {
            // Reported at the signature already.
            self.diagnostics.leave_out(whole);
            return Some(Value::UNIT);
        }
        let text = crate::diagnostics::source_text(target);
        let message = format!(
            "`{text}` is a parameter, which optimisers change: mark what a function changes with `#[model(buffer)]`"
        );
        Some(self.refuse(whole, message))
    }

    /// The value of the name at the beginning of `a.b[0]`.
    fn root(&self, target: &Expr) -> Option<&Value> {
        match target {
            Expr::Field(field) => self.root(&field.base),
            Expr::Index(index) => self.root(&index.expr),
            Expr::Unary(unary) => self.root(&unary.expr),
            Expr::Paren(inner) => self.root(&inner.expr),
            Expr::Path(path) => self.lookup(&path.path.get_ident()?.to_string()),
            _ => None,
        }
    }

    /// A field of a model.
    fn is_of_model(&mut self, target: &Expr) -> bool {
        match target {
            Expr::Field(field) => {
                matches!(self.place(&field.base), Some(Value::Model(_))) || self.is_of_model(&field.base)
            }
            Expr::Index(index) => self.is_of_model(&index.expr),
            Expr::Unary(unary) => self.is_of_model(&unary.expr),
            _ => false,
        }
    }

    /// From here on, the local that `pair.0` or `parts[1]` is part of no longer has the value the user meant.
    pub(super) fn forget(&mut self, part: &Expr) {
        match part {
            Expr::Field(field) => self.forget(&field.base),
            Expr::Index(index) => self.forget(&index.expr),
            Expr::Unary(unary) => self.forget(&unary.expr),
            Expr::Paren(inner) => self.forget(&inner.expr),
            Expr::Path(path) => {
                let Some(name) = path.path.get_ident().map(ToString::to_string) else { return };
                if let Some(slot) = self.scopes.iter_mut().rev().find_map(|scope| scope.get_mut(&name)) {
                    *slot = Value::Wrong;
                }
            }
            _ => {}
        }
    }
}

/// Whether this is `name = …`; methods and `*name = …` change what the name refers to.
fn is_rebound(target: &Expr, whole: &Expr) -> bool {
    matches!((target, whole), (Expr::Path(_), Expr::Assign(_)))
}
