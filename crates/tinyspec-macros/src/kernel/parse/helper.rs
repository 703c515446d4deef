//! Functions that kernels call: `fn dot(a: &Global<f32, K>, b: &Global<f32, K>) -> f32 { … }`.

use super::expression::{binary_op, expression};
use super::split::{at_commas, body_of};
use super::{buffer_type, dim_in_braces, dims, dtype_of, end, mend, parsed, statement};
use crate::diagnostics::{Diagnostics, Place as At};
use crate::kernel::syntax::*;
use crate::kernel::trace::is_known;
use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Token;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use tinyspec_ir::AddrSpace;

const FORM: &str = "expected a function: `fn square(x: f32) -> f32 { x * x }`";

const PARAMETER: &str =
    "a function of kernels takes numbers such as `f32` or `usize`, and buffers such as `&Global<f32, N>`";

/// A function of numbers and buffers. With a name it can be called, whatever else is wrong.
pub fn helper(tokens: TokenStream, diagnostics: &mut Diagnostics) -> Option<Helper> {
    let end = end(&tokens, proc_macro2::Span::call_site());
    let mut own = Diagnostics::default();
    let mut helper = parsed(tokens, end, &mut own, head).flatten();
    if let Some(helper) = &mut helper {
        helper.is_refused = !own.is_empty();
    }
    diagnostics.extend(own);
    helper
}

/// The functions defined among the statements of a kernel.
pub fn inside(list: &[syn::Stmt], diagnostics: &mut Diagnostics) -> Vec<Helper> {
    let functions = list.iter().filter_map(|statement| match statement {
        syn::Stmt::Item(syn::Item::Fn(function)) => Some(function.to_token_stream()),
        _ => None,
    });
    functions.filter_map(|tokens| helper(tokens, diagnostics)).collect()
}

fn head(input: ParseStream, diagnostics: &mut Diagnostics) -> syn::Result<Option<Helper>> {
    let mut attributes = input.call(syn::Attribute::parse_outer)?;
    let mut dims = dims(input, diagnostics)?;
    attributes.extend(input.call(syn::Attribute::parse_outer)?);
    attributes.iter().for_each(|attribute| statement::refuse_attribute(attribute, diagnostics));
    if let visibility @ (syn::Visibility::Public(_) | syn::Visibility::Restricted(_)) = input.parse()? {
        let message = "a function of kernels belongs to its own `uop!`: leave out `pub`";
        diagnostics.error(At::of(&visibility), message);
    }
    input.parse::<Token![fn]>()?;
    let name = input.call(Ident::parse_any)?;
    if is_known(&name.to_string()) {
        diagnostics.error(name.span(), format!("`{name}` is a function that every kernel has: choose another name"));
    }
    dims.extend(self::dims(input, diagnostics)?);
    let list: Group = input.parse()?;
    let read = |tokens| parameter(tokens, &list, diagnostics);
    let parameters: Vec<Option<HelperParameter>> = at_commas(list.stream()).into_iter().map(read).collect();
    let rest: Vec<TokenTree> = input.parse::<TokenStream>()?.into_iter().collect();
    let body = body_of(&rest);
    let (written, body) = rest.split_at(body.unwrap_or(rest.len()));
    let result = result(written, &name, diagnostics);
    let Some(TokenTree::Group(body)) = body.first() else {
        diagnostics.error(name.span(), FORM);
        return Ok(None);
    };
    let at = At::between(body.span_open(), body.span_close());
    let statements = mend::statements(body, diagnostics);
    let (value, statements) = match (statements.as_slice(), result) {
        (_, Some(None)) => (None, statements),
        ([before @ .., syn::Stmt::Expr(last, semicolon)], _) if semicolon.is_none() || is_value(last) => {
            if let Some(semicolon) = semicolon {
                let message = format!("`{name}` has a value: end it with an expression, without a `;`");
                diagnostics.error(At::of(semicolon), message);
            }
            // Without a result, its mistake is reported already.
            let value = result.and_then(|_| expression(last, diagnostics));
            (value, before.to_vec())
        }
        _ => {
            let message = format!("`{name}` has a value: end it with an expression, without a `;`");
            diagnostics.error(body.span_close(), message);
            (None, statements)
        }
    };
    let body = Block { statements: statement::body(&statements, diagnostics), at };
    let is_refused = false;
    let parameters = parameters.into_iter().flatten().collect();
    Ok(Some(Helper { name, dims, parameters, result: result.flatten(), body, value, is_refused }))
}

/// Whether this is an expression for its value.
fn is_value(expr: &syn::Expr) -> bool {
    !matches!(expr, syn::Expr::ForLoop(_) | syn::Expr::Assign(_) | syn::Expr::Return(_) | syn::Expr::While(_))
        && !matches!(expr, syn::Expr::Binary(binary) if binary_op(&binary.op).is_some_and(|(_, assigns)| assigns))
}

/// The dtype behind the arrow, `Some(None)` for `()`; `None` after a reported mistake.
fn result(
    written: &[TokenTree],
    name: &Ident,
    diagnostics: &mut Diagnostics,
) -> Option<Option<(tinyspec_ir::DType, At)>> {
    match written {
        [] => Some(None),
        [_, _, TokenTree::Group(nothing)] if nothing.delimiter() == Delimiter::Parenthesis => Some(None),
        [_, _, dtype @ ..] => {
            let tokens: TokenStream = dtype.iter().cloned().collect();
            let at = At::of(&tokens);
            let dtype = syn::parse2::<syn::Type>(tokens).ok().and_then(|written| dtype_of(&written));
            if dtype.is_none() {
                diagnostics.error(at, format!("the value of `{name}` is a number, such as `f32` or `usize`, or `()`"));
            }
            dtype.map(|dtype| Some((dtype, at)))
        }
        [other] => {
            diagnostics.error(other.span(), FORM);
            None
        }
    }
}

fn parameter(tokens: TokenStream, list: &Group, diagnostics: &mut Diagnostics) -> Option<HelperParameter> {
    let end = end(&tokens, list.span_close());
    let parser = |input: ParseStream, diagnostics: &mut Diagnostics| {
        let name = input.call(Ident::parse_any)?;
        input.parse::<Token![:]>()?;
        let written = input.parse::<syn::Type>().map_err(|error| dim_in_braces(&tokens).unwrap_or(error))?;
        Ok(typed(name, &written, diagnostics))
    };
    parsed(tokens.clone(), end, diagnostics, parser).flatten()
}

fn typed(name: Ident, written: &syn::Type, diagnostics: &mut Diagnostics) -> Option<HelperParameter> {
    let at = At::of(written);
    if let syn::Type::Reference(reference) = written {
        let (space, dtype, dims) = buffer_type(&reference.elem, diagnostics)?;
        let space = match space {
            "Local" => AddrSpace::Local,
            "Reg" => AddrSpace::Reg,
            _ => AddrSpace::Global,
        };
        let buffer = Some(PassedBuffer { space, mutable: reference.mutability.is_some(), dims });
        return Some(HelperParameter { name, at, dtype, buffer });
    }
    match dtype_of(written) {
        Some(dtype) => Some(HelperParameter { name, at, dtype, buffer: None }),
        None => {
            diagnostics.error(at, PARAMETER);
            None
        }
    }
}
