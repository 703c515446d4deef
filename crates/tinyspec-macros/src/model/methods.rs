//! `#[function] impl`: methods of a model that are graphs.

use super::types::ModelType;
use super::{bare, emit, fields_name, text_of_type};
use crate::diagnostics::{Diagnostics, Place};
use crate::function::callees::CalleePath;
use crate::function::companion::{self, Known, Visited};
use crate::function::emit::{Parameters, allow, result, typed};
use crate::function::options::Options;
use crate::function::signature::{Context, FunctionSignature};
use crate::function::{Callees, all_callees, embedded, functions, models, trace, typed_copy, unknown};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use std::rc::Rc;
use syn::{FnArg, GenericParam, Ident, ImplItem, ImplItemFn, ItemImpl, Type};

/// A number for a method's name, by which generic code finds it.
pub fn name_hash(name: &str) -> u64 {
    // FNV-1a: the same in every build.
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The expansion of the attribute.
pub fn expand(options: TokenStream, block: ItemImpl) -> TokenStream {
    let mut diagnostics = Diagnostics::default();
    if !options.is_empty() {
        diagnostics.error(Place::of(&options), "options stand before functions, not before an `impl`");
    }
    let Some(name) = check_block(&block, &mut diagnostics) else { return diagnostics.to_tokens() };
    let methods = methods(&block);
    let context = context(&block);
    let fields = fields_callee(&name);
    let (generics, self_type) = (emit::const_generics(&names(&context.generics)), &block.self_ty);
    let (mut inside, mut outside) = (TokenStream::new(), TokenStream::new());
    for (number, method) in methods.iter().enumerate() {
        let signature = FunctionSignature::read(&method.sig, &Options::default(), &context, &mut diagnostics);
        if let Some(constant) = signature.constants.0.first() {
            let message = format!(
                "`{}` is neither a generic of the `impl` nor a dim of the method: write a number or a name in `<…>`",
                constant.text
            );
            diagnostics.error(Place::of(&constant.path), message);
        }
        let (mut found, imports) = all_callees(&method.sig, &method.block, &signature, None, &mut diagnostics);
        found.retain(|callee| callee.text != self_text(&context));
        let mut preview = Diagnostics::default();
        trace::trace(&signature, &method.block, &unknown(&found), &mut preview);
        let copy = typed_copy::typed_copy(&method.block, &preview);
        found.insert(0, fields.clone());
        let state = quote!({ method #number #block });
        let graph = companion::visit(&found, &imports, &quote!(::tinyspec::__private::trace), &state);
        let parameters = Parameters::of(&method.sig.inputs, &signature);
        let is_wrong = !preview.is_empty();
        let typed = typed(&format_ident!("typed"), &signature, &parameters, (&copy, is_wrong));
        let (result, _) = result(&signature, &copy);
        let (attributes, visibility, ident) = (&method.attrs, &method.vis, &method.sig.ident);
        let (constant, hidden) = (graph_name(ident), hidden_name(&name, ident));
        let hash = name_hash(&ident.to_string());
        let (Parameters { declared, prelude, arguments, .. }, allow) = (&parameters, allow(is_wrong));
        let documentation = format!("The graph of [`Self::{ident}`], in the binary.");
        inside.extend(quote! {
            #[doc = #documentation]
            #[allow(dead_code)]
            #visibility const #constant: &'static ::tinyspec::function::EmbeddedFunction = #hidden;
            #(#attributes)*
            #allow
            #[track_caller]
            #visibility fn #ident(#(#declared),*) -> #result {
                #prelude
                ::tinyspec::__private::call(Self::#constant, #arguments)
            }
        });
        let arguments = impl_arguments(self_type);
        outside.extend(quote! {
            #[doc(hidden)]
            #[allow(non_upper_case_globals)]
            const #hidden: &'static ::tinyspec::function::EmbeddedFunction = {
                static A_FUNCTION_MUST_NOT_CALL_ITSELF: ::tinyspec::function::EmbeddedFunction = #graph;
                #typed
                &A_FUNCTION_MUST_NOT_CALL_ITSELF
            };
            impl #generics ::tinyspec::__private::HasFunction<#hash> for #arguments {
                const FUNCTION: &'static ::tinyspec::function::EmbeddedFunction = #hidden;
            }
        });
    }
    let last = quote!(::tinyspec::__private::model_companion);
    let mut visited = vec![fields];
    for method in &methods {
        let signature =
            FunctionSignature::read(&method.sig, &Options::default(), &context, &mut Diagnostics::default());
        for model in signature.models() {
            if model.text != self_text(&context) && visited.iter().all(|known| known.text != model.text) {
                visited.push(model);
            }
        }
    }
    let companion = companion::visit_in_module(&visited, &last, &quote!({ methods #block }));
    let errors = diagnostics.to_tokens();
    let self_type = impl_arguments(self_type);
    quote! {
        impl #generics #self_type { #inside }
        #outside
        #companion
        #errors
    }
}

/// The name of the struct, if the block can be read at all.
fn check_block(block: &ItemImpl, diagnostics: &mut Diagnostics) -> Option<Ident> {
    if let Some((path, _)) = &block.trait_ {
        diagnostics
            .error(Place::of(path), "methods of a trait have no graph: write `#[function] impl` for the struct itself");
        return None;
    }
    for generic in &block.generics.params {
        match generic {
            GenericParam::Type(parameter) if parameter.bounds.is_empty() => {}
            other => {
                diagnostics.error(
                    Place::of(other),
                    "the generics of a model are names of sizes, as in `impl<I, O> Linear<I, O>`",
                );
            }
        }
    }
    for item in &block.items {
        match item {
            ImplItem::Fn(method) => {
                if !matches!(method.sig.inputs.first(), Some(FnArg::Receiver(_))) {
                    let message =
                        "functions of a #[function] impl take `&self`; write others in an `impl` of their own";
                    diagnostics.error(Place::of(&method.sig.ident), message);
                }
            }
            other => diagnostics
                .error(Place::of(other), "a #[function] impl holds methods; write others in an `impl` of their own"),
        }
    }
    match &*block.self_ty {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.clone()),
        other => {
            diagnostics.error(Place::of(other), "a #[function] impl is that of a #[model] struct");
            None
        }
    }
}

fn methods(block: &ItemImpl) -> Vec<&ImplItemFn> {
    let methods = block.items.iter().filter_map(|item| match item {
        ImplItem::Fn(method) if matches!(method.sig.inputs.first(), Some(FnArg::Receiver(_))) => Some(method),
        _ => None,
    });
    methods.collect()
}

fn names(idents: &[Ident]) -> Vec<String> {
    idents.iter().map(ToString::to_string).collect()
}

/// What the methods of a block may refer to; the struct's fields are not known yet.
fn context(block: &ItemImpl) -> Context {
    let generics = block.generics.params.iter().filter_map(|generic| match generic {
        GenericParam::Type(parameter) => Some(parameter.ident.clone()),
        _ => None,
    });
    let self_type = match &*block.self_ty {
        Type::Path(path) => Some(path.path.clone()),
        _ => None,
    };
    Context { generics: generics.collect(), self_type, ..Context::default() }
}

fn self_text(context: &Context) -> String {
    context.self_type.as_ref().map(text_of_type).unwrap_or_default()
}

/// The struct's hidden companion, which tells its fields.
fn fields_callee(name: &Ident) -> CalleePath {
    CalleePath { path: fields_name(name).into(), text: format!("the type {name}"), span: name.span() }
}

/// Where a method's graph is, beside the method.
fn graph_name(method: &Ident) -> Ident {
    format_ident!("{}", method.to_string().to_uppercase(), span = method.span())
}

fn hidden_name(model: &Ident, method: &Ident) -> Ident {
    companion::mangled(&format_ident!("{model}_{method}", span = method.span()))
}

/// `Linear<I, O>` as it is written: its generics are const generics by now.
fn impl_arguments(self_type: &Type) -> TokenStream {
    quote!(#self_type)
}

/// The context once companions have told: the first is the struct's own.
fn known_context(block: &ItemImpl, paths: &[CalleePath], known: &[Known]) -> Context {
    let mut context = context(block);
    context.models = models(paths, known);
    if let (Some(Known::Model(fields)), Some(path)) = (known.first(), context.self_type.clone()) {
        let own = ModelType {
            name: fields.name.clone(),
            generics: fields.generics.clone(),
            fields: fields.fields.clone(),
            methods: vec![],
        };
        let own = Rc::new(own);
        context.models.insert(text_of_type(&path), own.clone());
        // Methods may call each other.
        let methods = methods(block).into_iter().map(|method| {
            let signature =
                FunctionSignature::read(&method.sig, &Options::default(), &context, &mut Diagnostics::default());
            let payload = signature.result.as_ref().filter(|_| signature.is_complete() && signature.is_known());
            let payload = payload.map(|result| companion::payload(&signature, result));
            let callee = payload.and_then(|payload| syn::parse2::<companion::Callee>(payload).ok());
            (method.sig.ident.to_string(), callee)
        });
        let methods = methods.collect();
        let own =
            ModelType { methods, name: own.name.clone(), generics: own.generics.clone(), fields: own.fields.clone() };
        context.models.insert(text_of_type(&path), Rc::new(own));
    }
    context
}

/// The graph of method number `number`.
pub fn traced(number: usize, block: &ItemImpl, known: Vec<Known>) -> TokenStream {
    let first = context(block);
    let Some(method) = methods(block).get(number).copied() else { return TokenStream::new() };
    let mut reported = Diagnostics::default();
    let signature = FunctionSignature::read(&method.sig, &Options::default(), &first, &mut reported);
    let (mut found, _) = all_callees(&method.sig, &method.block, &signature, None, &mut reported);
    found.retain(|callee| callee.text != self_text(&first));
    let Type::Path(path) = &*block.self_ty else { return TokenStream::new() };
    let own = CalleePath { path: bare(&path.path), text: text_of_type(&path.path), span: method.sig.ident.span() };
    found.insert(0, own);
    let context = known_context(block, &found, &known);
    let mut diagnostics = Diagnostics::default();
    let mut signature = FunctionSignature::read(&method.sig, &Options::default(), &context, &mut reported);
    for (place, message) in std::mem::take(&mut signature.unbound) {
        diagnostics.error(place, message);
    }
    let known = functions(&found, known);
    let outcome = trace::trace(&signature, &method.block, &known, &mut diagnostics);
    let callees = Callees { paths: &found, methods: &outcome.methods, own: None };
    let (options, typed) = (Options::default(), quote!(typed));
    let graph =
        embedded(&method.sig.ident, outcome.traced, callees, &outcome.constants, &options, &typed, &mut diagnostics);
    let checks = outcome.checks.iter().map(trace::Check::to_tokens);
    let errors = diagnostics.to_tokens();
    quote!({ #errors #(#checks)* #graph })
}

/// The struct's companion: its fields, and the signatures of its methods.
pub fn companion(block: ItemImpl, visited: &Visited) -> TokenStream {
    let Type::Path(path) = &*block.self_ty else { return TokenStream::new() };
    let Some(name) = path.path.segments.last().map(|last| &last.ident) else { return TokenStream::new() };
    let Ok(known) = visited.known() else { return TokenStream::new() };
    let first = context(&block);
    let own = CalleePath { path: bare(&path.path), text: text_of_type(&path.path), span: name.span() };
    let mut found = vec![own];
    for method in methods(&block) {
        let signature = FunctionSignature::read(&method.sig, &Options::default(), &first, &mut Diagnostics::default());
        for model in signature.models() {
            if found.iter().all(|known| known.text != model.text) {
                found.push(model);
            }
        }
    }
    let context = known_context(&block, &found, &known);
    let methods = methods(&block).into_iter().map(|method| {
        let signature =
            FunctionSignature::read(&method.sig, &Options::default(), &context, &mut Diagnostics::default());
        let payload = match &signature.result {
            Some(result) if signature.is_complete() && signature.is_known() => companion::payload(&signature, result),
            _ => companion::failed_payload(),
        };
        let name = method.sig.ident.to_string();
        quote!([#name { #payload }])
    });
    let methods: Vec<TokenStream> = methods.collect();
    let Some(fields) = visited.payloads.first() else { return TokenStream::new() };
    // As visible as the most visible method.
    let visibility = self::methods(&block)
        .into_iter()
        .map(|method| &method.vis)
        .max_by_key(|visibility| match visibility {
            syn::Visibility::Public(_) => 2,
            syn::Visibility::Restricted(_) => 1,
            syn::Visibility::Inherited => 0,
        })
        .cloned()
        .unwrap_or(syn::Visibility::Inherited);
    companion::companion(name, &visibility, "#[model]", &quote!(#fields { #(#methods)* }))
}
