//! Buffers of models: how a body reads them and assigns to them.
//!
//! A function that takes a model by `&mut` returns the new states of all its buffers after its results, since callers
//! know only its signature. Values read from a buffer and assigned to it are detached in the graph.

use super::{ModelValue, Tracer, Value};
use crate::diagnostics::{Adaptation, Place};
use crate::model::types::FieldType;
use std::rc::Rc;
use syn::Expr;
use tinyspec_ir::{NodeId, ops};

/// A buffer during the trace of a body.
pub(super) struct Buffer {
    /// Its current value.
    pub node: NodeId,
    /// The parameter that it belongs to.
    pub parameter: String,
    /// The parameter is `&mut`.
    pub is_updated: bool,
}

impl Tracer<'_> {
    /// The value with each buffer replaced by its current tensor.
    pub(super) fn resolved(&self, value: Value) -> Value {
        let all = |values: Vec<Value>| values.into_iter().map(|value| self.resolved(value)).collect();
        match value {
            Value::Buffer(number) => Value::Tensor(self.buffers[number].node),
            Value::List(values) => Value::List(all(values)),
            Value::Tuple(values) => Value::Tuple(all(values)),
            Value::Optional(Some(value)) => Value::Optional(Some(Box::new(self.resolved(*value)))),
            Value::Model(model) => {
                let fields = model.fields.iter().map(|(name, value)| (name.clone(), self.resolved(value.clone())));
                Value::Model(Rc::new(ModelValue {
                    model: model.model.clone(),
                    fields: fields.collect(),
                    root: model.root.clone(),
                    access: model.access.clone(),
                }))
            }
            other => other,
        }
    }

    /// The tensors of a model, or of a list or tuple of models, in the order of the fields.
    pub(super) fn leaves(&self, value: &Value, nodes: &mut Vec<NodeId>) {
        match value {
            Value::Tensor(node) => nodes.push(*node),
            Value::Buffer(number) => nodes.push(self.buffers[*number].node),
            Value::Model(model) => model.fields.iter().for_each(|(_, value)| self.leaves(value, nodes)),
            Value::List(values) | Value::Tuple(values) => values.iter().for_each(|value| self.leaves(value, nodes)),
            Value::Optional(Some(value)) => self.leaves(value, nodes),
            _ => {}
        }
    }

    /// A new buffer of a parameter. No gradient is taken for it.
    pub(super) fn new_buffer(&mut self, node: NodeId, parameter: &str, is_updated: bool) -> Value {
        let node = self.without_gradient(node);
        self.buffers.push(Buffer { node, parameter: parameter.to_string(), is_updated });
        Value::Buffer(self.buffers.len() - 1)
    }

    fn without_gradient(&mut self, node: NodeId) -> NodeId {
        match self.graph.dtype(node).is_float() {
            true => ops::elementwise::detach(&mut self.graph, node).unwrap_or(node),
            false => node,
        }
    }

    /// The final values of the buffers of `&mut` parameters.
    pub(super) fn states(&self) -> impl Iterator<Item = NodeId> {
        self.buffers.iter().filter(|buffer| buffer.is_updated).map(|buffer| buffer.node)
    }

    /// The buffers that a function with a `&mut` model changes: those of the model's own type, whatever owns it.
    pub(super) fn changed_by_callee(&self, model: &ModelValue) -> Vec<usize> {
        fn collect(ty: &FieldType, value: &Value, is_buffer: bool, found: &mut Vec<usize>) {
            match (ty, value) {
                (_, Value::Buffer(number)) if is_buffer => found.push(*number),
                (FieldType::Buffer(ty), value) => collect(ty, value, true, found),
                (FieldType::Model(..), Value::Model(model)) => fields(model, is_buffer, found),
                (FieldType::List(ty, _), Value::List(values)) => {
                    values.iter().for_each(|value| collect(ty, value, is_buffer, found));
                }
                (FieldType::Optional(ty, _), Value::Optional(Some(value))) => collect(ty, value, is_buffer, found),
                _ => {}
            }
        }
        fn fields(model: &ModelValue, is_buffer: bool, found: &mut Vec<usize>) {
            let types = model.model.fields.iter().map(|(_, ty)| ty);
            types.zip(&model.fields).for_each(|(ty, (_, value))| collect(ty, value, is_buffer, found));
        }
        let mut found = vec![];
        fields(model, false, &mut found);
        found
    }

    /// Why buffers that a callee changes may not be changed here.
    pub(super) fn fixed_parameter(&self, callee: &str, buffers: &[usize]) -> Option<String> {
        let fixed = buffers.iter().map(|&number| &self.buffers[number]).find(|buffer| !buffer.is_updated)?;
        let (parameter, how) = (&fixed.parameter, self.as_mutable(&fixed.parameter));
        Some(format!("`{callee}` changes buffers of `{parameter}`, which is passed by `&`: write {how}"))
    }

    /// How a signature must declare this parameter to change its buffers.
    fn as_mutable(&self, parameter: &str) -> String {
        if parameter == "self" {
            return "`&mut self`".to_string();
        }
        let model = self.signature.parameters.iter().find(|other| other.ident == parameter);
        let model = model.and_then(|parameter| parameter.model.as_ref()).map(crate::diagnostics::source_text);
        format!("`{parameter}: &mut {}`", model.unwrap_or_default())
    }

    /// Sets a buffer to the new state that a callee returned.
    pub(super) fn set_buffer(&mut self, number: usize, node: NodeId) {
        self.buffers[number].node = self.without_gradient(node);
    }

    /// `self.mean = value`: from here on the buffer that `target` names is another tensor of its type.
    pub(super) fn assign_buffer(&mut self, number: usize, target: &Expr, value: Value, whole: &Expr) -> Value {
        let Buffer { node: before, parameter, is_updated } = &self.buffers[number];
        let (before, text) = (*before, crate::diagnostics::source_text(target));
        if !is_updated {
            let how = self.as_mutable(parameter);
            let message = format!("`{text}` is changed, but `{parameter}` is passed by `&`: write {how}");
            return self.refuse(whole, message);
        }
        let value = self.resolved(value);
        let node = match value {
            Value::Tensor(node) => node,
            Value::Wrong => {
                self.diagnostics.leave_out(whole);
                return Value::UNIT;
            }
            // rustc compares types.
            _ => return Value::UNIT,
        };
        let (found, wanted) = (self.tensor_type(node), self.tensor_type(before));
        if found != wanted {
            let is_checked = found.dtype == wanted.dtype
                && (self.assume_equal(Place::of(whole), "state", &found.shape, &wanted.shape).is_some()
                    || self.taken_as(Place::of(whole), "state", node, &wanted.shape).is_some());
            if !is_checked {
                let hint = self.difference(&found, &wanted);
                let (found, wanted) = (self.show_type(&found), self.show_type(&wanted));
                let mut message = format!("the buffer `{text}` is {wanted}, this is {found}");
                for line in self.origins(&message) {
                    message += &format!("\n  {line}");
                }
                return self.refuse(whole, message + &hint);
            }
            return Value::UNIT;
        }
        self.buffers[number].node = self.without_gradient(node);
        self.diagnostics.adapt(whole, Adaptation::State);
        Value::UNIT
    }

    /// Refuses moving a tensor out of a parameter's model; rustc would only suggest a clone.
    pub(super) fn moved(&mut self, expression: &Expr, value: &Value) -> Option<Value> {
        let is_taken = matches!(value, Value::Tensor(_)) && self.is_of_parameter(expression);
        is_taken.then(|| {
            let text = crate::diagnostics::source_text(expression);
            self.refuse(expression, format!("`{text}` stays in its model: write `&{text}`"))
        })
    }

    /// Whether this is a field of a model that is a parameter.
    pub(super) fn is_of_parameter(&self, expression: &Expr) -> bool {
        fn root(expression: &Expr) -> Option<&syn::Ident> {
            match expression {
                Expr::Path(path) => path.path.get_ident(),
                Expr::Field(field) => root(&field.base),
                Expr::Index(index) => root(&index.expr),
                Expr::Paren(inner) => root(&inner.expr),
                _ => None,
            }
        }
        let is_part = matches!(expression, Expr::Field(_) | Expr::Index(_));
        let Some(name) = root(expression).filter(|_| is_part).map(ToString::to_string) else { return false };
        let is_shadowed = self.scopes.iter().skip(1).any(|scope| scope.contains_key(&name));
        let models = self.signature.parameters.iter().filter(|parameter| parameter.model.is_some());
        !is_shadowed && models.into_iter().any(|parameter| parameter.ident == name)
    }

    /// The place that an expression names: a buffer, or something that contains buffers.
    pub(super) fn place(&mut self, target: &Expr) -> Option<Value> {
        match target {
            Expr::Paren(inner) => self.place(&inner.expr),
            Expr::Group(inner) => self.place(&inner.expr),
            Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => self.place(&unary.expr),
            Expr::Reference(reference) => self.place(&reference.expr),
            Expr::Path(path) => self.lookup(&path.path.get_ident()?.to_string()).cloned(),
            Expr::Field(field) => match (self.place(&field.base)?, &field.member) {
                (Value::Model(model), syn::Member::Named(name)) => {
                    model.fields.iter().find(|(field, _)| name == field).map(|(_, value)| value.clone())
                }
                (Value::Tuple(values), syn::Member::Unnamed(index)) => values.into_iter().nth(index.index as usize),
                _ => None,
            },
            Expr::Index(index) => match (self.place(&index.expr)?, self.expression(&index.index)) {
                (Value::List(values), Value::Int(position, _)) => {
                    values.into_iter().nth(usize::try_from(position).ok()?)
                }
                _ => None,
            },
            _ => None,
        }
    }
}
