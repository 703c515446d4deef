//! Blocks, `let`, and patterns.

use super::{Tracer, Value};
use crate::diagnostics::{Adaptation, Place, source_text};
use crate::function::signature::{ResultType, TensorType};
use std::collections::HashMap;
use syn::{Block, Expr, Item, Local, Pat, Stmt, Type};
use tinyspec_ir::Builder;

impl Tracer<'_> {
    /// The value of a block, in a scope of its own.
    pub(super) fn block(&mut self, block: &Block) -> Value {
        self.scopes.push(HashMap::new());
        let mut value = Value::UNIT;
        for statement in &block.stmts {
            value = self.statement(statement);
        }
        self.scopes.pop();
        value
    }

    fn statement(&mut self, statement: &Stmt) -> Value {
        match statement {
            Stmt::Local(local) => self.local(local),
            Stmt::Expr(expression, None) => return self.expression(expression),
            Stmt::Expr(expression, Some(_)) => {
                self.expression(expression);
            }
            Stmt::Item(Item::Const(constant)) => {
                let value = self.expression(&constant.expr);
                let value = self.annotated(&constant.ty, value);
                self.declare(&constant.ident.to_string(), value);
            }
            Stmt::Item(Item::Use(_)) => {}
            Stmt::Item(item) => {
                self.diagnostics.error(Place::of(item), "only `use` and `const` items stand inside a #[function]");
            }
            Stmt::Macro(statement) => return self.refuse_macro(&statement.mac, statement),
        }
        Value::UNIT
    }

    fn local(&mut self, local: &Local) {
        let Some(init) = &local.init else {
            self.diagnostics.error_instead_of_rustc(
                local,
                Place::of(local),
                "a `let` in a #[function] must have a value: write `let name = value;` where the value is known",
            );
            return self.bind(&local.pat, Value::Wrong);
        };
        if let Some((token, _)) = &init.diverge {
            let message = "`let … else` takes a branch at run time: a graph has none";
            self.diagnostics.error_instead_of_rustc(local, Place::of(token), message);
            self.expression(&init.expr);
            return self.bind_wrong(&local.pat);
        }
        let mut value = self.expression(&init.expr);
        value = self.moved(&init.expr, &value).unwrap_or(value);
        if let Pat::Type(typed) = &local.pat {
            value = self.annotated(&typed.ty, value);
        }
        // The typed copy has one tensor in place of the mistake.
        let is_one_tensor = match &local.pat {
            Pat::Ident(_) => true,
            Pat::Type(typed) => matches!(&*typed.ty, Type::Path(path) if is_tensor(path)),
            _ => false,
        };
        if matches!(value, Value::Wrong) && !is_one_tensor {
            self.diagnostics.leave_out(local);
        }
        let pattern = match &local.pat {
            Pat::Type(typed) => {
                self.check_annotation(&typed.ty, &value, &init.expr);
                &*typed.pat
            }
            pattern => pattern,
        };
        if let (Pat::Slice(slice), Value::List(values)) = (pattern, &value)
            && !matches!(&*init.expr, Expr::Array(_))
            && slice.elems.len() == values.len()
        {
            // Several methods return a `Vec` in Rust, which has no pattern.
            self.diagnostics.adapt(&*init.expr, Adaptation::Array(values.len()));
        }
        if let (Pat::Tuple(tuple), Value::List(values)) = (pattern, &value) {
            let message =
                format!("this is a list of {}: write `let {} = …`", values.len(), in_brackets(tuple, values.len()));
            self.diagnostics.error_instead_of_rustc(local, Place::of(tuple), message);
            return self.bind_wrong(pattern);
        }
        let before = self.diagnostics.count();
        self.bind(pattern, value);
        if self.diagnostics.count() > before {
            self.diagnostics.leave_out(local);
        }
    }

    /// Compares `let h: Tensor<f32, B, 64>` with the value.
    fn check_annotation(&mut self, annotation: &Type, value: &Value, at: &Expr) {
        let has_dims = |ty: &Type| match ty {
            Type::Path(path) => {
                is_tensor(path) && path.path.segments.last().is_some_and(|last| !last.arguments.is_none())
            }
            _ => false,
        };
        match (annotation, value) {
            (Type::Reference(reference), value) => self.check_annotation(&reference.elem, value, at),
            (Type::Tuple(types), Value::Tuple(values)) => {
                let written: Vec<&Expr> = match at {
                    Expr::Tuple(tuple) if tuple.elems.len() == values.len() => tuple.elems.iter().collect(),
                    _ => vec![at; values.len()],
                };
                for ((ty, value), at) in types.elems.iter().zip(values).zip(written) {
                    self.check_annotation(ty, value, at);
                }
            }
            (annotation, value) if has_dims(annotation) => {
                let Some(wanted) = self.type_reader().tensor(annotation) else { return };
                let Value::Tensor(node) = value else { return };
                let found = TensorType { dtype: self.graph.dtype(*node), shape: self.graph.props(*node).shape.clone() };
                if found.dtype == wanted.dtype
                    && self.assume_equal(Place::of(at), "annotation", &found.shape, &wanted.shape).is_some()
                {
                    return;
                }
                if found.dtype == wanted.dtype
                    && self.taken_as(Place::of(at), "annotation", *node, &wanted.shape).is_some()
                {
                    return;
                }
                if found != wanted {
                    let hint = self.difference(&found, &wanted);
                    let (found, wanted) = (self.show_type(&found), self.show_type(&wanted));
                    let message = format!("this is {found}, but the annotation says {wanted}{hint}");
                    self.diagnostics.error(Place::of(at), message);
                }
            }
            // rustc checks other annotations.
            _ => {}
        }
    }

    /// Binds the names of a pattern.
    pub(super) fn bind(&mut self, pattern: &Pat, value: Value) {
        match pattern {
            Pat::Ident(name) if name.subpat.is_none() => self.declare(&name.ident.to_string(), value),
            Pat::Wild(_) => {}
            Pat::Paren(inner) => self.bind(&inner.pat, value),
            Pat::Type(typed) => self.bind(&typed.pat, value),
            Pat::Reference(inner) => self.bind(&inner.pat, value),
            Pat::Tuple(tuple) => self.bind_all(&tuple.elems, value),
            Pat::Slice(slice) => self.bind_all(&slice.elems, value),
            other => {
                let message = "a pattern in a #[function] is a name, `_`, or a tuple or array of patterns";
                self.diagnostics.error(Place::of(other), message);
                self.bind_wrong(other);
            }
        }
    }

    fn bind_all(&mut self, patterns: &syn::punctuated::Punctuated<Pat, syn::Token![,]>, value: Value) {
        let values = match value {
            Value::Tuple(values) | Value::List(values) if values.len() == patterns.len() => values,
            Value::Wrong => vec![Value::Wrong; patterns.len()],
            Value::Unseen => vec![Value::Unseen; patterns.len()],
            // rustc reports a pattern that does not fit.
            _ => vec![Value::Unknown; patterns.len()],
        };
        for (pattern, value) in patterns.iter().zip(values) {
            self.bind(pattern, value);
        }
    }

    /// Binds the names in a pattern to no value, so that they get no further messages.
    pub(super) fn bind_wrong(&mut self, pattern: &Pat) {
        for name in names_of(pattern) {
            self.declare(&name.to_string(), Value::Wrong);
        }
    }

    /// A value structured like a result, made of these tensors.
    pub(super) fn shaped(result: &ResultType, tensors: &mut impl Iterator<Item = Value>) -> Value {
        match result {
            ResultType::Tensor(_) => tensors.next().unwrap_or(Value::Unknown),
            ResultType::Tuple(elements) => {
                Value::Tuple(elements.iter().map(|element| Tracer::shaped(element, tensors)).collect())
            }
        }
    }
}

/// `[a, b]`: the patterns of a tuple for a list of this length.
fn in_brackets(tuple: &syn::PatTuple, length: usize) -> String {
    let names = tuple.elems.iter().map(source_text).chain(std::iter::repeat("_".to_string()));
    format!("[{}]", names.take(length).collect::<Vec<_>>().join(", "))
}

fn is_tensor(path: &syn::TypePath) -> bool {
    path.path.segments.last().is_some_and(|last| last.ident == "Tensor")
}

/// The names that a pattern binds.
pub fn names_of(pattern: &Pat) -> Vec<syn::Ident> {
    struct Names(Vec<syn::Ident>);
    impl<'ast> syn::visit::Visit<'ast> for Names {
        fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
            self.0.push(pattern.ident.clone());
            syn::visit::visit_pat_ident(self, pattern);
        }
    }
    let mut names = Names(vec![]);
    syn::visit::Visit::visit_pat(&mut names, pattern);
    names.0
}
