//! Blocks, `let`, and patterns.

use super::{Tracer, Value};
use crate::diagnostics::Place;
use crate::function::signature::{ResultType, TensorType};
use std::collections::HashMap;
use syn::{Block, Item, Local, Pat, Stmt, Type};
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
            let message = "a `let` in a #[function] has a value at once";
            return self.diagnostics.error(Place::of(local), message);
        };
        if let Some((_, diverge)) = &init.diverge {
            let message = "`let … else` takes a branch at run time: a graph has none";
            return self.diagnostics.error(Place::of(diverge), message);
        }
        let value = self.expression(&init.expr);
        let pattern = match &local.pat {
            Pat::Type(typed) => {
                self.check_annotation(&typed.ty, &value, Place::of(&*init.expr));
                &*typed.pat
            }
            pattern => pattern,
        };
        self.bind(pattern, value);
    }

    /// Compares `let h: Tensor<f32, B, 64>` with the value.
    fn check_annotation(&mut self, annotation: &Type, value: &Value, place: Place) {
        let has_dims = |ty: &Type| match ty {
            Type::Path(path) => {
                path.path.segments.last().is_some_and(|last| last.ident == "Tensor" && !last.arguments.is_none())
            }
            _ => false,
        };
        match (annotation, value) {
            (Type::Reference(reference), value) => self.check_annotation(&reference.elem, value, place),
            (Type::Tuple(types), Value::Tuple(values)) => {
                for (ty, value) in types.elems.iter().zip(values) {
                    self.check_annotation(ty, value, place);
                }
            }
            (annotation, value) if has_dims(annotation) => {
                let Some(wanted) = self.type_reader().tensor(annotation) else { return };
                let Value::Tensor(node) = value else { return };
                let found = TensorType { dtype: self.graph.dtype(*node), shape: self.graph.props(*node).shape.clone() };
                if found != wanted {
                    let (found, wanted) = (self.show_type(&found), self.show_type(&wanted));
                    self.diagnostics.error(place, format!("this is {found}, the annotation says {wanted}"));
                }
            }
            // Other annotations are rustc's.
            _ => {}
        }
    }

    /// Gives the names of a pattern their values.
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
            }
        }
    }

    fn bind_all(&mut self, patterns: &syn::punctuated::Punctuated<Pat, syn::Token![,]>, value: Value) {
        let values = match value {
            Value::Tuple(values) | Value::List(values) if values.len() == patterns.len() => values,
            // What does not fit is rustc's, what is unknown was reported.
            _ => vec![Value::Unknown; patterns.len()],
        };
        for (pattern, value) in patterns.iter().zip(values) {
            self.bind(pattern, value);
        }
    }

    /// The shape of a result, with values for the tensors in it.
    pub(super) fn shaped(result: &ResultType, tensors: &mut impl Iterator<Item = Value>) -> Value {
        match result {
            ResultType::Tensor(_) => tensors.next().unwrap_or(Value::Unknown),
            ResultType::Tuple(elements) => {
                Value::Tuple(elements.iter().map(|element| Tracer::shaped(element, tensors)).collect())
            }
        }
    }
}
