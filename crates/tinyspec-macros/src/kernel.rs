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

/// The items of the kernels, and an error for each mistake. The input starts with the path of tinyspec in the kernel's
/// crate, in brackets.
pub fn expand(input: TokenStream) -> TokenStream {
    let mut input = input.into_iter();
    let Some(TokenTree::Group(root)) = input.next() else { return TokenStream::new() };
    renamed::under(Some(root.stream()), kernels(input.collect()))
}

fn kernels(input: TokenStream) -> TokenStream {
    let (helpers, kernels): (Vec<_>, Vec<_>) = parse::kernels(input)
        .into_iter()
        .map(|kernel| (parse::helper(&kernel), kernel))
        .partition(|(helper, _)| helper.is_some());
    let mut diagnostics = Diagnostics::default();
    let helpers: Vec<Ident> = helpers.into_iter().filter_map(|(helper, _)| helper).collect();
    for name in &helpers {
        diagnostics.error(name.span(), parse::no_helper(name));
    }
    let items = kernels.into_iter().map(|(_, tokens)| kernel(tokens, &helpers));
    diagnostics.to_tokens().into_iter().chain(items.flatten()).collect()
}

fn kernel(input: TokenStream, helpers: &[Ident]) -> TokenStream {
    let mut diagnostics = Diagnostics::default();
    let mut items = TokenStream::new();
    let mut conditions = Vec::new();
    if let Some(mut kernel) = parse::kernel(input, &mut diagnostics) {
        kernel.helpers.extend(helpers.iter().map(ToString::to_string));
        conditions = kernel.attributes.extract_if(.., |attribute| attribute.path().is_ident("cfg")).collect();
        let traced = trace::trace(&kernel, &mut diagnostics);
        if let Some(traced) = &traced {
            check::check(&kernel, traced, &mut diagnostics);
        }
        items = emit::emit(&kernel, traced.as_ref().filter(|traced| traced.is_whole), &mut diagnostics);
    }
    items.extend(diagnostics.to_tokens());
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
