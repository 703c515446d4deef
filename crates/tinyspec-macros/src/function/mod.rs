//! `#[function]`: a Rust function over tensors becomes a graph in the binary ("The @function Decorator").
//!
//! One expansion reads the signature and emits the items; the graph is made at once where the body calls nothing, else by
//! a second expansion which the callees' companions lead to (see [`companion`]).

mod callees;
pub mod companion;
mod gradient;
pub mod options;
pub mod signature;
mod trace;
mod typed_copy;

use crate::diagnostics::{Diagnostics, Place};
use companion::{Callee, Visited};
use options::Options;
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use signature::{Constants, FunctionSignature, Passing};
use std::collections::HashMap;
use syn::parse::{Parse, ParseStream};
use syn::{Expr, FnArg, ItemFn, LitByteStr, Pat, Stmt, parse_quote};
use tinyspec_ir::function::Traced;

/// Callees that rustc's nesting of expansions allows.
const MOST_CALLEES: usize = 60;

/// Names of std macros: a function of such a name would make every use of either ambiguous.
pub const STD_MACROS: &[&str] = &[
    "assert",
    "assert_eq",
    "assert_ne",
    "cfg",
    "column",
    "compile_error",
    "concat",
    "dbg",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "env",
    "eprint",
    "eprintln",
    "file",
    "format",
    "format_args",
    "include",
    "include_bytes",
    "include_str",
    "is_x86_feature_detected",
    "line",
    "matches",
    "module_path",
    "option_env",
    "panic",
    "print",
    "println",
    "stringify",
    "thread_local",
    "todo",
    "unimplemented",
    "unreachable",
    "vec",
    "write",
    "writeln",
];

/// The expansion of the attribute.
pub fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let function = match syn::parse2::<ItemFn>(item.clone()) {
        Ok(function) => function,
        Err(error) => {
            let mut diagnostics = Diagnostics::default();
            match syn::parse2::<syn::Item>(item.clone()) {
                Ok(other) => diagnostics.error(Place::of(&other), "#[function] stands before a `fn`"),
                // rustc has the same to say of it, and better.
                Err(_) if !item.is_empty() => return half_typed(options, item),
                Err(_) => diagnostics.syntax(error),
            }
            return diagnostics.to_tokens();
        }
    };
    let mut diagnostics = Diagnostics::default();
    let read_options = Options::parse(options.clone(), &mut diagnostics);
    let signature = FunctionSignature::read(&function.sig, &read_options, &mut diagnostics);
    let name = &function.sig.ident;
    if STD_MACROS.contains(&name.to_string().as_str()) {
        diagnostics.error(Place::of(name), format!("`{name}` is also a macro of std, choose another name"));
        // Its companion would break every use of the macro.
        return diagnostics.to_tokens();
    }
    let (mut found, imports) = callees::find(&function);
    found.extend(gradient::own(&read_options, &signature, &mut diagnostics));
    if let Some(extra) = found.get(MOST_CALLEES) {
        let message = format!("`{name}` calls {} functions, {MOST_CALLEES} at most: split it", found.len());
        diagnostics.error(Place::between(extra.span, extra.span), message);
    }
    // Mistakes in the body tell the typed copy what to leave out; with callees they are reported by the second expansion.
    let unknown = found.iter().zip(0..).map(|(callee, number)| (callee.text.clone(), (number, None))).collect();
    let mut preview = Diagnostics::default();
    let outcome = trace::trace(&signature, &function.block, &unknown, &mut preview);
    let typed = typed_copy::typed_copy(&function.block, &preview);
    let preview_is_empty = preview.is_empty();
    let calls_itself = found.iter().any(|callee| callee.path.get_ident() == Some(name));
    let graph = if found.is_empty() || found.len() > MOST_CALLEES || calls_itself {
        diagnostics.extend(preview);
        let traced = outcome.traced.filter(|_| diagnostics.is_empty());
        let checks = outcome.checks.iter().map(trace::Check::to_tokens);
        let graph = embedded(name, traced, &[], &outcome.constants, &read_options, &mut diagnostics);
        quote!({ #(#checks)* #graph })
    } else {
        companion::visit(&found, &imports, &quote!({ [#options] #item }))
    };
    let is_wrong = !diagnostics.is_empty() || !preview_is_empty;
    emit(&function, &signature, &read_options, (&typed, is_wrong), &graph, &diagnostics)
}

/// A function whose body is no Rust yet: callers see its signature, and the body stands as it is, for rustc to complain about
/// and for editors to complete.
fn half_typed(options: TokenStream, item: TokenStream) -> TokenStream {
    let Ok(HalfTyped { mut function, body }) = syn::parse2::<HalfTyped>(item.clone()) else { return item };
    let mut diagnostics = Diagnostics::default();
    let options = Options::parse(options, &mut diagnostics);
    let signature = FunctionSignature::read(&function.sig, &options, &mut diagnostics);
    function.block.stmts = vec![Stmt::Expr(Expr::Verbatim(body), None)];
    let graph = quote!(::tinyspec::__private::EmbeddedFunction::failed());
    emit(&function, &signature, &Options::default(), (&function.block, true), &graph, &diagnostics)
}

struct HalfTyped {
    function: ItemFn,
    body: TokenStream,
}

impl Parse for HalfTyped {
    fn parse(input: ParseStream) -> syn::Result<HalfTyped> {
        let attributes = input.call(syn::Attribute::parse_outer)?;
        let (visibility, signature): (syn::Visibility, syn::Signature) = (input.parse()?, input.parse()?);
        let body;
        syn::braced!(body in input);
        Ok(HalfTyped { function: parse_quote!(#(#attributes)* #visibility #signature {}), body: body.parse()? })
    }
}

/// What the attribute sent along to the second expansion.
struct State {
    options: TokenStream,
    function: ItemFn,
}

impl Parse for State {
    fn parse(input: ParseStream) -> syn::Result<State> {
        let options;
        syn::bracketed!(options in input);
        Ok(State { options: options.parse()?, function: input.parse()? })
    }
}

/// The second expansion: the graph, now that the signatures of all callees are known.
pub fn expand_traced(input: TokenStream) -> TokenStream {
    let read =
        syn::parse2::<Visited>(input).and_then(|visited| Ok((syn::parse2::<State>(visited.state)?, visited.callees)));
    let (State { options, function }, known) = match read {
        Ok(read) => read,
        Err(error) => {
            let errors = error.to_compile_error();
            return quote!({ #errors ::tinyspec::__private::EmbeddedFunction::failed() });
        }
    };
    // The first expansion has reported what is wrong with the signature.
    let mut reported = Diagnostics::default();
    let options = Options::parse(options, &mut reported);
    let signature = FunctionSignature::read(&function.sig, &options, &mut reported);
    let (mut found, _) = callees::find(&function);
    let own = gradient::own(&options, &signature, &mut reported);
    let is_own = own.is_some();
    found.extend(own);
    let mut diagnostics = Diagnostics::default();
    if let (true, Some(gradient), Some(Some(callee))) = (is_own, &options.gradient, known.last()) {
        gradient::check(&signature, callee, gradient, &mut diagnostics);
    }
    let known: HashMap<String, (u32, Option<Callee>)> = found
        .iter()
        .zip(known)
        .zip(0..)
        .map(|((path, callee), number)| (path.text.clone(), (number, callee)))
        .collect();
    let outcome = trace::trace(&signature, &function.block, &known, &mut diagnostics);
    let paths: Vec<TokenStream> = found.iter().map(|callee| companion::respanned(&callee.path, callee.span)).collect();
    let checks = outcome.checks.iter().map(trace::Check::to_tokens);
    let graph = embedded(&function.sig.ident, outcome.traced, &paths, &outcome.constants, &options, &mut diagnostics);
    let errors = diagnostics.to_tokens();
    quote!({ #errors #(#checks)* #graph })
}

/// The value of the static behind a function; after mistakes it has no graph.
fn embedded(
    name: &syn::Ident,
    traced: Option<Traced>,
    callees: &[TokenStream],
    constants: &Constants,
    options: &Options,
    diagnostics: &mut Diagnostics,
) -> TokenStream {
    let constants = constants.0.iter().map(|constant| &constant.path);
    let shared = quote! {
        ::core::file!(),
        &[#(#callees::FUNCTION),*],
        || ::std::vec![#(::tinyspec::__private::constant(#constants)),*],
    };
    let backward = gradient::backward(name, traced.as_ref(), &shared, options, diagnostics);
    let text = name.to_string();
    let bytes = traced.filter(|_| diagnostics.is_empty()).map(|traced| traced.encode()).unwrap_or_default();
    let bytes = LitByteStr::new(&bytes, Span::call_site());
    let own = (options.gradient.is_some() && !callees.is_empty()).then(|| callees.last()).flatten();
    let own = own.map(|path| quote!(.with_gradient(#path::FUNCTION)));
    // On the call, where rustc reports a circle of calls.
    let depths = callees.iter().map(|path| {
        let span = path.clone().into_iter().next().map_or_else(Span::call_site, |token| token.span());
        quote_spanned!(span=> #path::FUNCTION.depth)
    });
    quote! {
        ::tinyspec::__private::EmbeddedFunction::new(#text, #bytes, #shared #name::typed)
            .above(&[#(#depths),*])
            #backward
            #own
    }
}

/// The function, the type that carries its graph, and its companion. After mistakes too, so that callers are still checked.
fn emit(
    function: &ItemFn,
    signature: &FunctionSignature,
    options: &Options,
    (typed, is_wrong): (&syn::Block, bool),
    graph: &TokenStream,
    diagnostics: &Diagnostics,
) -> TokenStream {
    let (attributes, visibility, name) = (&function.attrs, &function.vis, &function.sig.ident);
    // Types that could not be read would be complained about a second time.
    let wrong = quote!(::tinyspec::__private::wrong());
    let (result, value) = if signature.is_complete() {
        let statements = &typed.stmts;
        (signature.written_result.clone(), quote!({ #(#statements)* }))
    } else {
        (quote!(::tinyspec::Tensor), wrong)
    };
    let mut parameters = vec![];
    let mut arguments = vec![];
    let mut inputs = vec![];
    for argument in &function.sig.inputs {
        let FnArg::Typed(argument) = argument else { continue };
        let Pat::Ident(pattern) = &*argument.pat else { continue };
        let ident = &pattern.ident;
        if inputs.contains(&ident) {
            continue;
        }
        inputs.push(ident);
        match signature.parameters.iter().find(|parameter| parameter.ident == *ident) {
            Some(parameter) if parameter.passing == Passing::Scalar => {
                let written = &parameter.written;
                // On the colon, so that a wrong argument is explained by the parameter and not by the attribute.
                let colon = argument.colon_token.span;
                parameters.push(quote_spanned!(colon=> #ident: impl ::tinyspec::__private::ScalarArgument<#written>));
                arguments.push(quote!(&::tinyspec::__private::ScalarArgument::<#written>::into_tensor(#ident)));
            }
            Some(parameter) => {
                let written = &parameter.written;
                parameters.push(quote!(#ident: #written));
                arguments.push(quote!(#ident));
            }
            None => {
                parameters.push(quote!(#ident: &::tinyspec::Tensor));
            }
        }
    }
    let dims = &signature.dims;
    let errors = diagnostics.to_tokens();
    let allow = is_wrong.then(|| quote!(#[allow(unused, unreachable_code)]));
    let constants = signature.constants.0.iter().enumerate().map(|(position, constant)| {
        let (name, path) = (format_ident!("DIM_{position}"), &constant.path);
        quote!(#[doc(hidden)] pub const #name: usize = #path;)
    });
    let payload = match &signature.result {
        Some(result) if signature.is_complete() => companion::payload(signature, result),
        _ => companion::failed_payload(),
    };
    let companion = companion::companion(name, visibility, "#[function]", &payload);
    let gradients = gradient::functions(signature, options, &parameters, &arguments, visibility);
    let graph_doc = format!("The graph of [`{name}()`], in the binary.");
    let documentation = format!("What [`{name}()`] is at compile time: its graph.");
    quote! {
        #(#attributes)*
        #allow
        #[track_caller]
        #visibility fn #name(#(#parameters),*) -> #result {
            ::tinyspec::__private::call(#name::FUNCTION, &[#(#arguments),*])
        }
        #[doc = #documentation]
        #[allow(non_camel_case_types, dead_code)]
        #visibility enum #name {}
        #[allow(dead_code)]
        impl #name {
            #[doc = #graph_doc]
            pub const FUNCTION: &'static ::tinyspec::function::EmbeddedFunction = {
                static A_FUNCTION_MUST_NOT_CALL_ITSELF: ::tinyspec::function::EmbeddedFunction = #graph;
                &A_FUNCTION_MUST_NOT_CALL_ITSELF
            };
            #(#constants)*
            #gradients
            #allow
            #[allow(non_snake_case)]
            fn typed(
                inputs: &[::tinyspec::Tensor],
                dims: &[::tinyspec::Dim],
            ) -> ::std::vec::Vec<::tinyspec::Tensor> {
                let [#(#inputs),*] = inputs else { return ::std::vec![] };
                #[allow(unused_variables)]
                let [#(#dims),*] = dims else { return ::std::vec![] };
                let result: #result = #value;
                ::tinyspec::function::Results::into_tensors(result)
            }
        }
        #companion
        #errors
    }
}
