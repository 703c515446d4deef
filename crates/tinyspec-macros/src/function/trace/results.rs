//! Compares the value of a body with the declared result.

use super::{Tracer, Value};
use crate::diagnostics::{Place, source_text};
use crate::function::signature::{ResultType, TensorType};
use syn::Expr;
use tinyspec_ir::{Builder, NodeId};

impl Tracer<'_> {
    /// The tensors that the body's value consists of, checked against the declared result.
    pub(super) fn outputs(&mut self, body: &syn::Block, value: Value) -> Option<Vec<NodeId>> {
        let result = self.signature.result.as_ref()?;
        let last = match body.stmts.last() {
            Some(syn::Stmt::Expr(last, None)) => last,
            Some(syn::Stmt::Expr(syn::Expr::Return(_), _)) => return None,
            Some(syn::Stmt::Expr(_, Some(semicolon))) => {
                let message = format!("`{}` returns its last expression: remove this `;`", self.signature.ident);
                self.diagnostics.error(Place::of(semicolon), message);
                return None;
            }
            _ => {
                let message = format!(
                    "`{}` ends without a value: its last line is the result, without `;`",
                    self.signature.ident
                );
                self.diagnostics.error(self.signature.result_place, message);
                return None;
            }
        };
        let mut outputs = vec![];
        self.output(result, value, last, &mut outputs)?;
        Some(outputs)
    }

    fn output(&mut self, wanted: &ResultType, value: Value, at: &Expr, outputs: &mut Vec<NodeId>) -> Option<()> {
        match (wanted, value) {
            (_, Value::Unknown | Value::Wrong) => None,
            (ResultType::Tensor(_), Value::Tensor(_)) if self.is_of_parameter(at) => {
                let text = source_text(at);
                self.refuse(at, format!("`{text}` stays in its model: write `{text}.clone()`, which copies no data"));
                None
            }
            (ResultType::Tensor(wanted), Value::Tensor(node)) => {
                let wanted = TensorType {
                    dtype: wanted.dtype,
                    shape: wanted.shape.iter().map(|dim| self.in_graph(dim)).collect(),
                };
                let found = self.graph.props(node).shape.clone();
                let what = format!("result of {}", self.signature.ident);
                if self.graph.dtype(node) == wanted.dtype
                    && self.assume_equal(Place::of(at), &what, &found, &wanted.shape).is_some()
                {
                    return None;
                }
                if self.graph.dtype(node) == wanted.dtype
                    && let Some(node) = self.taken_as(Place::of(at), &what, node, &wanted.shape)
                {
                    outputs.push(node);
                    return Some(());
                }
                if self.graph.dtype(node) != wanted.dtype || self.graph.props(node).shape != wanted.shape {
                    let hint = self.difference(&self.tensor_type(node), &wanted);
                    let (found, wanted) = (self.type_of(node), self.show_type(&wanted));
                    let name = &self.signature.ident;
                    let mut message = format!("`{name}` returns {found} here, but its signature says {wanted}");
                    for line in self.origins(&message) {
                        message += &format!("\n  {line}");
                    }
                    message += &hint;
                    self.diagnostics.error(Place::of(at), message);
                    return None;
                }
                outputs.push(node);
                Some(())
            }
            (ResultType::Tuple(wanted), Value::Tuple(values)) if wanted.len() == values.len() => {
                let places: Vec<&Expr> = match at {
                    Expr::Tuple(tuple) if tuple.elems.len() == wanted.len() => tuple.elems.iter().collect(),
                    _ => vec![at; wanted.len()],
                };
                let elements = wanted.iter().zip(values).zip(places);
                let checked: Vec<Option<()>> =
                    elements.map(|((wanted, value), at)| self.output(wanted, value, at, outputs)).collect();
                checked.into_iter().collect()
            }
            // rustc compares the two types.
            _ => None,
        }
    }
}
