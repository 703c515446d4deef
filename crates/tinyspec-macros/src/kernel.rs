//! `uop!`: kernels written by hand, checked and traced while rustc compiles.

mod check;
mod emit;
mod parse;
mod syntax;
mod trace;

use crate::diagnostics::Diagnostics;
use crate::renamed;
use proc_macro2::{TokenStream, TokenTree};

/// The items that the kernels become, and an error for each mistake. First comes how the crate of the kernel reaches
/// tinyspec, in brackets.
pub fn expand(input: TokenStream) -> TokenStream {
    let mut input = input.into_iter();
    let Some(TokenTree::Group(root)) = input.next() else { return TokenStream::new() };
    renamed::under(Some(root.stream()), kernels(input.collect()))
}

fn kernels(input: TokenStream) -> TokenStream {
    let mut diagnostics = Diagnostics::default();
    let kernels = parse::kernels(input, &mut diagnostics);
    let mut items = TokenStream::new();
    for kernel in &kernels {
        let traced = trace::trace(kernel, &mut diagnostics);
        if let Some(traced) = &traced {
            check::check(kernel, traced, &mut diagnostics);
        }
        items.extend(emit::emit(kernel, traced.as_ref(), &mut diagnostics));
    }
    items.extend(diagnostics.to_tokens());
    items
}
