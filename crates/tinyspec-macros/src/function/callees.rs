//! Which other functions a body calls.

use super::signature::open_span;
use super::source::import_of;
use super::ungroup;
use crate::diagnostics::source_text;
use proc_macro2::Span;
use quote::ToTokens;
use syn::visit::{Visit, visit_block, visit_expr_call};
use syn::{Block, Expr, ExprCall, FnArg, Ident, Item, ItemUse, Local, PatIdent, PathArguments, Signature};

/// A path that a body calls.
#[derive(Clone)]
pub struct CalleePath {
    /// As written, without generic arguments; for an imported name, the path of its import.
    pub path: syn::Path,
    /// The same as text, which identifies the callee.
    pub text: String,
    /// The `(` of the first call: the span of everything generated for the callee.
    pub span: Span,
}

/// The callees of a body, each once, and the imports inside it.
pub fn find(signature: &Signature, body: &Block) -> (Vec<CalleePath>, Vec<ItemUse>) {
    let mut finder = Finder { callees: vec![], imports: vec![], items: vec![], locals: vec![] };
    for input in &signature.inputs {
        if let FnArg::Typed(input) = input {
            finder.visit_pat(&input.pat);
        }
    }
    finder.visit_block(body);
    let Finder { mut callees, imports, items, .. } = finder;
    let names: Vec<String> = imports.iter().map(|import| import.tree.to_token_stream().to_string()).collect();
    for callee in &mut callees {
        let Some(name) = callee.path.get_ident() else { continue };
        let is_of_body = items.contains(name) || names.iter().any(|names| names.contains(&name.to_string()));
        // With the path of the import, a function without a companion gets our own message.
        if let Some(path) = import_of(&signature.ident, name).filter(|_| !is_of_body) {
            callee.path = path;
        }
    }
    (callees, imports)
}

/// The function that a call names, if it looks like one: `dense`, `layers::dense`, but not `Tensor::zeros` or `Some`.
pub fn callee_of(call: &ExprCall) -> Option<syn::Path> {
    let Expr::Path(function) = &*call.func else { return None };
    if function.qself.is_some() {
        return None;
    }
    let mut path = function.path.clone();
    // The placeholder for a body that could not be read.
    if path.segments.iter().any(|segment| segment.ident == "__private") {
        return None;
    }
    let is_lower = |ident: &syn::Ident| !ident.to_string().starts_with(char::is_uppercase);
    if !path.segments.iter().rev().take(2).all(|segment| is_lower(&segment.ident)) {
        return None;
    }
    // `f32::sqrt(2.0)`
    if path
        .segments
        .iter()
        .rev()
        .nth(1)
        .is_some_and(|ty| tinyspec_ir::DType::from_name(&ty.ident.to_string()).is_some())
    {
        return None;
    }
    // Options end with `..default()`; `stepped(.., 2)` selects a part of a tensor.
    if path.segments.last()?.ident == "default" || path.segments.last()?.ident == "stepped" {
        return None;
    }
    path.segments.iter_mut().for_each(|segment| segment.arguments = PathArguments::None);
    Some(path)
}

struct Finder {
    callees: Vec<CalleePath>,
    imports: Vec<ItemUse>,
    /// Functions inside the body.
    items: Vec<Ident>,
    /// Names bound so far: a call of one is not a call of a function.
    locals: Vec<Ident>,
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Some(path) = callee_of(call) {
            let text = source_text(&path);
            let is_local = path.get_ident().is_some_and(|name| self.locals.contains(name));
            if !is_local && self.callees.iter().all(|known| known.text != text) {
                self.callees.push(CalleePath { path, text, span: open_span(&call.paren_token) });
            }
        }
        visit_expr_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        ungroup::elements(call).iter().flatten().for_each(|element| self.visit_expr(&element.clone()));
    }

    fn visit_local(&mut self, local: &'ast Local) {
        // `let dense = dense(x, w)` calls the function.
        if let Some(init) = &local.init {
            self.visit_expr(&init.expr);
        }
        self.visit_pat(&local.pat);
    }

    fn visit_block(&mut self, block: &'ast Block) {
        let known = self.locals.len();
        visit_block(self, block);
        self.locals.truncate(known);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        self.locals.push(pattern.ident.clone());
    }

    fn visit_item(&mut self, item: &'ast Item) {
        // Other items in the body have their own scope.
        match item {
            Item::Use(import) => self.imports.push(import.clone()),
            Item::Fn(function) => self.items.push(function.sig.ident.clone()),
            _ => {}
        }
    }
}
