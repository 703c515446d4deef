//! `#[function] impl`: methods of a model that are graphs.

use super::types::ModelType;
use super::{bare, emit, fields_name, text_of_type};
use crate::diagnostics::{Diagnostics, Place};
use crate::function::attributes;
use crate::function::callees::CalleePath;
use crate::function::cast;
use crate::function::companion::{self, Known, Visited};
use crate::function::emit::{Parameters, allow, checked, result_type};
use crate::function::options::Options;
use crate::function::signature::{Context, FunctionSignature};
use crate::function::{
    Callees, Embedding, all_callees, embedded, function_of, gradient, models, sizes, source, told, trace, typed_copy,
    unknown,
};
use crate::{documentation, editor, renamed};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use std::rc::Rc;
use syn::ext::IdentExt;
use syn::visit::Visit;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, FnArg, GenericParam, Ident, ImplItem, ImplItemFn, ItemImpl, Meta, PathArguments, Type};

/// A hash of a method's name, by which generic code finds it.
pub fn name_hash(name: &str) -> u64 {
    // FNV-1a: the same in every build.
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The expansion of the attribute.
pub fn expand(options: TokenStream, block: ItemImpl) -> TokenStream {
    let mut diagnostics = Diagnostics::default();
    let block_options = Options::parse(options.clone(), &mut diagnostics);
    if block_options.is_of_function() {
        diagnostics
            .error(Place::of(&options), "options stand before the methods; of an `impl` there is `crate = path`");
    }
    let Some(name) = check_block(&block, &mut diagnostics) else { return diagnostics.to_tokens() };
    let methods = methods(&block, &mut diagnostics);
    if methods.iter().any(|method| source::is_plain(&method.item.sig.ident, &name)) {
        let message = format!("`{name}` is not a #[model]: write `#[model(functions)]` before its definition");
        diagnostics.error(Place::of(&name), message);
        return diagnostics.to_tokens();
    }
    let is_marked = !source::is_without_functions(&name);
    if !is_marked {
        let message = format!("`{name}` gets #[function]s here: write `#[model(functions)]` before its definition");
        diagnostics.error(Place::of(&name), message);
    }
    // A second block that the source file shows is reported here; otherwise rustc reports it.
    let is_second = methods.first().is_some_and(|first| source::is_second_block(&name, &first.item.sig.ident));
    if is_second {
        let message =
            format!("`{name}` has a `#[function] impl` already: write these methods into it, there is one for a model");
        diagnostics.error(Place::of(&name), message);
    }
    let context = context(&block);
    let owner = format!("functions_of_{}", name.unraw());
    let is_whole = is_marked && !is_second;
    let whole = Block { item: &block, options: &options, context, fields: fields_callee(&name), owner, is_whole };
    let (mut inside, mut outside) = (TokenStream::new(), TokenStream::new());
    for (number, method) in methods.iter().enumerate() {
        let (method, items) = whole.emit(number, method, &mut diagnostics);
        inside.extend(method);
        outside.extend(items);
    }
    if diagnostics.is_empty() {
        for method in &methods {
            let declared = method.item.sig.generics.type_params().map(|parameter| &parameter.ident);
            let dims: Vec<String> = whole.context.generics.iter().chain(declared).map(ToString::to_string).collect();
            outside.extend(sizes::checks(&dims, |sizes| sizes.visit_signature(&method.item.sig)));
        }
    }
    let last = quote!(::tinyspec::__private::model_companion);
    let companion = is_whole
        .then(|| companion::visit_in_module(&whole.types(&methods), &whole.owner, &last, &quote!({ methods #block })));
    let errors = diagnostics.to_tokens();
    let (generics, self_type) = (emit::const_generics(&names(&whole.context.generics)), &block.self_ty);
    // An `impl` may be for one size only.
    let sizes = (0..arguments_of(self_type)).map(|number| format_ident!("SIZE_{number}"));
    let sizes: Vec<Ident> = sizes.collect();
    let any_size = if sizes.is_empty() { TokenStream::new() } else { quote!(<#(#sizes),*>) };
    let (self_type, aside) = (impl_arguments(self_type), editor::aside(&name));
    let unlisted = editor::unlisted();
    let announced = (!is_second).then(|| {
        quote! {
            #[doc(hidden)]
            #[allow(dead_code)]
            impl<#(const #sizes: usize),*> #aside #any_size {
                #unlisted
                const ONE_FUNCTION_IMPL_HOLDS_ALL_METHODS: bool = true;
            }
        }
    });
    // Refused, but emitted, since other code may name them.
    let constants = block.items.iter().filter(|item| matches!(item, ImplItem::Const(_)));
    let items = quote! {
        impl #generics #self_type { #inside #(#constants)* }
        #announced
        #outside
        #companion
        #errors
    };
    renamed::under(block_options.root, items)
}

/// An `impl` block while its methods are expanded.
struct Block<'a> {
    item: &'a ItemImpl,
    options: &'a TokenStream,
    context: Context,
    /// The companion of the struct's fields.
    fields: CalleePath,
    /// Names what is generated for the block.
    owner: String,
    /// Whether its methods get graphs.
    is_whole: bool,
}

impl Block<'_> {
    /// The expansion of a method: items of the `impl`, and items after it.
    fn emit(&self, number: usize, method: &Method, diagnostics: &mut Diagnostics) -> (TokenStream, TokenStream) {
        let signature = method.signature(&self.context, diagnostics);
        let (own, method_options) = (gradient::own(&method.options, &signature, diagnostics), &method.options);
        let method = &method.item;
        gradient::check_floats(method_options, &signature, diagnostics);
        attributes::check(&method.sig.inputs, &method.block, diagnostics);
        let (mut found, imports) = all_callees(&method.sig, &method.block, &signature, own, diagnostics);
        found.retain(|callee| callee.text != self_text(&self.context));
        let mut preview = Diagnostics::default();
        trace::trace(&signature, &method.block, &unknown(&found), &mut preview);
        found.insert(0, self.fields.clone());
        let (options, block) = (self.options, self.item);
        let state = quote!({ method #number [#options] #block });
        let graph = match self.is_whole {
            true => companion::visit(&found, &imports, &self.owner, &quote!(::tinyspec::__private::trace), &state),
            false => quote!(::tinyspec::__private::EmbeddedFunction::failed()),
        };
        let parameters = Parameters::of(&method.sig.inputs, &signature);
        let is_wrong = !preview.is_empty() || !diagnostics.is_empty();
        let typed = editor::for_editors(|| {
            let whole = typed_copy::typed_copy(&method.block, &preview.adaptations());
            editor::body(&method.sig, method_options, &signature, &whole)
        });
        let result = result_type(&signature);
        let written = documentation::of_function(&method_options.written, &method.sig);
        let attributes = documentation::with(&method.attrs, &written, "");
        let (visibility, ident) = (&method.vis, &method.sig.ident);
        let constant = graph_name(ident);
        let hash = name_hash(&ident.to_string());
        // rustc quotes this name where a check fails.
        let graph_name = format_ident!("fn_{}", ident.unraw().to_string());
        let (declared, call, allow) =
            (&parameters.declared, parameters.call(&quote!(Self::#constant)), allow(is_wrong));
        let named = gradient::Named {
            grad: format_ident!("{}_grad", ident.unraw().to_string()),
            backward: format_ident!("{}_backward", ident.unraw().to_string()),
            function: &quote!(Self::#constant),
        };
        let nothing = TokenStream::new();
        let gradients = method_options
            .has_gradient()
            .then(|| gradient::functions(&signature, method_options, &named, &parameters, &nothing, visibility));
        let documentation = format!("The graph of [`Self::{ident}`], in the binary.");
        let inside = quote! {
            #[doc(hidden)]
            #[doc = #documentation]
            #[allow(dead_code)]
            #visibility const #constant: &'static ::tinyspec::function::EmbeddedFunction =
                <Self as ::tinyspec::__private::HasFunction<#hash>>::FUNCTION;
            #attributes
            #allow
            #[track_caller]
            #visibility fn #ident(#(#declared),*) -> #result {
                #call
            }
            #gradients
        };
        let generics = emit::const_generics(&names(&self.context.generics));
        let (arguments, unlisted) = (editor::aside(&impl_arguments(&block.self_ty)), editor::unlisted());
        let sizes = signature.constants.0.iter().map(|constant| &constant.path);
        let outside = quote! {
            const _: () = {
                #typed
                #unlisted
                #[allow(non_upper_case_globals)]
                static #graph_name: ::tinyspec::function::EmbeddedFunction = #graph;
                impl #generics ::tinyspec::__private::HasFunction<#hash> for #arguments {
                    const FUNCTION: &'static ::tinyspec::function::EmbeddedFunction = &#graph_name;
                    const SIZES: &'static [usize] = &[#(#sizes),*];
                }
            };
        };
        (inside, outside)
    }

    /// The types whose companions are visited: the struct itself, and the models that its methods take.
    fn types(&self, methods: &[Method]) -> Vec<CalleePath> {
        let mut types = vec![self.fields.clone()];
        for method in methods {
            let signature = method.signature(&self.context, &mut Diagnostics::default());
            for model in signature.models() {
                if model.text != self_text(&self.context) && types.iter().all(|known| known.text != model.text) {
                    types.push(model);
                }
            }
        }
        types
    }
}

/// The name of the struct, if the block can be read.
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
                if !is_method(item) {
                    let message = "functions of a #[function] impl take `&self` or `&mut self`; write others in a separate `impl`";
                    diagnostics.error(Place::of(&method.sig.ident), message);
                }
            }
            other => diagnostics
                .error(Place::of(other), "a #[function] impl holds methods; write others in a separate `impl`"),
        }
    }
    match &*block.self_ty {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.clone()),
        other => {
            diagnostics.error(Place::of(other), "a #[function] impl belongs to a #[model] struct");
            None
        }
    }
}

fn is_method(item: &ImplItem) -> bool {
    matches!(item, ImplItem::Fn(method) if matches!(method.sig.inputs.first(), Some(FnArg::Receiver(_))))
}

/// A method and its options.
struct Method {
    item: ImplItemFn,
    options: Options,
}

impl Method {
    fn signature(&self, context: &Context, diagnostics: &mut Diagnostics) -> FunctionSignature {
        FunctionSignature::read(&self.item.sig, &self.options, context, diagnostics)
    }
}

/// Rewrites `Self::WIDTH` as `Linear::WIDTH`, which also resolves outside the `impl`, where graphs are emitted.
struct Constants<'a>(&'a ItemImpl);

impl VisitMut for Constants<'_> {
    fn visit_path_mut(&mut self, path: &mut syn::Path) {
        visit_mut::visit_path_mut(self, path);
        let is_constant = |last: &syn::PathSegment| last.ident == last.ident.to_string().to_uppercase();
        let (Some(first), Some(last), 2) = (path.segments.first(), path.segments.last(), path.segments.len()) else {
            return;
        };
        let Type::Path(owner) = &*self.0.self_ty else { return };
        if first.ident != "Self" || !is_constant(last) {
            return;
        }
        // The trace refuses what may depend on the generics.
        if !self.0.generics.params.is_empty() {
            return;
        }
        let (span, mut segments) = (first.ident.span(), owner.path.segments.clone());
        for segment in &mut segments {
            segment.ident.set_span(span);
            if let PathArguments::AngleBracketed(sizes) = &mut segment.arguments {
                sizes.colon2_token.get_or_insert_default();
            }
        }
        segments.extend(path.segments.iter().skip(1).cloned());
        path.segments = segments;
    }
}

/// The methods with their options; our attributes are removed.
fn methods(block: &ItemImpl, diagnostics: &mut Diagnostics) -> Vec<Method> {
    let mut methods = vec![];
    for item in block.items.iter().filter(|item| is_method(item)) {
        let ImplItem::Fn(item) = item else { continue };
        let mut method = Method { item: item.clone(), options: Options::default() };
        Constants(block).visit_impl_item_fn_mut(&mut method.item);
        cast::in_one_spelling(&mut method.item.block, diagnostics);
        let is_ours =
            |attribute: &Attribute| attribute.path().segments.last().is_some_and(|last| last.ident == "function");
        method.item.attrs.retain(|attribute| !is_ours(attribute) && !attributes::is_conditional(attribute));
        for attribute in item.attrs.iter().filter(|attribute| attributes::is_conditional(attribute)) {
            let message = "the one `#[function] impl` has its methods for every configuration: put the condition before two whole ones";
            diagnostics.error(Place::of(attribute), message);
        }
        for attribute in item.attrs.iter().filter(|attribute| is_ours(attribute)) {
            match &attribute.meta {
                Meta::Path(_) => {}
                Meta::List(list) => method.options = Options::parse(list.tokens.clone(), diagnostics),
                Meta::NameValue(_) => {
                    diagnostics.error(Place::of(attribute), "options stand in parentheses: `#[function(grad)]`");
                }
            }
            if let Some(root) = &method.options.root {
                diagnostics.error(Place::of(root), "`crate = …` is given once, before the `impl`");
            }
        }
        method.options = method.options.with_flags(&method.item.sig.inputs, &method.item.block);
        methods.push(method);
    }
    methods
}

fn names(idents: &[Ident]) -> Vec<String> {
    idents.iter().map(ToString::to_string).collect()
}

/// The names that methods of a block may refer to, before the struct's fields are known.
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
    CalleePath { path: fields_name(name).into(), text: format!("the type {name}"), span: editor::aside_of(name.span()) }
}

/// The name of the item with a method's graph.
fn graph_name(method: &Ident) -> Ident {
    format_ident!("{}", method.unraw().to_string().to_uppercase(), span = editor::aside_of(method.span()))
}

/// `Linear<I, O>` as it is written: its generics are const generics by now.
fn impl_arguments(self_type: &Type) -> TokenStream {
    quote!(#self_type)
}

/// The number of sizes that the type is written with.
fn arguments_of(self_type: &Type) -> usize {
    let Type::Path(path) = self_type else { return 0 };
    match path.path.segments.last().map(|last| &last.arguments) {
        Some(syn::PathArguments::AngleBracketed(arguments)) => arguments.args.len(),
        _ => 0,
    }
}

/// The context with the companions' answers, the first of which is the struct's own.
fn known_context(block: &ItemImpl, paths: &[CalleePath], known: &[Known]) -> Context {
    let mut context = context(block);
    context.models = models(paths, known);
    if let (Some(Known::Model(fields)), Some(path)) = (known.first(), context.self_type.clone()) {
        let own = Rc::new(ModelType { methods: vec![], ..(**fields).clone() });
        context.models.insert(text_of_type(&path), own.clone());
        // Methods may call each other.
        let methods = methods(block, &mut Diagnostics::default()).into_iter().map(|method| {
            let signature = method.signature(&context, &mut Diagnostics::default());
            let payload = signature.result.as_ref().filter(|_| signature.is_complete() && signature.is_known());
            let payload = payload.map(|result| companion::payload(&signature, result));
            let callee = payload.and_then(|payload| syn::parse2::<companion::Callee>(payload).ok());
            (method.item.sig.ident.to_string(), callee)
        });
        let own = ModelType { methods: methods.collect(), ..(*own).clone() };
        context.models.insert(text_of_type(&path), Rc::new(own));
    }
    context
}

/// Traces method number `number`.
pub fn traced(number: usize, options: TokenStream, block: &ItemImpl, known: Vec<Known>) -> TokenStream {
    let first = context(block);
    let mut reported = Diagnostics::default();
    let block_options = Options::parse(options, &mut reported);
    let methods = methods(block, &mut reported);
    let Some(method) = methods.get(number) else { return TokenStream::new() };
    let signature = method.signature(&first, &mut reported);
    let own = gradient::own(&method.options, &signature, &mut reported);
    let own_text = own.as_ref().map(|own| own.text.clone());
    let (mut found, _) = all_callees(&method.item.sig, &method.item.block, &signature, own, &mut reported);
    found.retain(|callee| callee.text != self_text(&first));
    let Type::Path(path) = &*block.self_ty else { return TokenStream::new() };
    let own = CalleePath { path: bare(&path.path), text: text_of_type(&path.path), span: method.item.sig.ident.span() };
    found.insert(0, own);
    let context = known_context(block, &found, &known);
    let mut diagnostics = Diagnostics::default();
    let mut signature = method.signature(&context, &mut reported);
    // A model with mistakes gets no further messages.
    let unbound = if signature.is_known() { std::mem::take(&mut signature.unbound) } else { vec![] };
    for (place, message) in unbound {
        diagnostics.error(place, message);
    }
    let known = told(&found, known);
    let own_callee = own_text.as_ref().and_then(|own| function_of(&known, own));
    if let (Some(gradient), Some(callee)) = (&method.options.gradient, own_callee) {
        gradient::check(&signature, callee, gradient, &mut diagnostics);
    }
    let outcome = trace::trace(&signature, &method.item.block, &known, &mut diagnostics);
    let (is_wrong, open) = (outcome.traced.is_none(), outcome.open.filter(|_| reported.is_empty()));
    let own = own_text.and_then(|own| found.iter().find(|callee| callee.text == own));
    let callees = Callees { paths: &found, methods: &outcome.methods, own };
    let body =
        Embedding { traced: outcome.traced, callees, constants: &outcome.constants, is_deferred: outcome.is_deferred };
    let graph = embedded(&method.item.sig.ident, body, &signature, &method.options, &mut diagnostics);
    let checks = editor::for_rustc(&outcome.checks);
    let errors = diagnostics.to_tokens();
    let copy = typed_copy::typed_copy(&method.item.block, &diagnostics);
    let parameters = Parameters::of(&method.item.sig.inputs, &signature);
    let is_wrong = is_wrong || !reported.is_empty() || !diagnostics.is_empty();
    let copy = editor::for_rustc(&checked(&signature, &parameters, (&copy, is_wrong), open));
    renamed::under(block_options.root, quote!({ #errors #checks #copy #graph }))
}

/// The struct's companion: its fields, and the signatures of its methods.
pub fn companion(block: ItemImpl, visited: &Visited) -> TokenStream {
    let Type::Path(path) = &*block.self_ty else { return TokenStream::new() };
    let Some(name) = path.path.segments.last().map(|last| &last.ident) else { return TokenStream::new() };
    let Ok(known) = visited.known() else { return TokenStream::new() };
    let first = context(&block);
    let own = CalleePath { path: bare(&path.path), text: text_of_type(&path.path), span: name.span() };
    let mut found = vec![own];
    let methods = methods(&block, &mut Diagnostics::default());
    for method in &methods {
        let signature = method.signature(&first, &mut Diagnostics::default());
        for model in signature.models() {
            if found.iter().all(|known| known.text != model.text) {
                found.push(model);
            }
        }
    }
    let context = known_context(&block, &found, &known);
    let payloads = methods.iter().map(|method| {
        let signature = method.signature(&context, &mut Diagnostics::default());
        let payload = match &signature.result {
            Some(result) if signature.is_complete() && signature.is_known() => companion::payload(&signature, result),
            _ => companion::failed_payload(),
        };
        let name = method.item.sig.ident.to_string();
        quote!([#name { #payload }])
    });
    let payloads: Vec<TokenStream> = payloads.collect();
    let Some(fields) = visited.payloads.first() else { return TokenStream::new() };
    // As visible as the most visible method.
    let visibility = methods
        .iter()
        .map(|method| &method.item.vis)
        .max_by_key(|visibility| match visibility {
            syn::Visibility::Public(_) => 2,
            syn::Visibility::Restricted(_) => 1,
            syn::Visibility::Inherited => 0,
        })
        .cloned()
        .unwrap_or(syn::Visibility::Inherited);
    companion::companion(name, &visibility, "#[model]", &quote!(#fields { #(#payloads)* }))
}
