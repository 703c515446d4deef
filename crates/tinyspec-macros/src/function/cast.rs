//! `x.cast::<f32>()`, which is `x.cast(DType::F32)`: a method cannot have both spellings in Rust, a body can.

use super::signature::TypeReader;
use super::{local_macros, ungroup};
use crate::diagnostics::Diagnostics;
use quote::format_ident;
use syn::visit_mut::{VisitMut, visit_expr_method_call_mut};
use syn::{Block, Expr, ExprMethodCall, GenericArgument, Type, parse_quote};

/// Expands the body's own macros and gives casts one spelling. A type that is not a dtype is reported.
pub fn in_one_spelling(body: &mut Block, diagnostics: &mut Diagnostics) {
    local_macros::expand(body, diagnostics);
    Casts { diagnostics }.visit_block_mut(body);
}

struct Casts<'a> {
    diagnostics: &'a mut Diagnostics,
}

impl VisitMut for Casts<'_> {
    fn visit_macro_mut(&mut self, call: &mut syn::Macro) {
        ungroup::visit_elements(call, |element| self.visit_expr_mut(element));
    }

    fn visit_expr_method_call_mut(&mut self, call: &mut ExprMethodCall) {
        visit_expr_method_call_mut(self, call);
        if call.method != "cast" || !call.args.is_empty() {
            return;
        }
        let Some(GenericArgument::Type(Type::Path(path))) =
            call.turbofish.as_ref().filter(|types| types.args.len() == 1).and_then(|types| types.args.first())
        else {
            return;
        };
        let mut reader = TypeReader {
            owner: String::new(),
            parameters: &[],
            names: vec![],
            constants: &mut Default::default(),
            diagnostics: self.diagnostics,
        };
        let dtype = reader.dtype(&path.path);
        let dtype = format_ident!("{}", dtype.map_or("F32".to_string(), |dtype| format!("{dtype:?}")));
        let argument: Expr = parse_quote!(::tinyspec::DType::#dtype);
        call.args.push(argument);
        call.turbofish = None;
    }
}
