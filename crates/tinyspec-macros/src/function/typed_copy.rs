//! The typed copy: the user's body as ordinary Rust over run-time tensors. rustc checks its names and types, editors
//! complete in it, and tests run it to compare its graph with the embedded one.
//!
//! Run over placeholders it must give the embedded graph, node for node (`EmbeddedFunction::retrace`). Expressions that
//! the macro has refused are left out, so that no mistake is reported twice. rustc therefore gets the copy that the last
//! expansion emits, where all types are known. Editors get a function with the user's own parameters, which the first
//! expansion emits even if a callee is not found.

use super::signature::without_arguments;
use super::trace::names_of;
use crate::diagnostics::{Adaptation, Diagnostics};
use crate::editor;
use crate::function::{attributes, ungroup};
use quote::quote;
use syn::visit_mut::{
    VisitMut, visit_block_mut, visit_expr_call_mut, visit_expr_method_call_mut, visit_expr_mut, visit_type_mut,
};
use syn::{Block, Expr, ExprCall, ExprMethodCall, PathArguments, Stmt, Type, parse_quote};
use tinyspec_ir::ops::{METHODS, ParamKind};

/// `body` as plain Rust: tensor types without dims, sizes in shapes as dims, and without what the macro has refused.
pub fn typed_copy(body: &Block, diagnostics: &Diagnostics) -> Block {
    let mut copy = body.clone();
    Copier { diagnostics }.visit_block_mut(&mut copy);
    // A placeholder for results that the macro has reported missing.
    let results = || Stmt::Expr(parse_quote!(::tinyspec::__private::wrong_results()), None);
    match body.stmts.last() {
        Some(Stmt::Expr(last, None)) if diagnostics.is_left_out(last) => {
            copy.stmts.pop();
            copy.stmts.push(results());
        }
        Some(Stmt::Expr(_, None)) => {}
        _ => copy.stmts.push(results()),
    }
    copy
}

struct Copier<'a> {
    diagnostics: &'a Diagnostics,
}

impl Copier<'_> {
    /// A `let` with a mistake still binds its names.
    fn statement(&self, statement: Stmt) -> Vec<Stmt> {
        match statement {
            Stmt::Local(local) if self.diagnostics.is_left_out(&local) => names_of(&local.pat)
                .into_iter()
                .map(|name| parse_quote!(let mut #name = ::tinyspec::__private::wrong();))
                .collect(),
            other => vec![other],
        }
    }
}

impl VisitMut for Copier<'_> {
    fn visit_block_mut(&mut self, block: &mut Block) {
        block
            .stmts
            .retain(|statement| !matches!(statement, Stmt::Macro(_)) || !self.diagnostics.is_left_out(statement));
        block.stmts =
            std::mem::take(&mut block.stmts).into_iter().flat_map(|statement| self.statement(statement)).collect();
        let last = block.stmts.len().saturating_sub(1);
        for (position, statement) in block.stmts.iter_mut().enumerate() {
            let Stmt::Expr(expression, None) = statement else { continue };
            if self.diagnostics.is_left_out(expression) {
                if is_statement(expression) {
                    *statement = parse_quote!(::core::unreachable!(););
                } else if position != last {
                    *statement = parse_quote!(::tinyspec::__private::wrong(););
                }
            }
        }
        visit_block_mut(self, block);
    }

    fn visit_attributes_mut(&mut self, attributes: &mut Vec<syn::Attribute>) {
        // The others are refused.
        attributes.retain(attributes::is_harmless);
    }

    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        if self.diagnostics.is_left_out(expression) {
            // A statement may have any type; a value is replaced by a tensor.
            *expression = if is_statement(expression) {
                parse_quote!(::core::unreachable!())
            } else {
                parse_quote!(::tinyspec::__private::wrong())
            };
            return;
        }
        if let Expr::Path(path) = expression
            && path.path.is_ident("self")
        {
            if editor::is_asking() {
                return;
            }
            // The copy of a method is a function.
            let this = quote::format_ident!("__self", span = syn::spanned::Spanned::span(path));
            *expression = parse_quote!(#this);
            return;
        }
        let adaptation = self.diagnostics.adaptation(expression);
        visit_expr_mut(self, expression);
        match (adaptation, &*expression) {
            (Some(Adaptation::SizeAs(dtype)), Expr::Cast(cast)) => {
                let (size, dtype) = (&cast.expr, quote::format_ident!("{dtype:?}"));
                *expression = parse_quote!(::tinyspec::__private::size_as(&#size, ::tinyspec::DType::#dtype));
            }
            (Some(Adaptation::Size), written) => {
                let size = if let Expr::Cast(cast) = written { &*cast.expr } else { written };
                *expression = parse_quote!(::tinyspec::__private::size(&(#size)));
            }
            (Some(Adaptation::Array(length)), list) => {
                *expression = parse_quote!(::tinyspec::__private::array::<#length, _>(#list));
            }
            (Some(Adaptation::Whole), written) => {
                *expression = parse_quote!(::tinyspec::__private::whole(#written));
            }
            (Some(Adaptation::Left), number) => {
                *expression = parse_quote!(::tinyspec::__private::Left(#number));
            }
            (Some(Adaptation::Sizes), _) => {
                if let Expr::Array(array) = expression {
                    for element in &mut array.elems {
                        *element = parse_quote!(&::tinyspec::__private::size(&(#element)));
                    }
                }
            }
            (Some(Adaptation::State), statement) => {
                let target = match statement {
                    Expr::Assign(assign) => Some(&assign.left),
                    Expr::Binary(binary) => Some(&binary.left),
                    Expr::MethodCall(call) => Some(&call.receiver),
                    _ => None,
                };
                if let Some(target) = target {
                    *expression = parse_quote!({
                        #statement;
                        use ::tinyspec::__private::Buffer as _;
                        (#target).without_gradient();
                    });
                }
            }
            _ => {}
        }
    }

    fn visit_macro_mut(&mut self, call: &mut syn::Macro) {
        ungroup::visit_elements(call, |element| self.visit_expr_mut(element));
    }

    fn visit_type_mut(&mut self, ty: &mut Type) {
        if let Type::Path(path) = ty
            && let Some(last) = path.path.segments.last()
            && last.ident == "Tensor"
            && matches!(last.arguments, PathArguments::AngleBracketed(_))
        {
            let plain = without_arguments(ty);
            *ty = parse_quote!(#plain);
            return;
        }
        visit_type_mut(self, ty);
    }

    fn visit_expr_method_call_mut(&mut self, call: &mut ExprMethodCall) {
        visit_expr_method_call_mut(self, call);
        if let Some(row) = METHODS.iter().find(|row| call.method == row.name) {
            let kinds = row.params.iter().skip(1).map(|(_, kind)| *kind);
            kinds.zip(&mut call.args).for_each(|(kind, argument)| dims(kind, argument));
        }
    }

    fn visit_expr_call_mut(&mut self, call: &mut ExprCall) {
        visit_expr_call_mut(self, call);
        let Expr::Path(function) = &*call.func else { return };
        let segments = &function.path.segments;
        let Some(last) =
            segments.last().filter(|_| segments.len() >= 2 && segments[segments.len() - 2].ident == "Tensor")
        else {
            return;
        };
        // The first argument of the functions that create tensors is a shape; rows of the method table say so
        // themselves.
        let by_hand = matches!(last.ident.to_string().as_str(), "zeros" | "ones" | "full" | "full_of");
        let row = METHODS.iter().find(|row| last.ident == row.name);
        if let ("arange", [count]) = (&*last.ident.to_string(), &mut *call.args.iter_mut().collect::<Vec<_>>()) {
            size(count);
        }
        for (position, argument) in call.args.iter_mut().enumerate() {
            let param = row.and_then(|row| row.params.get(position));
            match param {
                _ if by_hand && position == 0 => sizes(argument),
                Some(&(_, kind)) => dims(kind, argument),
                None => {}
            }
        }
    }
}

/// Whether the expression has no useful value.
fn is_statement(expression: &Expr) -> bool {
    match expression {
        Expr::While(_) | Expr::Loop(_) | Expr::ForLoop(_) | Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => {
            true
        }
        Expr::Assign(_) => true,
        Expr::Binary(binary) => is_assignment(&binary.op),
        Expr::If(branch) => branch.else_branch.is_none(),
        _ => false,
    }
}

fn is_assignment(op: &syn::BinOp) -> bool {
    use syn::BinOp::*;
    matches!(
        op,
        AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | BitXorAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}

/// Sizes in an argument of this kind.
fn dims(kind: ParamKind, argument: &mut Expr) {
    match kind {
        ParamKind::shape => sizes(argument),
        ParamKind::size => size(argument),
        _ => {}
    }
}

fn size(size: &mut Expr) {
    let inner = quote!(#size);
    *size = parse_quote!(::tinyspec::__private::size(&(#inner)));
}

/// In `[B, 64]` all elements have one type once each is a dim.
fn sizes(shape: &mut Expr) {
    match shape {
        Expr::Array(array) => {
            array.elems.iter_mut().for_each(size);
        }
        Expr::Macro(list) => ungroup::visit_elements(&mut list.mac, size),
        Expr::Reference(reference) => sizes(&mut reference.expr),
        Expr::Paren(inner) => sizes(&mut inner.expr),
        _ => {}
    }
}
