//! Removes the invisible groups in which `macro_rules!` wraps arguments for `$t:ty` or `$e:expr`, so that the code
//! reads as if written in place.

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::visit_mut::{VisitMut, visit_expr_mut, visit_type_mut};
use syn::{Expr, ExprParen, ItemFn, ItemImpl, ItemStruct, Macro, Token, Type};

/// Items whose invisible groups can be removed.
pub trait Item: syn::parse::Parse {
    /// Unwraps all groups in it.
    fn ungroup(&mut self);
}

impl Item for ItemFn {
    fn ungroup(&mut self) {
        Ungroup.visit_item_fn_mut(self);
    }
}

impl Item for ItemImpl {
    fn ungroup(&mut self) {
        Ungroup.visit_item_impl_mut(self);
    }
}

impl Item for ItemStruct {
    fn ungroup(&mut self) {
        Ungroup.visit_item_struct_mut(self);
    }
}

/// The item.
///
/// # Errors
/// As syn.
pub fn parse<T: Item>(tokens: TokenStream) -> syn::Result<T> {
    let mut item: T = syn::parse2(tokens)?;
    item.ungroup();
    Ok(item)
}

/// Unwraps all groups in an expression.
pub fn expression(expression: &mut Expr) {
    Ungroup.visit_expr_mut(expression);
}

/// The elements of `vec![a, b]`, which are ordinary code; `None` for other macros.
pub fn elements(call: &Macro) -> Option<Punctuated<Expr, Token![,]>> {
    let is_list = call.path.is_ident("vec");
    is_list.then(|| call.parse_body_with(Punctuated::parse_terminated).ok()).flatten()
}

/// The same, changed in place.
pub fn visit_elements(call: &mut Macro, mut visit: impl FnMut(&mut Expr)) {
    if let Some(mut elements) = elements(call) {
        elements.iter_mut().for_each(&mut visit);
        call.tokens = elements.into_token_stream();
    }
}

/// Unwraps types and expressions; an expression that is not one operand, such as `2.0 + 1.0`, gets parentheses.
struct Ungroup;

impl VisitMut for Ungroup {
    fn visit_ident_mut(&mut self, ident: &mut Ident) {
        // `r#x` is `x`; a keyword stays what it is.
        let word = ident.unraw();
        if word != *ident && syn::parse2::<Ident>(word.to_token_stream()).is_ok() {
            *ident = word;
        }
    }

    fn visit_type_mut(&mut self, ty: &mut Type) {
        while let Type::Group(group) = ty {
            *ty = std::mem::replace(&mut *group.elem, Type::Verbatim(Default::default()));
        }
        visit_type_mut(self, ty);
    }

    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        while let Expr::Group(group) = expression {
            let inner = std::mem::replace(&mut *group.expr, Expr::Verbatim(Default::default()));
            *expression = if is_one_operand(&inner) {
                inner
            } else {
                let paren_token = syn::token::Paren(group.group_token.span);
                Expr::Paren(ExprParen { attrs: vec![], paren_token, expr: Box::new(inner) })
            };
        }
        visit_expr_mut(self, expression);
    }
}

fn is_one_operand(expression: &Expr) -> bool {
    matches!(
        expression,
        Expr::Group(_)
            | Expr::Path(_)
            | Expr::Lit(_)
            | Expr::Paren(_)
            | Expr::Call(_)
            | Expr::MethodCall(_)
            | Expr::Field(_)
            | Expr::Index(_)
            | Expr::Array(_)
            | Expr::Tuple(_)
            | Expr::Macro(_)
    )
}
