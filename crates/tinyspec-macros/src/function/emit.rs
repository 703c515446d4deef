//! The items that a function expands to. They are emitted after mistakes too, so that callers are still checked.

use super::options::Options;
use super::signature::{FunctionSignature, Parameter, Passing};
use super::trace::erased;
use super::{companion, gradient, sizes};
use crate::diagnostics::{Diagnostics, Place};
use crate::{documentation, editor};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::visit::Visit;
use syn::{FnArg, Ident, ItemFn, Pat, PathArguments};

/// A local of the expansion; it cannot clash with a user's name.
pub fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// A function's parameters at run time, and how the body gets at them.
pub struct Parameters {
    /// `x: &Tensor, scale: impl ScalarArgument<f32>`
    pub declared: Vec<TokenStream>,
    /// The same for calls that change nothing: no model is `&mut`.
    pub shared: Vec<TokenStream>,
    /// Statements that make tensors of scalars.
    prelude: TokenStream,
    /// A slice of all tensors, including those of models.
    pub arguments: TokenStream,
    /// `.with_flags(…)`, if there are any.
    pub flags: Option<TokenStream>,
    /// Statements of the typed copy that bind the parameters to its `inputs`.
    pub bound: TokenStream,
    /// Statements that assign the new states to the buffers.
    updated: TokenStream,
    /// Statements of the typed copy that append these states to its results.
    given_states: TokenStream,
}

impl Parameters {
    /// The parameters of a signature, as far as it could be read.
    pub fn of(
        inputs: &syn::punctuated::Punctuated<FnArg, syn::Token![,]>,
        signature: &FunctionSignature,
    ) -> Parameters {
        let (mut declared, mut prelude, mut bound) = (vec![], TokenStream::new(), TokenStream::new());
        // Most parameters are one tensor; a model has several.
        let (mut single, mut pushed) = (vec![], TokenStream::new());
        let nothing = quote!(else { return ::std::vec![] });
        let (inputs_left, all, make) = (local("inputs"), local("arguments"), local("make"));
        let (graph, wrong) = (local("graph"), local("wrong"));
        let (mut flags, given) = (vec![], local("flags"));
        let (mut shared, states, results) = (vec![], local("states"), local("results"));
        let (mut updated, mut given_states) = (TokenStream::new(), TokenStream::new());
        let mut seen: Vec<Ident> = vec![];
        for argument in inputs {
            let ident = match argument {
                FnArg::Receiver(receiver) => Ident::new("self", receiver.self_token.span),
                FnArg::Typed(argument) => match &*argument.pat {
                    Pat::Ident(pattern) => pattern.ident.clone(),
                    _ => continue,
                },
            };
            if seen.contains(&ident) {
                continue;
            }
            seen.push(ident.clone());
            let aside = editor::aside(&ident);
            let parameter = signature.parameters.iter().find(|parameter| parameter.ident == ident);
            match parameter.map(|parameter| (parameter, &parameter.model, parameter.passing)) {
                Some((parameter, Some(path), _)) => {
                    let written = &parameter.written;
                    let erased = editor::aside(&erased(path, &signature.dim_names()));
                    let inside =
                        if ident == "self" { format_ident!("__self", span = ident.span()) } else { ident.clone() };
                    let is_updated = matches!(parameter.passing, Passing::Updated(_));
                    let (owned, is_self) = (local(&format!("{inside}_built")), ident == "self");
                    let shared_type = match &parameter.model {
                        Some(path) if is_updated => quote!(&#path),
                        _ => written.clone(),
                    };
                    shared.push(if is_self { quote!(&self) } else { quote!(#aside: #shared_type) });
                    declared.push(match (is_self, is_updated) {
                        (true, true) => quote!(&mut self),
                        (true, false) => quote!(&self),
                        (false, _) => quote!(#aside: #written),
                    });
                    let name = ident.to_string();
                    pushed
                        .extend(quote!(::tinyspec::__private::push_model(#graph, &mut #all, #name, #aside, &#wrong);));
                    let reference = if is_updated { quote!(&mut) } else { quote!(&) };
                    bound.extend(quote! {
                        let #make = &mut |parameter: ::tinyspec::nn::Parameter| {
                            ::tinyspec::__private::next_input(&mut #inputs_left, parameter.role)
                        };
                        #[allow(unused_mut)]
                        let ::core::result::Result::Ok(mut #owned) =
                            <#erased as ::tinyspec::nn::Model>::build(::tinyspec::nn::Name::ROOT, #make) #nothing;
                        #[allow(unused_variables)]
                        let #inside = #reference #owned;
                    });
                    if is_updated {
                        updated.extend(quote!(::tinyspec::__private::update(#aside, &mut #states);));
                        given_states.extend(quote!(::tinyspec::__private::push_buffers(&#owned, &mut #results);));
                    }
                    continue;
                }
                Some((_, None, Passing::Flag)) => {
                    declared.push(quote!(#aside: bool));
                    shared.push(quote!(#aside: bool));
                    let number = flags.len();
                    bound.extend(quote!(let #ident: bool = #given >> #number & 1 != 0;));
                    flags.push(aside);
                    continue;
                }
                Some((parameter, None, Passing::Scalar)) => {
                    let written = &parameter.written;
                    // With the span of the colon, so that the error for a wrong argument points at the parameter and
                    // not at the attribute.
                    let colon = match argument {
                        FnArg::Typed(argument) => argument.colon_token.span,
                        FnArg::Receiver(_) => ident.span(),
                    };
                    let argument = quote_spanned!(colon=> #aside: impl ::tinyspec::function::ScalarArgument<#written>);
                    declared.push(argument.clone());
                    shared.push(argument);
                    prelude.extend(
                        quote!(let #aside = ::tinyspec::function::ScalarArgument::<#written>::into_tensor(#aside);),
                    );
                    single.push(quote!(&#aside));
                    pushed.extend(quote!(#all.push(&#aside);));
                }
                Some((parameter, None, _)) => {
                    let written = &parameter.written;
                    declared.push(quote!(#aside: #written));
                    shared.push(quote!(#aside: #written));
                    single.push(quote!(#aside));
                    pushed.extend(quote!(#all.push(#aside);));
                }
                None if ident == "self" => continue,
                None => {
                    declared.push(quote!(#aside: &::tinyspec::Tensor));
                    shared.push(quote!(#aside: &::tinyspec::Tensor));
                }
            }
            bound.extend(quote! {
                let ::core::option::Option::Some(#ident) = ::core::iter::Iterator::next(&mut #inputs_left) #nothing;
            });
        }
        let arguments = if signature.has_models() {
            prelude.extend(quote!(let #wrong = ::core::cell::OnceCell::new();));
            prelude.extend(quote!(let mut #all: ::std::vec::Vec<&::tinyspec::Tensor> = ::std::vec![]; #pushed));
            quote!(&#all)
        } else {
            quote!(&[#(#single),*])
        };
        let flags = (!flags.is_empty()).then(|| quote!(.with_flags(&[#(#flags),*])));
        Parameters { declared, shared, prelude, arguments, flags, bound, updated, given_states }
    }

    /// Statements that convert the parameters to the arguments of `function`.
    pub fn prelude(&self, function: &TokenStream) -> TokenStream {
        let (graph, prelude) = (local("graph"), &self.prelude);
        quote! {
            #[allow(unused_variables)]
            let #graph = #function;
            #prelude
        }
    }

    /// The body of the emitted function: calls the graph and assigns the new states to the buffers.
    pub fn call(&self, function: &TokenStream) -> TokenStream {
        let Parameters { arguments, flags, updated, .. } = self;
        let prelude = self.prelude(function);
        if updated.is_empty() {
            return quote! {
                #prelude
                ::tinyspec::__private::call(#function #flags, #arguments)
            };
        }
        let (results, states) = (local("results"), local("states"));
        quote! {
            #prelude
            let (#results, #states) = ::tinyspec::__private::call_updating(#function #flags, #arguments);
            let mut #states = #states.into_iter();
            #updated
            #results
        }
    }
}

/// The items of the typed copy, once everything that the macro refuses is known; `open` is what the trace left to
/// rustc.
pub fn checked(
    signature: &FunctionSignature,
    parameters: &Parameters,
    (body, is_wrong): (&syn::Block, bool),
    open: Option<Place>,
) -> Vec<TokenStream> {
    match open {
        Some(open) => given_up(signature, parameters, body, open),
        None => vec![typed(signature, parameters, (body, is_wrong))],
    }
}

/// The user's body over placeholders.
pub fn typed(
    signature: &FunctionSignature,
    parameters: &Parameters,
    (body, is_wrong): (&syn::Block, bool),
) -> TokenStream {
    let (inputs, sizes, flags) = (local("inputs"), local("__tinyspec_sizes"), local("flags"));
    let (allow, unlisted) = (allow(is_wrong), editor::unlisted());
    let statements = typed_statements(signature, parameters, body);
    quote! {
        #allow
        #unlisted
        #[allow(non_snake_case, unused_parens)]
        fn __tinyspec_typed(
            #inputs: &[::tinyspec::Tensor],
            #sizes: &[::tinyspec::Dim],
            #flags: u32,
        ) -> ::std::vec::Vec<::tinyspec::Tensor> {
            #statements
        }
    }
}

fn typed_statements(signature: &FunctionSignature, parameters: &Parameters, body: &syn::Block) -> TokenStream {
    let (result, statements) = (result_type(signature), &body.stmts);
    let value = match signature.is_complete() {
        true => quote!({ #(#statements)* }),
        false => quote!(::tinyspec::__private::wrong()),
    };
    let (dims, bound, given_states) = (&signature.dims, &parameters.bound, &parameters.given_states);
    let (inputs, sizes, results) = (local("inputs"), local("__tinyspec_sizes"), local("results"));
    let flags = local("flags");
    // A `let` cannot shadow a constant, but it can shadow a function.
    let names = signature.dim_names().into_iter().map(|dim| crate::diagnostics::ident(&dim.to_string()));
    let made = signature.made.iter().map(|made| {
        let (dim, by, quotient) = (&made.ident, &made.by, &made.quotient);
        quote!(#[allow(unused_variables)] let #dim = &(::tinyspec::__private::size(&(#by)) * ::tinyspec::__private::size(#quotient));)
    });
    quote! {
        let _ = #flags;
        #[allow(unused_variables, unused_mut)]
        let mut #inputs = #inputs.iter();
        #bound
        let #results: #result = {
            #(#[allow(dead_code)] fn #names() {})*
            #[allow(unused_variables)]
            let [#(#dims),*] = #sizes else { return ::std::vec![] };
            #(#made)*
            #value
        };
        #[allow(unused_mut)]
        let mut #results = ::tinyspec::function::Results::into_tensors(#results);
        #given_states
        #results
    }
}

/// The typed copy of a body that the trace gave up on silently, because rustc should find the mistake at `open`. It is
/// part of a constant whose evaluation fails. If rustc does find a mistake in it, the constant is not evaluated, so one
/// of the two is reported.
fn given_up(
    signature: &FunctionSignature,
    parameters: &Parameters,
    body: &syn::Block,
    open: Place,
) -> Vec<TokenStream> {
    let (inputs, sizes, flags) = (local("inputs"), local("__tinyspec_sizes"), local("flags"));
    let statements = typed_statements(signature, parameters, body);
    let message = format!(
        "`{}` has no graph, since this is not traced, though it is Rust: \
         a #[function] is made of `let`, operators, methods of tensors and calls of #[function]s",
        signature.ident
    );
    let refuse = quote_spanned!(open.start=> ::tinyspec::__private::refuse);
    let refuse = quote_spanned!(open.end=> #refuse(#message));
    let constant = quote! {
        #[allow(unused, unreachable_code, non_snake_case, clippy::all)]
        const _: () = {
            let _ = |#inputs: &[::tinyspec::Tensor], #sizes: &[::tinyspec::Dim], #flags: u32| -> ::std::vec::Vec<::tinyspec::Tensor> {
                #statements
            };
            #refuse;
        };
    };
    let nothing = quote! {
        fn __tinyspec_typed(_: &[::tinyspec::Tensor], _: &[::tinyspec::Dim], _: u32) -> ::std::vec::Vec<::tinyspec::Tensor> {
            ::std::vec![]
        }
    };
    vec![constant, nothing]
}

/// The result's type at run time. rustc would report types that could not be read a second time.
pub fn result_type(signature: &FunctionSignature) -> TokenStream {
    if signature.is_complete() { signature.written_result.clone() } else { quote!(::tinyspec::Tensor) }
}

/// After mistakes, names may look unused. Editors always get the attribute: they compare the tokens before the body
/// with and without the word being completed, so these must not depend on the body.
pub fn allow(is_wrong: bool) -> Option<TokenStream> {
    (is_wrong || editor::is_asking()).then(|| quote!(#[allow(unused, unreachable_code)]))
}

/// Sizes that the types of models name: the emitted function is generic over them.
fn size_generics(signature: &FunctionSignature) -> TokenStream {
    let declared = signature.dim_names();
    let mut names: Vec<&Ident> = vec![];
    for path in signature.parameters.iter().filter_map(|parameter| parameter.model.as_ref()) {
        let Some(PathArguments::AngleBracketed(arguments)) = path.segments.last().map(|last| &last.arguments) else {
            continue;
        };
        let text = quote!(#arguments).to_string();
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        names.extend(declared.iter().filter(|dim| words.contains(&dim.unraw().to_string().as_str())));
    }
    names.sort();
    names.dedup();
    if names.is_empty() { TokenStream::new() } else { quote!(<#(const #names: usize),*>) }
}

/// Documents how to prepare a function that takes more than tensors: the method `prepare` of Rust functions covers only
/// tensors.
fn prepared(signature: &FunctionSignature) -> String {
    let is_plain = signature.parameters.iter().all(|parameter| parameter.passing == Passing::Tensor);
    if is_plain || !signature.is_complete() {
        return String::new();
    }
    let given = signature.parameters.iter().filter_map(|Parameter { ident, passing, .. }| match passing {
        Passing::Tensor => Some(ident.to_string()),
        Passing::Scalar => Some(format!("&Tensor::scalar({ident})")),
        Passing::Model(_) | Passing::Updated(_) => Some("…".to_string()),
        Passing::Flag => None,
    });
    let flags: Vec<String> = signature.flags().map(|flag| flag.ident.to_string()).collect();
    let flags = if flags.is_empty() { String::new() } else { format!(".with_flags(&[{}])", flags.join(", ")) };
    let given = given.collect::<Vec<_>>().join(", ");
    format!("\n\nPlanned once for many calls: `{}::FUNCTION{flags}.prepare(&[{given}])`", signature.ident)
}

/// The callable function, the type that carries its graph, and its companion.
pub fn function(
    function: &ItemFn,
    signature: &FunctionSignature,
    options: &Options,
    (typed, is_wrong): (&TokenStream, bool),
    graph: &TokenStream,
    told: &TokenStream,
    diagnostics: &Diagnostics,
) -> TokenStream {
    let (visibility, name) = (&function.vis, &function.sig.ident);
    let parameters = Parameters::of(&function.sig.inputs, signature);
    let (result, unlisted, reach) = (result_type(signature), editor::unlisted(), companion::reach(visibility));
    let constants = signature.constants.0.iter().enumerate().map(|(position, constant)| {
        let (name, path) = (format_ident!("DIM_{position}"), &constant.path);
        quote!(#[doc(hidden)] #unlisted pub const #name: usize = #path;)
    });
    let generics = size_generics(signature);
    let hash = companion::place_hash(name);
    // The span that rustc shows as its definition.
    let kind = quote_spanned!(function.sig.fn_token.span=> enum);
    // rustc quotes it where a check fails and where functions call each other in a cycle.
    let graph_name = format_ident!("fn_{}", name.unraw().to_string());
    let aside = editor::aside(name);
    let own = quote!(<#aside as ::tinyspec::__private::HasFunction<#hash>>::FUNCTION);
    let named = gradient::Named { grad: format_ident!("grad"), backward: format_ident!("backward"), function: &own };
    let gradients = gradient::functions(signature, options, &named, &parameters, &generics, visibility);
    let written = documentation::of_function(&options.written, &function.sig);
    let more = gradient::described(signature, options) + &prepared(signature);
    let attributes = documentation::with(&function.attrs, &written, &more);
    let graph_doc = format!("The graph of [`{name}()`], in the binary.");
    let dims: Vec<String> = signature.dim_names().iter().map(ToString::to_string).collect();
    let sizes = match diagnostics.is_empty() {
        true => sizes::checks(&dims, |sizes| sizes.visit_signature(&function.sig)),
        false => TokenStream::new(),
    };
    let (errors, allow) = (diagnostics.to_tokens(), allow(is_wrong));
    let (declared, call) = (&parameters.declared, parameters.call(&own));
    quote! {
        #attributes
        #allow
        #[track_caller]
        #visibility fn #name #generics (#(#declared),*) -> #result {
            #call
        }
        #[doc(hidden)]
        #unlisted
        #[allow(non_camel_case_types, dead_code)]
        #reach #kind #aside {}
        const _: () = {
            // First: editors complete in the first copy of the body.
            #typed
            #unlisted
            #[allow(non_upper_case_globals)]
            static #graph_name: ::tinyspec::function::EmbeddedFunction = #graph;
            impl ::tinyspec::__private::HasFunction<#hash> for #aside {
                const FUNCTION: &'static ::tinyspec::function::EmbeddedFunction = &#graph_name;
            }
        };
        #[allow(dead_code)]
        impl #aside {
            #[doc = #graph_doc]
            pub const FUNCTION: &'static ::tinyspec::function::EmbeddedFunction = #own;
            #(#constants)*
            #gradients
        }
        #told
        #sizes
        #errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::signature::Context;

    fn described(function: &str) -> String {
        let item: ItemFn = syn::parse_str(&format!("{function} {{}}")).expect("a function");
        let mut diagnostics = Diagnostics::default();
        let signature = FunctionSignature::read(&item.sig, &Options::default(), &Context::default(), &mut diagnostics);
        assert!(diagnostics.is_empty(), "{}", diagnostics.to_tokens());
        prepared(&signature).trim_start().to_string()
    }

    #[test]
    fn functions_of_other_than_tensors_say_how_they_are_prepared() {
        assert_eq!(described("fn f<B>(x: &Tensor<f32, B>, y: &Tensor<f32, B>) -> Tensor<f32, B>"), "");
        assert_eq!(
            described("fn axpy<B>(x: &Tensor<f32, B>, a: f32) -> Tensor<f32, B>"),
            "Planned once for many calls: `axpy::FUNCTION.prepare(&[x, &Tensor::scalar(a)])`"
        );
    }
}
