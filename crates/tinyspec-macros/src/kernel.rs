//! `uop!`: kernels written by hand, checked and traced while rustc compiles.

mod check;
mod emit;
pub mod parse;
mod syntax;
mod trace;

use crate::diagnostics::Diagnostics;
use crate::renamed;
use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::quote;
use std::collections::HashSet;
use syntax::Helper;

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

/// The functions that stand beside the kernels of a `uop!`.
fn helpers(tokens: Vec<TokenStream>, diagnostics: &mut Diagnostics) -> Vec<Helper> {
    let mut helpers: Vec<Helper> = Vec::new();
    for tokens in tokens {
        let Some(helper) = parse::helper(tokens, diagnostics) else { continue };
        if helpers.iter().any(|other| other.name == helper.name) {
            diagnostics.error(helper.name.span(), format!("the function `{}` is defined twice", helper.name));
        } else {
            helpers.push(helper);
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

fn kernel(
    input: TokenStream,
    helpers: &[Helper],
    called: &mut HashSet<String>,
    reported: &mut Diagnostics,
) -> TokenStream {
    let mut diagnostics = Diagnostics::default();
    let mut items = TokenStream::new();
    let mut conditions = Vec::new();
    if let Some(mut kernel) = parse::kernel(input, &mut diagnostics) {
        conditions = kernel.attributes.extract_if(.., |attribute| attribute.path().is_ident("cfg")).collect();
        let traced = trace::trace(&kernel, helpers, &mut diagnostics);
        if let Some(traced) = &traced {
            check::check(&kernel, traced, &mut diagnostics);
            called.extend(traced.called.iter().cloned());
        }
        items = emit::emit(&kernel, traced.as_ref().filter(|traced| traced.is_whole), &mut diagnostics);
    }
    // Kernels that call a function have its mistakes in common.
    items.extend(diagnostics.besides(reported).to_tokens());
    reported.extend(diagnostics);
    under(&conditions, items)
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
