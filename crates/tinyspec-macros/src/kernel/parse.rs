//! Tokens of `uop!` → [`syntax`](super::syntax). What Rust's grammar has and kernels have not is refused with a sentence.

mod brackets;
mod expression;
mod statement;

use super::syntax::*;
use crate::diagnostics::{Diagnostics, Place as At};
use proc_macro2::{Ident, TokenStream};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Token, braced, parenthesized, token};
use tinyspec_ir::DType;

/// All kernels of one `uop!`.
pub fn kernels(tokens: TokenStream, diagnostics: &mut Diagnostics) -> Vec<Kernel> {
    let tokens = brackets::join(tokens);
    let parser = |input: ParseStream| {
        let mut kernels = Vec::new();
        while !input.is_empty() {
            kernels.push(kernel(input, diagnostics)?);
        }
        Ok(kernels)
    };
    match parser.parse2(tokens) {
        Ok(kernels) => kernels,
        Err(error) => {
            diagnostics.syntax(error);
            vec![]
        }
    }
}

fn kernel(input: ParseStream, diagnostics: &mut Diagnostics) -> syn::Result<Kernel> {
    let mut attributes = input.call(syn::Attribute::parse_outer)?;
    let mut dims = Vec::new();
    if input.peek(Token![<]) {
        input.parse::<Token![<]>()?;
        while !input.peek(Token![>]) {
            dims.push(input.parse::<Ident>()?);
            if !input.peek(Token![>]) {
                input.parse::<Token![,]>()?;
            }
        }
        input.parse::<Token![>]>()?;
    }
    attributes.extend(input.call(syn::Attribute::parse_outer)?);
    let visibility = input.parse()?;
    if !input.peek(Token![fn]) {
        return Err(input.error("expected a kernel: `<N> pub fn name(y: &mut Global<f32, N>, …) { … }`"));
    }
    input.parse::<Token![fn]>()?;
    let name = input.call(Ident::parse_any)?;
    if input.peek(Token![<]) {
        return Err(input.error("the dims of a kernel are named before `fn`: `uop! { <M, N> pub fn … }`"));
    }
    let content;
    parenthesized!(content in input);
    let (mut parameters, mut refused) = (Vec::new(), Vec::new());
    while !content.is_empty() {
        let name = content.call(Ident::parse_any)?;
        content.parse::<Token![:]>()?;
        let written: syn::Type = content.parse()?;
        match parameter(name.clone(), &written, diagnostics) {
            Some(parameter) => parameters.push(parameter),
            None => refused.push(name),
        }
        if !content.is_empty() {
            content.parse::<Token![,]>()?;
        }
    }
    if input.peek(Token![->]) {
        input.parse::<Token![->]>()?;
        if input.peek(token::Paren) {
            let content;
            parenthesized!(content in input);
            while !content.is_empty() {
                parameters.extend(result(&content, diagnostics)?);
                if !content.is_empty() {
                    content.parse::<Token![,]>()?;
                }
            }
        } else {
            parameters.extend(result(input, diagnostics)?);
        }
    }
    let content;
    let brace = braced!(content in input);
    let statements = content.call(syn::Block::parse_within)?;
    let at = At::from(brace.span.open()).to(brace.span.close().into());
    let body = Block { statements: statement::statements(statements, diagnostics), at };
    let gradient = gradient(&mut attributes, diagnostics);
    Ok(Kernel { attributes, gradient, visibility, name, dims, parameters, refused, body })
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

/// `Global<f32, N> as y`.
fn result(input: ParseStream, diagnostics: &mut Diagnostics) -> syn::Result<Option<Parameter>> {
    let written: syn::Type = input.parse()?;
    if !input.peek(Token![as]) {
        let message = "a result needs a name to store to: `-> Global<f32, N> as out`";
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
}

fn parameter(name: Ident, written: &syn::Type, diagnostics: &mut Diagnostics) -> Option<Parameter> {
    let at = At::of(written);
    if let syn::Type::Reference(reference) = written {
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
    if let Some(dtype) = dtype_of(written) {
        return Some(Parameter { name, at, dtype, kind: ParameterKind::Scalar });
    }
    let message = "a parameter is `&Global<dtype, dims…>`, `&mut Global<dtype, dims…>` or a scalar such as `f32`";
    diagnostics.error(at, message);
    None
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
                diagnostics.error(At::of(first), format!("`{found}` is no dtype; there are {}", known.join(", ")));
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
