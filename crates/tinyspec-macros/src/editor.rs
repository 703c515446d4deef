//! The expansions for rustc and for an editor. rustc should check each body once and report each mistake once; an editor
//! should complete half-typed bodies, whatever is wrong with them. So each gets its own typed copy. This is decided here and
//! not by a `cfg` in the expansion, because editors grey out what a `cfg` excludes.

use crate::function::emit::result_type;
use crate::function::options::Options;
use crate::function::signature::{FunctionSignature, Parameter, Passing};
use crate::function::trace::erased;
use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use std::sync::OnceLock;
use syn::ext::IdentExt;
use syn::{Block, FnArg, Pat, PatIdent, PatType, Signature, Type};

/// Whether rust-analyzer expands the macro: its proc-macro server, in its own process or not.
pub fn is_asking() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let program = std::env::current_exe().ok();
        let name = program.as_deref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.contains("rust-analyzer"))
    })
}

/// An attribute that keeps generated items out of rust-analyzer's lists. (Within a crate it lists `doc(hidden)` items
/// too.)
pub fn unlisted() -> Option<TokenStream> {
    is_asking().then(|| quote!(#[unstable(feature = "core_intrinsics", issue = "none")]))
}

/// Items that only editors get: [`body`], emitted by the first expansion, so that it exists even if a callee is not
/// found.
pub fn for_editors(items: impl FnOnce() -> TokenStream) -> TokenStream {
    if is_asking() { items() } else { TokenStream::new() }
}

/// Items that only rustc gets: the typed copy of the last expansion, without what the macro refused, and the checks for
/// `const` evaluation.
pub fn for_rustc(items: &[TokenStream]) -> TokenStream {
    if is_asking() { TokenStream::new() } else { quote!(#(#items)*) }
}

/// A function with the user's parameters, the dims and the user's body. It is never called.
pub fn body(written: &Signature, options: &Options, signature: &FunctionSignature, block: &Block) -> TokenStream {
    let (unlisted, statements, result) = (unlisted(), &block.stmts, result_type(signature));
    // Dims in facts link to their declarations too.
    let generics: Vec<&Ident> = written.generics.type_params().map(|parameter| &parameter.ident).collect();
    let declared = signature.dim_names().into_iter();
    let declared: Vec<Ident> = declared
        .map(|dim| generics.iter().find(|generic| ***generic == dim).map_or(dim, |generic| (*generic).clone()))
        .collect();
    let mut parameters = vec![];
    for input in &written.inputs {
        let FnArg::Typed(PatType { pat, ty, .. }) = input else {
            parameters.push(quote!(#input));
            continue;
        };
        let Pat::Ident(PatIdent { ident, .. }) = &**pat else { continue };
        let parameter = signature.parameters.iter().find(|parameter| parameter.ident == *ident);
        parameters.push(match parameter {
            Some(Parameter { model: Some(path), .. }) => {
                let model = aside(&erased(path, &declared));
                let mutability = if let Type::Reference(reference) = &**ty { reference.mutability } else { None };
                quote!(#ident: &#mutability #model)
            }
            Some(Parameter { passing: Passing::Flag, .. }) => quote!(#ident: bool),
            _ => quote!(#ident: &::tinyspec::Tensor),
        });
    }
    // Users can point at dims in types and options too.
    let (inputs, output, given) = (&written.inputs, &written.output, &options.written);
    let mut uses = vec![];
    named(quote!(#inputs #output #given), &declared, &mut uses);
    // A parameter cannot have the name of a constant, unless that is hidden.
    let hidden = aside(&quote!(#(#unlisted fn #declared() {})*));
    let name = quote::format_ident!("__tinyspec_body_of_{}", signature.ident.unraw().to_string());
    let own = quote! {
        #unlisted
        #[allow(non_snake_case, unused, clippy::all)]
        fn #name(#(#parameters,)* #(#declared: ::tinyspec::Dim),*) -> #result {
            let _ = (#(&#uses,)*);
            #(#statements)*
        }
    };
    let own = match signature.parameters.iter().find(|parameter| parameter.ident == "self") {
        Some(Parameter { model: Some(path), .. }) => {
            let model = aside(&erased(path, &declared));
            quote!(impl #model { #own })
        }
        _ => own,
    };
    quote! {
        #hidden
        #own
        #unlisted
        fn __tinyspec_typed(_: &[::tinyspec::Tensor], _: &[::tinyspec::Dim], _: u32) -> ::std::vec::Vec<::tinyspec::Tensor> {
            ::std::vec::Vec::new()
        }
    }
}

/// The identifiers among `tokens` that are dims.
fn named(tokens: TokenStream, dims: &[Ident], uses: &mut Vec<Ident>) {
    for token in tokens {
        match token {
            TokenTree::Ident(word) if dims.contains(&word) => uses.push(word),
            TokenTree::Group(group) => named(group.stream(), dims, uses),
            _ => {}
        }
    }
}

/// A user's name in generated code. rustc reports errors at the user's token. An editor must not link the two: every
/// generated use would be listed as one more definition.
pub fn aside(tokens: &impl ToTokens) -> TokenStream {
    let tokens = tokens.to_token_stream();
    if is_asking() { anywhere(tokens) } else { tokens }
}

/// The span of items generated for what is at `place`; see [`aside`].
pub fn aside_of(place: Span) -> Span {
    if is_asking() { Span::call_site() } else { place }
}

fn anywhere(tokens: TokenStream) -> TokenStream {
    let tokens = tokens.into_iter().map(|token| match token {
        TokenTree::Group(group) => TokenTree::Group(Group::new(group.delimiter(), anywhere(group.stream()))),
        mut token => {
            token.set_span(Span::call_site());
            token
        }
    });
    tokens.collect()
}
