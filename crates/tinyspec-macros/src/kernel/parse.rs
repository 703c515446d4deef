//! Parses the tokens of `uop!` into [`syntax`](super::syntax). Rust that kernels do not have is refused with an
//! explanation.

mod at_most;
mod brackets;
mod dtypes;
mod expression;
mod helper;
mod mend;
mod split;
mod statement;

use super::emit::rust_type;
use super::syntax::*;
use crate::diagnostics::{Diagnostics, Place as At};
use crate::documentation;
pub use dtypes::{Variant, head as generic_head, variants};
pub use expression::NO_REFERENCES;
pub use helper::helper;
use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use split::{at_commas, body_of};
pub use split::{is_helper, kernels};
pub use statement::NOT_USED;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Token, token};
use tinyspec_ir::DType;

const FORM: &str = "expected a kernel: `<N> pub fn name(y: &mut Global<f32, N>, …) { … }`";

const PARAMETER: &str = "a parameter is `&Global<dtype, dims…>`, `&mut Global<dtype, dims…>` or a scalar such as `f32`";

/// One kernel of a `uop!`. With a name there is always something to call, whatever else is wrong; `None` without a
/// name.
pub fn kernel(tokens: TokenStream, diagnostics: &mut Diagnostics) -> Option<Kernel> {
    let end = end(&tokens, Span::call_site());
    parsed(tokens, end, diagnostics, head).flatten()
}

/// The span for a mistake at the end of these tokens.
fn end(tokens: &TokenStream, without: Span) -> Span {
    tokens.clone().into_iter().last().map_or(without, |last| last.span())
}

/// Parses all of `tokens`. A missing token is reported at `end`, since syn has no location for it.
fn parsed<T>(
    tokens: TokenStream,
    end: Span,
    diagnostics: &mut Diagnostics,
    parser: impl FnOnce(ParseStream, &mut Diagnostics) -> syn::Result<T>,
) -> Option<T> {
    match (|input: ParseStream| parser(input, diagnostics)).parse2(tokens) {
        Ok(parsed) => Some(parsed),
        Err(error) => {
            let everything = Span::call_site();
            for error in error {
                let span = error.span();
                let is_end = (span.start(), span.end()) == (everything.start(), everything.end());
                diagnostics.error(if is_end { end } else { span }, error.to_string());
            }
            None
        }
    }
}

fn head(input: ParseStream, diagnostics: &mut Diagnostics) -> syn::Result<Option<Kernel>> {
    let mut attributes = input.call(syn::Attribute::parse_outer)?;
    let mut dims = dims(input, diagnostics)?;
    attributes.extend(input.call(syn::Attribute::parse_outer)?);
    let visibility = input.parse()?;
    if !input.peek(Token![fn]) {
        diagnostics.error(input.span(), FORM);
        input.parse::<TokenStream>()?;
        return Ok(None);
    }
    input.parse::<Token![fn]>()?;
    let name = input.call(Ident::parse_any)?;
    if input.peek(Token![<]) {
        diagnostics.error(input.span(), "the dims of a kernel are named before `fn`: `uop! { <M, N> pub fn … }`");
        dims.extend(self::dims(input, diagnostics)?);
    }
    let (mut parameters, mut inputs, mut helpers) = (Vec::new(), vec![], vec![]);
    if input.peek(token::Paren) {
        let list: proc_macro2::Group = input.parse()?;
        inputs = at_commas(list.stream());
        for tokens in inputs.iter().cloned() {
            parameters.push(parameter(tokens, list.span_close(), diagnostics));
        }
    } else {
        diagnostics.error(if input.is_empty() { name.span() } else { input.span() }, FORM);
    }
    let rest: Vec<TokenTree> = input.parse::<TokenStream>()?.into_iter().collect();
    let body = body_of(&rest);
    let results = &rest[..body.unwrap_or(rest.len())];
    let end = results.last().map_or(name.span(), |last| last.span());
    let written = documentation::of_kernel(&dims, &name, &inputs, &results.iter().cloned().collect());
    match results {
        [] => {}
        [TokenTree::Punct(minus), TokenTree::Punct(arrow), results @ ..]
            if (minus.as_char(), arrow.as_char()) == ('-', '>') =>
        {
            let results = match results {
                [TokenTree::Group(list)] if list.delimiter() == Delimiter::Parenthesis => at_commas(list.stream()),
                one => vec![one.iter().cloned().collect()],
            };
            parameters.extend(results.into_iter().map(|tokens| result(tokens, end, diagnostics)));
        }
        [other, ..] => diagnostics.error(other.span(), FORM),
    }
    let body = match body.map(|body| rest.split_at(body).1) {
        Some([TokenTree::Group(body), behind @ ..]) => {
            if let Some(token) = behind.first() {
                diagnostics.error(token.span(), FORM);
            }
            let at = At::between(body.span_open(), body.span_close());
            let statements = mend::statements(body, diagnostics);
            helpers.extend(helper::inside(&statements, diagnostics));
            Some(Block { statements: statement::body(&statements, diagnostics), at })
        }
        _ => {
            diagnostics.error(end, "a kernel has a body: `fn name(…) { for i in global(N) { … } }`");
            None
        }
    };
    let gradient = gradient(&mut attributes, diagnostics);
    Ok(Some(Kernel { helpers, attributes, gradient, visibility, name, dims, parameters, written, body }))
}

/// `<M, N>`, if it is there.
fn dims(input: ParseStream, diagnostics: &mut Diagnostics) -> syn::Result<Vec<Ident>> {
    let mut dims = Vec::new();
    if !input.peek(Token![<]) {
        return Ok(dims);
    }
    input.parse::<Token![<]>()?;
    while !input.is_empty() && !input.peek(Token![>]) {
        match input.parse::<TokenTree>()? {
            TokenTree::Ident(name) => dims.push(name),
            other => {
                diagnostics.error(other.span(), "a dim of a kernel is a name: `<M, N>`");
                continue;
            }
        }
        if !input.peek(Token![>]) {
            input.parse::<Token![,]>()?;
        }
    }
    input.parse::<Token![>]>()?;
    Ok(dims)
}

/// `#[gradient(path)]`, taken out of the attributes.
fn gradient(attributes: &mut Vec<syn::Attribute>, diagnostics: &mut Diagnostics) -> Option<syn::Path> {
    let mut path = None;
    attributes.retain(|attribute| {
        if !attribute.path().is_ident("gradient") {
            return true;
        }
        match attribute.parse_args() {
            Ok(parsed) => path = Some(parsed),
            Err(_) => diagnostics.error(At::of(attribute), "expected the path of a #[function]: `#[gradient(path)]`"),
        }
        false
    });
    path
}

/// A parameter or result that could not be read; it is still one.
fn refused(tokens: TokenStream, end: Span, is_result: bool) -> Parameter {
    let mut tokens = tokens.into_iter();
    if is_result {
        // The name follows `as`.
        tokens.find(|token| matches!(token, TokenTree::Ident(word) if word == "as"));
    }
    let name = match tokens.next() {
        Some(TokenTree::Ident(name)) => name,
        _ => Ident::new("_", end),
    };
    let kind = if is_result { ParameterKind::RefusedResult } else { ParameterKind::Refused };
    Parameter { name, at: end.into(), dtype: DType::Void, kind }
}

/// The error for `Global<f32, N / 2>`, where Rust parses a type up to the operator.
fn dim_in_braces(tokens: &TokenStream) -> Option<syn::Error> {
    let sign = tokens
        .clone()
        .into_iter()
        .find(|token| matches!(token, TokenTree::Punct(sign) if matches!(sign.as_char(), '/' | '+' | '*' | '%')))?;
    Some(syn::Error::new(sign.span(), "a dim that is computed stands in braces, as in `Global<f32, { N / 2 }>`"))
}

/// `Global<f32, N> as y`.
fn result(tokens: TokenStream, end: Span, diagnostics: &mut Diagnostics) -> Parameter {
    let parser = |input: ParseStream, diagnostics: &mut Diagnostics| {
        let written = input.parse::<syn::Type>().map_err(|error| dim_in_braces(&tokens).unwrap_or(error))?;
        if !input.peek(Token![as]) {
            let message = match dtype_of(&written) {
                Some(dtype) => format!(
                    "a kernel has no value, it writes to buffers: `-> Global<{dtype}, 1> as out`, and `out[0] = …;` in the body"
                ),
                None => "a result needs a name to store to: `-> Global<f32, N> as out`".to_string(),
            };
            return Err(syn::Error::new_spanned(&written, message));
        }
        input.parse::<Token![as]>()?;
        let name = input.call(Ident::parse_any)?;
        let at = At::of(&written);
        Ok(match buffer_type(&written, diagnostics) {
            Some(("Global", dtype, dims)) => Some(Parameter { name, at, dtype, kind: ParameterKind::Result(dims) }),
            Some((space, ..)) => {
                diagnostics.error(at, format!("a result is a `Global` buffer, found `{space}`"));
                None
            }
            None => None,
        })
    };
    let end = self::end(&tokens, end);
    let parsed = parsed(tokens.clone(), end, diagnostics, parser).flatten();
    parsed.unwrap_or_else(|| refused(tokens, end, true))
}

/// `x: &Global<f32, N>`.
fn parameter(tokens: TokenStream, end: Span, diagnostics: &mut Diagnostics) -> Parameter {
    let end = self::end(&tokens, end);
    let parser = |input: ParseStream, diagnostics: &mut Diagnostics| {
        for attribute in input.call(syn::Attribute::parse_outer)? {
            statement::refuse_attribute(&attribute, diagnostics);
        }
        let name = input.call(Ident::parse_any)?;
        input.parse::<Token![:]>()?;
        if input.is_empty() {
            diagnostics.error(end, PARAMETER);
            return Ok(None);
        }
        let written = input.parse::<syn::Type>().map_err(|error| dim_in_braces(&tokens).unwrap_or(error))?;
        Ok(typed(name, &written, diagnostics))
    };
    let parsed = parsed(tokens.clone(), end, diagnostics, parser).flatten();
    parsed.unwrap_or_else(|| refused(tokens, end, false))
}

fn typed(name: Ident, written: &syn::Type, diagnostics: &mut Diagnostics) -> Option<Parameter> {
    let at = At::of(written);
    if let syn::Type::Reference(reference) = written {
        if let Some(dtype) = dtype_of(&reference.elem).filter(|dtype| rust_type(*dtype).is_some()) {
            let message =
                format!("a number is passed by value: `{name}: {dtype}`; many of them are a `&Global<{dtype}, N>`");
            diagnostics.error(at, message);
            return None;
        }
        let (space, dtype, dims) = buffer_type(&reference.elem, diagnostics)?;
        if space != "Global" {
            let message =
                format!("a parameter is a `Global` buffer, found `{space}`: declare it in the body with `let`");
            diagnostics.error(at, message);
            return None;
        }
        let kind = match reference.mutability {
            Some(_) => ParameterKind::Updated(dims),
            None => ParameterKind::Input(dims),
        };
        return Some(Parameter { name, at, dtype, kind });
    }
    match dtype_of(written) {
        Some(DType::Index) => {
            let message = "a kernel cannot take `usize`: name a dim before `fn`, `<N>`, or pass an `i64` or `u32` and cast \
                           it with `as usize`";
            diagnostics.error(at, message);
            None
        }
        Some(dtype) if rust_type(dtype).is_none() => {
            let message = format!("{dtype} is not a Rust type: pass an f32 and cast it with `as {dtype}`");
            diagnostics.error(at, message);
            None
        }
        Some(dtype) => Some(Parameter { name, at, dtype, kind: ParameterKind::Scalar }),
        None => {
            diagnostics.error(at, PARAMETER);
            None
        }
    }
}

/// The dtype that a type names.
pub(super) fn dtype_of(written: &syn::Type) -> Option<DType> {
    let syn::Type::Path(path) = written else { return None };
    let name = path.path.get_ident()?.to_string();
    match name.as_str() {
        "usize" | "isize" => Some(DType::Index),
        "void" => None,
        _ => DType::from_name(&name),
    }
}

/// Address space, dtype and dims of `Global<f32, M, N>`, `Local<…>` or `Reg<…>`.
pub(super) fn buffer_type(
    written: &syn::Type,
    diagnostics: &mut Diagnostics,
) -> Option<(&'static str, DType, Vec<Expr>)> {
    let syn::Type::Path(path) = written else {
        diagnostics.error(At::of(written), "expected a buffer: `Global<f32, M, N>`");
        return None;
    };
    let segment = path.path.segments.last()?;
    let Some(space) = ["Global", "Local", "Reg"].into_iter().find(|space| segment.ident == space) else {
        let message = format!("expected a buffer, `Global`, `Local` or `Reg`, found `{}`", segment.ident);
        diagnostics.error(At::of(written), message);
        return None;
    };
    let syn::PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        diagnostics.error(At::of(written), format!("a buffer has a dtype and dims: `{space}<f32, M, N>`"));
        return None;
    };
    let mut arguments = arguments.args.iter();
    let dtype = match arguments.next() {
        Some(syn::GenericArgument::Type(first)) => match dtype_of(first) {
            Some(DType::Index) | None => {
                let known: Vec<&str> = DType::ALL[2..].iter().map(|dtype| dtype.name()).collect();
                let found = quote::quote!(#first);
                diagnostics
                    .error(At::of(first), format!("`{found}` is not a dtype; the dtypes are {}", known.join(", ")));
                return None;
            }
            Some(dtype) => dtype,
        },
        other => {
            let at = other.map_or(At::of(written), At::of);
            diagnostics.error(at, format!("the first argument is the dtype: `{space}<f32, M, N>`"));
            return None;
        }
    };
    let mut dims = Vec::new();
    for argument in arguments {
        let parsed = match argument {
            syn::GenericArgument::Const(value) => expression::expression(value, diagnostics),
            syn::GenericArgument::Type(syn::Type::Path(path)) => expression::path(&path.path),
            other => {
                diagnostics.error(At::of(other), "a dim is a number, a name, or `{ an expression }`");
                None
            }
        };
        dims.push(parsed?);
    }
    Some((space, dtype, dims))
}
