//! `#[function]`: a Rust function over tensors becomes a graph in the binary ("The @function Decorator").
//!
//! The first expansion reads the signature and emits the items. If the body calls nothing it also makes the graph;
//! otherwise a second expansion does, which the callees' companions lead to (see [`companion`]).

pub mod attributes;
pub mod callees;
pub mod cast;
pub mod companion;
pub mod declared;
pub mod emit;
pub mod flags;
pub mod gradient;
pub mod local_macros;
pub mod options;
pub mod signature;
pub mod sizes;
pub mod source;
pub mod trace;
pub mod typed_copy;
pub mod ungroup;

use crate::diagnostics::{Diagnostics, Place};
use crate::model::types::ModelType;
use crate::{editor, half_typed, renamed};
use callees::CalleePath;
use companion::{Callee, Known, Visited};
use options::Options;
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use signature::{Constants, Context, FunctionSignature};
use std::collections::HashMap;
use std::rc::Rc;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{ItemFn, LitByteStr};
use tinyspec_ir::Graph;
use tinyspec_ir::function::Traced;

/// The number of callees that rustc's limit on nested expansions allows.
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
    let (function, item) = match ungroup::parse::<ItemFn>(item.clone()) {
        Ok(function) => (function, item),
        Err(_) if let Some(function) = declared::parse(item.clone()) => {
            let item = quote!(#function);
            (function, item)
        }
        Err(error) => {
            let mut diagnostics = Diagnostics::default();
            match syn::parse2::<syn::Item>(item.clone()) {
                Ok(syn::Item::Impl(mut block)) => {
                    ungroup::Item::ungroup(&mut block);
                    return crate::model::methods::expand(options, block);
                }
                Ok(other) => diagnostics.error(Place::of(&other), "#[function] stands before a `fn`"),
                // rustc has reported what is wrong with it.
                Err(_) if !item.is_empty() => {
                    let mended = half_typed::without_bodies(item);
                    let is_readable = syn::parse2::<syn::Item>(mended.clone()).is_ok();
                    return if is_readable { expand(options, mended) } else { TokenStream::new() };
                }
                Err(_) => diagnostics.syntax(error),
            }
            return diagnostics.to_tokens();
        }
    };
    let mut diagnostics = Diagnostics::default();
    let mut function = function;
    cast::in_one_spelling(&mut function.block, &mut diagnostics);
    let read_options =
        Options::parse(options.clone(), &mut diagnostics).with_flags(&function.sig.inputs, &function.block);
    let signature = FunctionSignature::read(&function.sig, &read_options, &Context::default(), &mut diagnostics);
    let name = &function.sig.ident;
    if STD_MACROS.contains(&name.to_string().as_str()) {
        diagnostics.error(Place::of(name), format!("`{name}` is also a macro of std: choose another name"));
        // Its companion would shadow the macro and break every use.
        return diagnostics.to_tokens();
    }
    attributes::check(&function.sig.inputs, &function.block, &mut diagnostics);
    declared::check(&read_options, &signature, declared::is_declared(&function.block), &mut diagnostics);
    gradient::check_floats(&read_options, &signature, &mut diagnostics);
    let own = gradient::own(&read_options, &signature, &mut diagnostics);
    let (found, imports) = all_callees(&function.sig, &function.block, &signature, own, &mut diagnostics);
    // Mistakes in the body determine what the typed copy leaves out; with callees, the second expansion reports them.
    let mut preview = Diagnostics::default();
    let outcome = outcome(&function.block, &read_options, &signature, &unknown(&found), &mut preview);
    let body = typed(&function.block, &read_options, &signature, &preview);
    let is_wrong = !diagnostics.is_empty() || !preview.is_empty();
    let parameters = emit::Parameters::of(&function.sig.inputs, &signature);
    // Without a graph something is wrong, whether the macro or rustc reports it.
    let has_graph = outcome.traced.is_some();
    let calls_itself = found.iter().any(|callee| callee.path.get_ident() == Some(name));
    // Nothing is left out for editors: code being written is mostly wrong.
    let for_editors = || {
        let whole = typed(&function.block, &read_options, &signature, &preview.adaptations());
        editor::body(&function.sig, &read_options, &signature, &whole)
    };
    let state = quote!({ function [#options] #item });
    let first = editor::for_editors(for_editors);
    let (copy, graph) = if found.is_empty() || found.len() > MOST_CALLEES || calls_itself {
        diagnostics.extend(preview);
        let traced = outcome.traced.filter(|_| diagnostics.is_empty());
        let checks = editor::for_rustc(&outcome.checks);
        let callees = Callees { paths: &[], methods: &[], own: None };
        let embedding = Embedding { traced, callees, constants: &outcome.constants, is_deferred: outcome.is_deferred };
        let graph = embedded(name, embedding, &signature, &read_options, &mut diagnostics);
        let open = outcome.open.filter(|_| diagnostics.is_empty());
        let copy = emit::checked(&signature, &parameters, (&body, is_wrong || !has_graph), open);
        let last = editor::for_rustc(&copy);
        (quote!(#first #last), quote!({ #checks #graph }))
    } else {
        let last = quote!(::tinyspec::__private::trace);
        (first, companion::visit(&found, &imports, &name.unraw().to_string(), &last, &state))
    };
    let companion = if signature.has_models() && signature.is_complete() {
        // The models' companions tell its inputs.
        let models: Vec<CalleePath> = signature.models().collect();
        companion::visit_in_module(
            &models,
            &name.unraw().to_string(),
            &quote!(::tinyspec::__private::companion),
            &state,
        )
    } else {
        companion_of(&function.vis, &signature)
    };
    let is_wrong = is_wrong || !diagnostics.is_empty();
    let items =
        emit::function(&function, &signature, &read_options, (&copy, is_wrong), &graph, &companion, &diagnostics);
    renamed::under(read_options.root, items)
}

/// Everything whose companion a body needs: the functions that it calls, its own gradient, the models that it takes.
pub fn all_callees(
    written: &syn::Signature,
    body: &syn::Block,
    signature: &FunctionSignature,
    own: Option<CalleePath>,
    diagnostics: &mut Diagnostics,
) -> (Vec<CalleePath>, Vec<syn::ItemUse>) {
    let (mut found, imports) = callees::find(written, body);
    // The trace refuses plain functions and leaves `const fn`s to Rust.
    let is_rust =
        |name: &syn::Ident| source::is_plain(&written.ident, name) || source::is_const_function(&written.ident, name);
    found.retain(|callee| !callee.path.get_ident().is_some_and(is_rust));
    found.extend(own);
    found.extend(signature.models());
    if let Some(extra) = found.get(MOST_CALLEES) {
        let name = &signature.ident;
        let message = format!("`{name}` calls {} functions, {MOST_CALLEES} at most: split it", found.len());
        diagnostics.error(extra.span, message);
    }
    (found, imports)
}

/// Callees whose signatures come with the next expansion.
pub fn unknown(found: &[CalleePath]) -> Told {
    found.iter().zip(0..).map(|(callee, number)| (callee.text.clone(), (number, None))).collect()
}

/// The companion of a function, now that its signature is known.
fn companion_of(visibility: &syn::Visibility, signature: &FunctionSignature) -> TokenStream {
    let payload = match &signature.result {
        Some(result) if signature.is_complete() && signature.is_known() => companion::payload(signature, result),
        _ => companion::failed_payload(),
    };
    companion::companion(&signature.ident, visibility, "#[function]", &payload)
}

/// The state that the attribute passed on to the second expansion.
enum State {
    Function(TokenStream, Box<ItemFn>),
    Method(usize, TokenStream, Box<syn::ItemImpl>),
}

impl Parse for State {
    fn parse(input: ParseStream) -> syn::Result<State> {
        if input.parse::<syn::Ident>()? == "method" {
            let number = input.parse::<syn::LitInt>()?.base10_parse()?;
            let options;
            syn::bracketed!(options in input);
            return Ok(State::Method(number, options.parse()?, Box::new(half_typed::parse(input.parse()?)?)));
        }
        let options;
        syn::bracketed!(options in input);
        Ok(State::Function(options.parse()?, Box::new(half_typed::parse(input.parse()?)?)))
    }
}

/// The second expansion: the graph, now that the signatures of all callees are known.
pub fn expand_traced(input: TokenStream) -> TokenStream {
    let read =
        syn::parse2::<Visited>(input).and_then(|visited| Ok((visited.known()?, syn::parse2::<State>(visited.state)?)));
    match read {
        Ok((known, State::Function(options, mut function))) => traced(options, &mut function, known),
        Ok((known, State::Method(number, options, block))) => {
            crate::model::methods::traced(number, options, &block, known)
        }
        Err(error) => {
            let errors = error.to_compile_error();
            quote!({ #errors ::tinyspec::__private::EmbeddedFunction::failed() })
        }
    }
}

/// The companion of a function that takes models.
pub fn expand_companion(input: TokenStream) -> TokenStream {
    let read =
        syn::parse2::<Visited>(input).and_then(|visited| Ok((visited.known()?, syn::parse2::<State>(visited.state)?)));
    let Ok((known, State::Function(options, function))) = read else { return TokenStream::new() };
    let mut reported = Diagnostics::default();
    let options = Options::parse(options, &mut reported).with_flags(&function.sig.inputs, &function.block);
    let first = FunctionSignature::read(&function.sig, &options, &Context::default(), &mut reported);
    let paths: Vec<CalleePath> = first.models().collect();
    let context = Context { models: models(&paths, &known), ..Context::default() };
    let signature = FunctionSignature::read(&function.sig, &options, &context, &mut reported);
    companion_of(&function.vis, &signature)
}

/// The models among the companions' answers.
pub fn models(found: &[CalleePath], known: &[Known]) -> HashMap<String, Rc<ModelType>> {
    let models = found.iter().zip(known).filter_map(|(path, known)| match known {
        Known::Model(model) => Some((path.text.clone(), model.clone())),
        _ => None,
    });
    models.collect()
}

/// The companions' answers by path: the callee's number, and what it is, unless only the next expansion knows.
pub type Told = HashMap<String, (u32, Option<Known>)>;

/// The companions' answers by path.
pub fn told(found: &[CalleePath], known: Vec<Known>) -> Told {
    let callees = found.iter().zip(known).zip(0..);
    callees.map(|((path, known), number)| (path.text.clone(), (number, Some(known)))).collect()
}

/// The function among them that has this path.
pub fn function_of<'a>(told: &'a Told, path: &str) -> Option<&'a Callee> {
    match told.get(path)? {
        (_, Some(Known::Function(callee))) => Some(callee),
        _ => None,
    }
}

fn traced(options: TokenStream, function: &mut ItemFn, known: Vec<Known>) -> TokenStream {
    // The first expansion has reported the mistakes in the signature.
    let mut reported = Diagnostics::default();
    cast::in_one_spelling(&mut function.block, &mut reported);
    let options = Options::parse(options, &mut reported).with_flags(&function.sig.inputs, &function.block);
    let first = FunctionSignature::read(&function.sig, &options, &Context::default(), &mut reported);
    let own = gradient::own(&options, &first, &mut reported);
    let own_text = own.as_ref().map(|own| own.text.clone());
    let (found, _) = all_callees(&function.sig, &function.block, &first, own, &mut reported);
    let context = Context { models: models(&found, &known), ..Context::default() };
    let mut signature = FunctionSignature::read(&function.sig, &options, &context, &mut reported);
    let mut diagnostics = Diagnostics::default();
    // A model with mistakes gets no further messages.
    let unbound = if signature.is_known() { std::mem::take(&mut signature.unbound) } else { vec![] };
    for (place, message) in unbound {
        diagnostics.error(place, message);
    }
    let known = told(&found, known);
    let own_callee = own_text.as_ref().and_then(|own| function_of(&known, own));
    if let (Some(gradient), Some(callee)) = (&options.gradient, own_callee) {
        gradient::check(&signature, callee, gradient, &mut diagnostics);
    }
    let name = &function.sig.ident;
    let outcome = outcome(&function.block, &options, &signature, &known, &mut diagnostics);
    let (is_wrong, open) = (outcome.traced.is_none(), outcome.open.filter(|_| reported.is_empty()));
    let own = own_text.and_then(|own| found.iter().find(|callee| callee.text == own));
    let callees = Callees { paths: &found, methods: &outcome.methods, own };
    let embedding =
        Embedding { traced: outcome.traced, callees, constants: &outcome.constants, is_deferred: outcome.is_deferred };
    let graph = embedded(name, embedding, &signature, &options, &mut diagnostics);
    let checks = editor::for_rustc(&outcome.checks);
    let errors = diagnostics.to_tokens();
    let copy = typed(&function.block, &options, &signature, &diagnostics);
    let parameters = emit::Parameters::of(&function.sig.inputs, &signature);
    let is_wrong = is_wrong || !reported.is_empty() || !diagnostics.is_empty();
    let copy = editor::for_rustc(&emit::checked(&signature, &parameters, (&copy, is_wrong), open));
    renamed::under(options.root, quote!({ #errors #checks #copy #graph }))
}

/// The trace of a body, or the call that stands for it.
fn outcome(
    body: &syn::Block,
    options: &Options,
    signature: &FunctionSignature,
    callees: &Told,
    diagnostics: &mut Diagnostics,
) -> trace::Outcome {
    match declared::is_declared(body) {
        true => declared::outcome(options, signature, diagnostics),
        false => trace::trace(signature, body, callees, diagnostics),
    }
}

/// The typed copy of a body, or of the call that stands for it.
fn typed(body: &syn::Block, options: &Options, signature: &FunctionSignature, diagnostics: &Diagnostics) -> syn::Block {
    match declared::is_declared(body) {
        true => declared::typed(options, signature),
        false => typed_copy::typed_copy(body, diagnostics),
    }
}

/// How a function reaches its callees.
#[derive(Clone, Copy)]
pub struct Callees<'a> {
    /// Functions and types by path.
    pub paths: &'a [CalleePath],
    /// Methods of models.
    pub methods: &'a [TokenStream],
    /// The user's own gradient, one of the paths.
    pub own: Option<&'a CalleePath>,
}

/// The result of a trace, ready to be embedded.
pub struct Embedding<'a> {
    /// The graph, unless there were mistakes.
    pub traced: Option<Traced>,
    /// How callees are reached.
    pub callees: Callees<'a>,
    /// Outer constants by number.
    pub constants: &'a Constants,
    /// The typed copy makes the graph when the function is first used.
    pub is_deferred: bool,
}

/// The value of the static behind a function; after mistakes it has no graph.
pub fn embedded(
    name: &syn::Ident,
    Embedding { mut traced, callees, constants, is_deferred }: Embedding,
    signature: &FunctionSignature,
    options: &Options,
    diagnostics: &mut Diagnostics,
) -> TokenStream {
    // Only the signature of a deferred graph is known.
    let count = if is_deferred { signature.constants.0.len() } else { constants.0.len() };
    let constants = constants.0.iter().take(count).map(|constant| editor::aside(&constant.path));
    let path = |callee: &CalleePath| {
        let path = companion::respanned(&callee.path, callee.span);
        quote!(#path::FUNCTION)
    };
    // A type is not a callee but is numbered like one.
    let nothing = quote!(&::tinyspec::__private::NO_FUNCTION);
    let is_type = |callee: &CalleePath| callee.text.starts_with("the type ");
    let paths = callees.paths.iter().map(|callee| if is_type(callee) { nothing.clone() } else { path(callee) });
    // Without a graph nothing is reached.
    let methods = if traced.is_some() { callees.methods } else { &[] };
    let shared = quote! {
        ::core::file!(),
        &[#(#paths,)* #(#methods),*],
        || {
            // rustc lints the typed copy instead.
            #[allow(arithmetic_overflow, unconditional_panic, unused_parens, clippy::all)]
            let constants = ::std::vec![#(::tinyspec::__private::constant(#constants)),*];
            constants
        },
    };
    let permissions = permissions(options);
    let (buffers, states) = (with_buffers(signature), updating(signature));
    // The graph of one alternative shows that there is a gradient.
    let backward = gradient::backward(name, traced.as_ref(), &shared, options, diagnostics).filter(|_| !is_deferred);
    let deferred = is_deferred.then(|| quote!(.deferred()));
    if let (Some(traced), true) = (&mut traced, is_deferred) {
        *traced =
            Traced { signature: signature.signature.clone(), graph: Graph::new(), calls: vec![], outputs: vec![] };
    }
    let text = name.unraw().to_string();
    let bytes = traced.filter(|_| diagnostics.is_empty()).map(|traced| traced.encode()).unwrap_or_default();
    let bytes = LitByteStr::new(&bytes, Span::call_site());
    let own = callees.own.map(path).map(|own| quote!(.with_gradient(#own)));
    // With the span of the call, where rustc reports a cycle of calls.
    let depths = callees.paths.iter().filter(|callee| !is_type(callee)).map(|callee| {
        let path = companion::respanned(&callee.path, callee.span);
        quote_spanned!(callee.span=> #path::FUNCTION.depth)
    });
    quote! {
        ::tinyspec::__private::EmbeddedFunction::new(#text, #bytes, #shared __tinyspec_typed)
            #deferred
            .above(&[#(#depths),*])
            #buffers
            #states
            #permissions
            #backward
            #own
    }
}

/// `.with_buffers(…)`: positions of inputs that are buffers.
fn with_buffers(signature: &FunctionSignature) -> Option<TokenStream> {
    let buffers = &signature.buffers;
    (!buffers.is_empty()).then(|| quote!(.with_buffers(&[#(#buffers),*])))
}

/// `.updating(…)`: which results are the new states of which inputs.
fn updating(signature: &FunctionSignature) -> Option<TokenStream> {
    let results = signature.result.as_ref().map_or(0, |result| result.tensors().len());
    let states = signature.states.iter().zip(results..).map(|(input, result)| quote!((#result, #input)));
    (!signature.states.is_empty()).then(|| quote!(.updating(&[#(#states),*])))
}

/// `.fast_math(…)`, if something is permitted, and `.strict()`, if requested.
fn permissions(options: &Options) -> TokenStream {
    let names = options.fast_math.iter().map(|permission| quote::format_ident!("{permission:?}"));
    let permitted = (!options.fast_math.is_empty()).then(|| quote!(.fast_math(&[#(::tinyspec::Permission::#names),*])));
    let strict = options.strict.then(|| quote!(.strict()));
    quote!(#permitted #strict)
}
