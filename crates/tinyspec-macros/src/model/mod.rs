//! `#[model]`: structs of tensors and models, with declared shapes and named parameters; `#[function] impl` for their
//! methods.
//!
//! A struct can have one macro of its name, so one companion tells both its fields and its methods. Without methods the
//! struct emits it. With `#[model(functions)]` the struct emits its fields under a hidden name, and the one
//! `#[function] impl` emits the companion.
//!
//! A function over models takes their tensors as inputs, in the order of the fields. The graph of a method of another
//! type is reached without naming types, `method(|model: &Mlp| &model.fc1)`, by a hash of the method's name.

mod emit;
pub mod methods;
pub mod types;

use crate::diagnostics::{Diagnostics, Place};
use crate::function::attributes;
use crate::function::callees::CalleePath;
use crate::function::companion::{self, Visited};
use crate::function::{sizes, source, ungroup};
use crate::{editor, half_typed, renamed};
use darling::FromMeta;
use darling::ast::NestedMeta;
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::visit::Visit;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, Field, Fields, GenericArgument, GenericParam, Ident, ItemStruct, Meta, PathArguments, Type, parse_quote,
};
use types::{FieldOptions, FieldPayload, ModelType, field_type, fields_payload, model_path};

/// The options of `#[model(…)]` on a struct.
#[derive(FromMeta, Default)]
#[darling(default)]
struct StructOptions {
    functions: darling::util::Flag,
    #[darling(rename = "crate")]
    root: Option<syn::Path>,
}

/// The options of `#[model(…)]` on a field.
#[derive(FromMeta, Default)]
#[darling(default)]
struct WrittenField {
    skip: darling::util::Flag,
    none: darling::util::Flag,
    buffer: darling::util::Flag,
    len: Option<usize>,
    init: Option<syn::Expr>,
}

/// A field of a model.
pub(crate) struct ModelField {
    /// As written, without our attributes.
    pub field: Field,
    /// Its name.
    pub name: Ident,
    /// It is not part of the model.
    pub skip: bool,
    /// Its other options.
    pub options: FieldOptions,
    /// The initialisation of its tensors.
    pub init: TokenStream,
}

/// A parsed struct.
pub(crate) struct ModelStruct {
    /// As written.
    pub item: ItemStruct,
    /// Its generics.
    pub generics: Vec<String>,
    /// All fields.
    pub fields: Vec<ModelField>,
    /// It has a `#[function] impl`.
    pub functions: bool,
    /// The path of tinyspec, unless it is `::tinyspec`.
    pub root: Option<syn::Path>,
    /// Outer constants in the shapes.
    pub constants: Vec<TokenStream>,
}

/// The expansion of the attribute.
pub fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let parsed = match ungroup::parse::<ItemStruct>(item.clone()) {
        Ok(parsed) => parsed,
        Err(error) => {
            let mut diagnostics = Diagnostics::default();
            match syn::parse2::<syn::Item>(item.clone()) {
                Ok(other) => diagnostics.error(Place::of(&other), "#[model] stands before a `struct`"),
                // rustc has reported what is wrong with it.
                Err(_) if !item.is_empty() => {
                    let mended = half_typed::without_fields(item);
                    let is_readable = syn::parse2::<ItemStruct>(mended.clone()).is_ok();
                    return if is_readable { expand(options, mended) } else { TokenStream::new() };
                }
                Err(_) => diagnostics.syntax(error),
            }
            return diagnostics.to_tokens();
        }
    };
    let mut diagnostics = Diagnostics::default();
    let mut model = ModelStruct::read(options.clone(), parsed, &mut diagnostics);
    // Shapes and lengths, with what is known so far.
    let mut constants = crate::function::signature::Constants::default();
    let mut reader = crate::function::signature::TypeReader {
        owner: format!("struct {}", model.item.ident),
        parameters: &[],
        names: ModelType::dims(&model.generics),
        constants: &mut constants,
        diagnostics: &mut diagnostics,
    };
    for field in model.fields.iter().filter(|field| !field.skip) {
        field_type(&field.field.ty, field.options, None, &mut reader);
        if let Some(name) = model_path(&field.field.ty).and_then(syn::Path::get_ident)
            && source::is_plain(&model.item.ident, name)
        {
            let message = format!(
                "`{name}` is not a #[model]: write `#[model]` before its definition if it holds tensors, or `#[model(skip)]` before this field"
            );
            reader.diagnostics.error(Place::of(name), message);
        }
    }
    model.constants = constants.0.into_iter().map(|constant| constant.path).collect();
    let children = model.children();
    if let Some(itself) = children.iter().find(|child| child.path.get_ident() == Some(&model.item.ident)) {
        let message = format!("`{}` contains itself: a model has a known number of tensors", model.item.ident);
        diagnostics.error(Place::of(&itself.path), message);
        model.fields.iter_mut().for_each(|field| with_end(&mut field.field.ty, &model.item.ident));
    }
    let errors = diagnostics.to_tokens();
    if !diagnostics.is_empty() {
        let mut sizes = DefinedSizes { generics: &model.generics };
        model.fields.iter_mut().for_each(|field| sizes.visit_type_mut(&mut field.field.ty));
        let companion = companion_of(&model, &companion::failed_payload());
        let plain = emit::failed(&model);
        return renamed::under(model.root, quote!(#plain #companion #errors));
    }
    let emitted = emit::emit(&model);
    let sizes = sizes::checks(&model.generics, |sizes| {
        let parts = model.fields.iter().filter(|field| !field.skip);
        parts.for_each(|part| sizes.visit_type(&part.field.ty));
    });
    let needed = model.functions.then(|| emit::needs_functions(&model));
    let companion = if children.is_empty() {
        companion_of(&model, &payload(&model, &[]))
    } else {
        let last = quote!(::tinyspec::__private::model_companion);
        companion::visit_in_module(
            &children,
            &model.item.ident.unraw().to_string(),
            &last,
            &quote!({ fields [#options] #item }),
        )
    };
    renamed::under(model.root, quote!(#emitted #sizes #needed #companion))
}

/// The last step: a companion, once those of the fields' types have been visited.
pub fn expand_companion(input: TokenStream) -> TokenStream {
    match syn::parse2::<Visited>(input).and_then(|visited| Ok((syn::parse2::<State>(visited.state.clone())?, visited)))
    {
        Ok((State::Fields(options, item), visited)) => {
            let model = ModelStruct::read(options, *item, &mut Diagnostics::default());
            let children =
                model.children().into_iter().map(|child| child.text).zip(visited.payloads).collect::<Vec<_>>();
            let payload = payload(&model, &children);
            companion_of(&model, &payload)
        }
        Ok((State::Methods(item), visited)) => methods::companion(*item, &visited),
        Err(error) => error.to_compile_error(),
    }
}

enum State {
    Fields(TokenStream, Box<ItemStruct>),
    Methods(Box<syn::ItemImpl>),
}

impl Parse for State {
    fn parse(input: ParseStream) -> syn::Result<State> {
        let word: Ident = input.parse()?;
        if word == "methods" {
            return Ok(State::Methods(Box::new(half_typed::parse(input.parse()?)?)));
        }
        let options;
        syn::bracketed!(options in input);
        Ok(State::Fields(options.parse()?, Box::new(ungroup::parse(input.parse()?)?)))
    }
}

/// The companion for the fields: under the struct's own name, or under a hidden one if methods follow.
fn companion_of(model: &ModelStruct, payload: &TokenStream) -> TokenStream {
    let name = &model.item.ident;
    if model.functions {
        companion::companion(&fields_name(name), &syn::Visibility::Inherited, "struct", payload)
    } else {
        companion::companion(name, &model.item.vis, "#[model]", payload)
    }
}

/// The suffix of the hidden name.
pub(crate) const FIELDS: &str = "_is_no_model_with_functions";

/// The name under which a struct with methods tells its fields to its `#[function] impl`. Users who forgot
/// `#[model(functions)]` see it in an error.
pub(crate) fn fields_name(name: &Ident) -> Ident {
    format_ident!("{}{FIELDS}", name.unraw().to_string(), span = editor::aside_of(name.span()))
}

fn payload(model: &ModelStruct, children: &[(String, TokenStream)]) -> TokenStream {
    let fields: Vec<FieldPayload> = model
        .fields
        .iter()
        .filter(|field| !field.skip)
        .map(|field| {
            let path = model_path(&field.field.ty).map(text_of_type);
            let child = path.and_then(|path| children.iter().find(|(text, _)| *text == path));
            FieldPayload {
                name: field.name.to_string(),
                options: field.options,
                child: child.map(|(_, payload)| payload),
                ty: &field.field.ty,
            }
        })
        .collect();
    let skipped = model.fields.iter().filter(|field| field.skip).map(|field| field.name.to_string());
    fields_payload(&model.item.ident, &model.generics, &skipped.collect::<Vec<_>>(), &fields)
}

/// The text that identifies a model's type in a list of callees.
pub(crate) fn text_of_type(path: &syn::Path) -> String {
    format!("the type {}", crate::diagnostics::source_text(&bare(path)))
}

/// A path without generic arguments.
pub(crate) fn bare(path: &syn::Path) -> syn::Path {
    let mut path = path.clone();
    path.segments.iter_mut().for_each(|segment| segment.arguments = PathArguments::None);
    path
}

/// A model type as a callee whose companion is visited.
pub(crate) fn as_callee(path: &syn::Path) -> CalleePath {
    let span = path.segments.last().map_or_else(Span::call_site, |last| last.ident.span());
    CalleePath { path: bare(path), text: text_of_type(path), span: editor::aside_of(span) }
}

impl ModelStruct {
    fn read(options: TokenStream, mut item: ItemStruct, diagnostics: &mut Diagnostics) -> ModelStruct {
        let written = options.clone();
        let options = match NestedMeta::parse_meta_list(options).map(|metas| StructOptions::from_list(&metas)) {
            Ok(Ok(options)) => options,
            Ok(Err(error)) => {
                let span = error.span();
                let near = near(&written, &["functions", "crate"]);
                let message =
                    "the options of a model are `functions`, for a `#[function] impl` beside it, and `crate = path`";
                diagnostics.error(span, format!("{message}{near}"));
                StructOptions::default()
            }
            Err(error) => {
                diagnostics.syntax(error);
                StructOptions::default()
            }
        };
        let (functions, root) = (options.functions.is_present(), options.root);
        let mut generics = vec![];
        for parameter in &item.generics.params {
            match parameter {
                GenericParam::Type(parameter) if parameter.bounds.is_empty() => {
                    generics.push(parameter.ident.to_string())
                }
                GenericParam::Lifetime(lifetime) => {
                    let message = "a model owns what it holds: remove the lifetime, and write its fields without `&`";
                    diagnostics.error(Place::of(lifetime), message);
                }
                other => {
                    diagnostics.error(
                        Place::of(other),
                        "the generics of a model are names of sizes, as in `struct Linear<I, O>`",
                    );
                }
            }
        }
        if item.generics.lifetimes().next().is_some() {
            Static.visit_fields_mut(&mut item.fields);
        }
        let fields: Vec<ModelField> = match &item.fields {
            Fields::Named(fields) => fields.named.iter().filter_map(|field| read_field(field, diagnostics)).collect(),
            other => {
                diagnostics.error(
                    Place::of(other).to(Place::of(&item.ident)),
                    "a model has named fields: their names are those of its parameters",
                );
                vec![]
            }
        };
        let mut once: Vec<ModelField> = vec![];
        for field in fields {
            match once.iter().any(|other| other.name == field.name) {
                true => {
                    diagnostics.error(Place::of(&field.name), format!("the field `{}` is declared twice", field.name))
                }
                false => once.push(field),
            }
        }
        ModelStruct { item, generics, fields: once, functions, root, constants: vec![] }
    }

    /// The models among the fields' types, without repetition.
    pub fn children(&self) -> Vec<CalleePath> {
        let mut children: Vec<CalleePath> = vec![];
        for field in self.fields.iter().filter(|field| !field.skip) {
            if let Some(path) = model_path(&field.field.ty)
                && children.iter().all(|child| child.text != text_of_type(path))
            {
                children.push(as_callee(path));
            }
        }
        children
    }
}

/// Replaces a recursive field `L` by `Box<L>` once it has been reported: rustc would report it again, with an overflow in the
/// library's traits.
fn with_end(ty: &mut Type, itself: &Ident) {
    match ty {
        Type::Array(array) => with_end(&mut array.elem, itself),
        Type::Paren(inner) => with_end(&mut inner.elem, itself),
        Type::Path(path) if bare(&path.path).is_ident(itself) => *ty = parse_quote!(::std::boxed::Box<#ty>),
        Type::Path(path) => {
            if let Some(last) = path.path.segments.last_mut()
                && last.ident == "Option"
                && let PathArguments::AngleBracketed(arguments) = &mut last.arguments
                && let Some(GenericArgument::Type(inner)) = arguments.args.first_mut()
            {
                with_end(inner, itself);
            }
        }
        _ => {}
    }
}

/// Replaces an undefined size by a literal once it has been reported: rustc would look for a type of that name.
struct DefinedSizes<'a> {
    generics: &'a [String],
}

impl VisitMut for DefinedSizes<'_> {
    fn visit_path_segment_mut(&mut self, segment: &mut syn::PathSegment) {
        visit_mut::visit_path_segment_mut(self, segment);
        let is_model = source::is_model(&segment.ident);
        let PathArguments::AngleBracketed(sizes) = &mut segment.arguments else { return };
        for size in sizes.args.iter_mut().filter(|_| is_model) {
            if let GenericArgument::Type(Type::Path(path)) = size
                && let Some(name) = path.path.get_ident()
                && self.generics.iter().all(|generic| name != generic)
                && source::is_undefined(name)
            {
                *size = parse_quote!(0);
            }
        }
    }
}

/// The struct without its lifetimes, which are refused.
struct Static;

impl VisitMut for Static {
    fn visit_lifetime_mut(&mut self, lifetime: &mut syn::Lifetime) {
        lifetime.ident = Ident::new("static", lifetime.span());
    }
}

/// `; did you mean …?` for the first word that is not an option.
fn near(options: &TokenStream, known: &[&str]) -> String {
    let Ok(metas) = NestedMeta::parse_meta_list(options.clone()) else { return String::new() };
    let words = metas.iter().filter_map(|meta| match meta {
        NestedMeta::Meta(meta) => meta.path().get_ident().map(ToString::to_string),
        _ => None,
    });
    let unknown = words.into_iter().find(|word| !known.contains(&word.as_str()));
    let near = unknown.and_then(|word| tinyspec_ir::ops::nearest_of(&word, known.iter().copied()).map(String::from));
    near.map_or(String::new(), |near| format!("; did you mean `{near}`?"))
}

/// Whether a field's type contains a `Vec` or an `Option`.
fn has_type(ty: &syn::Type, name: &str) -> bool {
    match ty {
        syn::Type::Array(array) => has_type(&array.elem, name),
        syn::Type::Paren(inner) => has_type(&inner.elem, name),
        syn::Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == name) => true,
        ty => types::inner_type(ty).is_some_and(|inner| has_type(inner, name)),
    }
}

fn read_field(field: &Field, diagnostics: &mut Diagnostics) -> Option<ModelField> {
    let name = field.ident.clone()?;
    let mut plain = field.clone();
    let is_ours = |attribute: &Attribute| attribute.path().is_ident("model");
    plain.attrs.retain(|attribute| !is_ours(attribute) && !attributes::is_conditional(attribute));
    for attribute in field.attrs.iter().filter(|attribute| attributes::is_conditional(attribute)) {
        let message =
            "a field exists in every configuration: put the condition before a whole struct, one for each case";
        diagnostics.error(Place::of(attribute), message);
    }
    let mut written = WrittenField::default();
    for attribute in field.attrs.iter().filter(|attribute| is_ours(attribute)) {
        let Meta::List(list) = &attribute.meta else {
            diagnostics.error(
                Place::of(attribute),
                "the options of a field are `#[model(buffer)]`, `#[model(skip)]`, `#[model(len = 6)]`, `#[model(none)]` or `#[model(init = zeros)]`",
            );
            continue;
        };
        match NestedMeta::parse_meta_list(list.tokens.clone()).map(|metas| WrittenField::from_list(&metas)) {
            Ok(Ok(read)) => written = read,
            Ok(Err(error)) => {
                let near = near(&list.tokens, &["buffer", "skip", "len", "none", "init"]);
                let message = "the options of a field are `buffer` (a state that is not trained), `skip`, `len = 6` (of a `Vec`), `none` (of an `Option`) or `init = zeros`";
                diagnostics.error(error.span(), format!("{message}{near}"));
            }
            Err(error) => diagnostics.syntax(error),
        }
    }
    let misplaced = [
        (written.len.is_some() && !has_type(&field.ty, "Vec"), "len", "a `Vec`"),
        (written.none.is_present() && !has_type(&field.ty, "Option"), "none", "an `Option`"),
    ];
    for (_, option, of) in misplaced.into_iter().filter(|(is_misplaced, ..)| *is_misplaced) {
        diagnostics.error(Place::of(&field.ty), format!("`{option}` applies to {of}, not to this field"));
    }
    let init = match &written.init {
        None => quote!(default),
        Some(init) => match crate::diagnostics::source_text(init).as_str() {
            "zeros" => quote!(::tinyspec::nn::Init::Zeros),
            "ones" => quote!(::tinyspec::nn::Init::Ones),
            "xavier" => quote!(::tinyspec::nn::Init::Xavier),
            "he" => quote!(::tinyspec::nn::Init::He),
            _ => match init {
                syn::Expr::Call(call)
                    if crate::diagnostics::source_text(&*call.func) == "normal" && call.args.len() == 1 =>
                {
                    let deviation = &call.args[0];
                    quote!(::tinyspec::nn::Init::Normal(#deviation))
                }
                _ => {
                    let message = "parameters start as `zeros`, `ones`, `xavier`, `he` or `normal(0.02)`";
                    diagnostics.error(Place::of(init), message);
                    quote!(default)
                }
            },
        },
    };
    if written.buffer.is_present() && written.skip.is_present() {
        let message = "`skip` leaves the field out of the model, `buffer` makes it a part of it: choose one";
        diagnostics.error(written.skip.span(), message);
    }
    let options =
        FieldOptions { length: written.len, absent: written.none.is_present(), buffer: written.buffer.is_present() };
    let skip = written.skip.is_present() && !options.buffer;
    Some(ModelField { field: plain, name, skip, options, init })
}
