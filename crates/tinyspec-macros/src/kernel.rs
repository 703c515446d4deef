//! `uop!`: kernels written by hand, checked and traced while rustc compiles.

mod check;
mod emit;
pub mod parse;
mod syntax;
mod trace;

use crate::diagnostics::{Diagnostics, Place as At};
use crate::renamed;
use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::quote;
use std::collections::HashSet;
use syntax::{Helper, Kernel, Parameter, ParameterKind};
use tinyspec_ir::DType;
use trace::Traced;

/// The items of the kernels, and an error for each mistake. The input starts with the path of tinyspec in the kernel's
/// crate, in brackets.
pub fn expand(input: TokenStream) -> TokenStream {
    let mut input = input.into_iter();
    let Some(TokenTree::Group(root)) = input.next() else { return TokenStream::new() };
    renamed::under(Some(root.stream()), kernels(input.collect()))
}

fn kernels(input: TokenStream) -> TokenStream {
    let (helpers, kernels): (Vec<_>, Vec<_>) = parse::kernels(input).into_iter().partition(parse::is_helper);
    let mut reported = Diagnostics::default();
    let helpers = self::helpers(helpers, &mut reported);
    if kernels.is_empty()
        && let Some(helper) = helpers.first()
    {
        reported.error(helper.name.span(), no_kernel(&helper.name));
    }
    let mut items = reported.to_tokens();
    let mut called = HashSet::new();
    for tokens in kernels {
        items.extend(kernel(tokens, &helpers, &mut called, &mut reported));
    }
    for helper in helpers.iter().filter(|helper| !called.contains(&helper.name.to_string())) {
        let mut diagnostics = Diagnostics::default();
        trace::alone(helper, &helpers, &mut diagnostics);
        items.extend(diagnostics.besides(&reported).to_tokens());
        reported.extend(diagnostics);
    }
    items
}

/// The functions that stand beside the kernels of a `uop!`; one with dtype parameters has an entry for each dtype.
fn helpers(tokens: Vec<TokenStream>, diagnostics: &mut Diagnostics) -> Vec<Helper> {
    let mut helpers: Vec<Helper> = Vec::new();
    for tokens in tokens {
        let mut own: Vec<Helper> = Vec::new();
        for variant in parse::variants(tokens, diagnostics) {
            own.extend(parse::helper(variant.tokens, diagnostics));
        }
        let Some(name) = own.first().map(|helper| helper.name.clone()) else { continue };
        if helpers.iter().any(|other| other.name == name) {
            diagnostics.error(name.span(), format!("the function `{name}` is defined twice"));
        } else {
            helpers.extend(own);
        }
    }
    helpers
}

/// The message for a `uop!` without a kernel.
fn no_kernel(name: &Ident) -> String {
    format!(
        "`{name}` is a function for the kernels of its own `uop!`, and here is none\na kernel that is called from outside \
         writes to a `&mut Global<…>` or to a result, `-> Global<f32, 1> as out`"
    )
}

/// A parsed and traced kernel for one choice of dtypes; incomplete if there were errors.
struct Read {
    kernel: Kernel,
    traced: Option<Traced>,
    dtypes: Vec<(Ident, DType)>,
    diagnostics: Diagnostics,
}

fn kernel(
    input: TokenStream,
    helpers: &[Helper],
    called: &mut HashSet<String>,
    reported: &mut Diagnostics,
) -> TokenStream {
    let mut diagnostics = Diagnostics::default();
    let written = parse::generic_head(input.clone());
    let variants = parse::variants(input, &mut diagnostics);
    let mut read: Vec<Read> =
        variants.into_iter().filter_map(|variant| self::read(variant, helpers, &mut diagnostics)).collect();
    for Read { traced, .. } in &read {
        called.extend(traced.iter().flat_map(|traced| traced.called.iter().cloned()));
    }
    one_scalar_type(&read, &mut diagnostics);
    merge(&read, &mut diagnostics);
    let mut items = TokenStream::new();
    let mut conditions = vec![];
    if let Some(first) = read.first_mut() {
        first.kernel.written = written.unwrap_or(std::mem::take(&mut first.kernel.written));
        conditions = first.kernel.attributes.extract_if(.., |attribute| attribute.path().is_ident("cfg")).collect();
        let variants: Vec<(&Kernel, Option<&Traced>)> =
            read.iter().map(|read| (&read.kernel, read.traced.as_ref().filter(|traced| traced.is_whole))).collect();
        items = emit::emit(&variants, &mut diagnostics);
    }
    // Kernels that call a function have its mistakes in common.
    items.extend(diagnostics.besides(reported).to_tokens());
    reported.extend(diagnostics);
    under(&conditions, items)
}

/// Parses, traces and checks one kernel. What has no name is reported to `nameless`.
fn read(variant: parse::Variant, helpers: &[Helper], nameless: &mut Diagnostics) -> Option<Read> {
    let mut diagnostics = Diagnostics::default();
    let Some(kernel) = parse::kernel(variant.tokens, &mut diagnostics) else {
        nameless.extend(diagnostics);
        return None;
    };
    if let (Some(path), false) = (&kernel.gradient, variant.dtypes.is_empty()) {
        let message = "a kernel with dtype parameters has no gradient of its own: a #[function] has one dtype";
        diagnostics.error(At::of(path), message);
    }
    let traced = trace::trace(&kernel, helpers, &mut diagnostics);
    if let Some(traced) = &traced {
        check::check(&kernel, traced, &mut diagnostics);
    }
    Some(Read { kernel, traced, dtypes: variant.dtypes, diagnostics })
}

/// A scalar is one parameter of Rust, so it has one type.
fn one_scalar_type(read: &[Read], diagnostics: &mut Diagnostics) {
    let Some((first, rest)) = read.split_first() else { return };
    for (position, parameter) in first.kernel.parameters.iter().enumerate() {
        let is_scalar = |parameter: &Parameter| matches!(parameter.kind, ParameterKind::Scalar);
        let all = || rest.iter().filter_map(|read| read.kernel.parameters.get(position)).chain([parameter]);
        if all().any(is_scalar) && all().any(|other| other.dtype != parameter.dtype) {
            let name = &parameter.name;
            let message = format!("a number has one type: take `{name}: f32`, and cast it where it is used");
            diagnostics.error(parameter.at, message);
        }
    }
}

/// The mistakes of a kernel; one that not all dtypes make says for which it is.
fn merge(read: &[Read], diagnostics: &mut Diagnostics) {
    let Some((first, rest)) = read.split_first() else { return };
    diagnostics.extend(first.diagnostics.shared_with(rest.iter().map(|read| &read.diagnostics)));
    for Read { dtypes, diagnostics: own, .. } in read {
        let dtypes: Vec<String> = dtypes.iter().map(|(name, dtype)| format!("`{name}` is {dtype}")).collect();
        let note = if dtypes.is_empty() { String::new() } else { format!("\nwhere {}", dtypes.join(" and ")) };
        let new = own.besides(diagnostics);
        new.errors().for_each(|(place, message)| diagnostics.error(place, format!("{message}{note}")));
    }
}

/// Items under the kernel's `#[cfg(…)]` attributes.
fn under(conditions: &[syn::Attribute], items: TokenStream) -> TokenStream {
    if conditions.is_empty() {
        return items;
    }
    match syn::parse2::<syn::File>(items.clone()) {
        Ok(file) => file.items.iter().map(|item| quote!(#(#conditions)* #item)).collect(),
        Err(_) => items,
    }
}
