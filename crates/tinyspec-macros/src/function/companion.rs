//! The companion macro: how a function's signature reaches the functions that call it.
//!
//! A `macro_rules!` with the function's name passes the signature to the callback that its caller names, so every
//! import of the function also imports its signature.

use super::callees::CalleePath;
use super::signature::{FunctionSignature, Passing, ResultType, TensorType};
use crate::editor;
use crate::model::types::{ModelType, OF_MODEL};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, LitByteStr, LitStr, Token, Visibility};
use tinyspec_ir::function::{FIRST_CONSTANT, Traced};
use tinyspec_ir::signature::{NamedDim, Signature};
use tinyspec_ir::{Arg, Builder, Dim, Graph, Op};

/// The version of the encoding of signatures; other versions are refused.
pub const PROTOCOL: &str = "tinyspec1";

/// A function as its callers know it.
#[derive(Clone)]
pub struct Callee {
    /// Name, dims and inputs. The dims that the function declares are followed by the constants of its scope. A
    /// caller's arguments bind both; a size bound to a constant must equal its value.
    pub signature: Signature,
    /// The number of dims it declares.
    pub declared: usize,
    /// Numbers of the constants in the shapes of models: the caller's models have the same ones.
    pub of_models: Vec<usize>,
    /// How each input is passed.
    pub passing: Vec<Passing>,
    /// Its result type.
    pub result: ResultType,
}

/// The signature as tokens: its bytes, how inputs are passed, how results are grouped, names of constants.
pub fn payload(signature: &FunctionSignature, result: &ResultType) -> TokenStream {
    let passing = signature.parameters.iter().map(|parameter| parameter.passing);
    let constants: Vec<&str> = signature.constants.0.iter().map(|constant| constant.text.as_str()).collect();
    payload_of(&signature.signature, passing, result, &constants)
}

/// As [`payload`], of the parts of a signature.
pub fn payload_of(
    signature: &Signature,
    passing: impl Iterator<Item = Passing>,
    result: &ResultType,
    constants: &[&str],
) -> TokenStream {
    // Results are Params of a graph without a body.
    let mut graph = Graph::new();
    let outputs = (0..).zip(result.tensors()).map(|(slot, tensor)| {
        let arg = Arg::Param { slot, dtype: tensor.dtype, device: None, addrspace: None };
        let shape = graph.shape(&tensor.shape)?;
        graph.add(Op::Param, &[shape], arg)
    });
    let outputs: Vec<_> = outputs.collect::<tinyspec_ir::Result<_>>().unwrap_or_default();
    let bytes = Traced { signature: signature.clone(), graph, calls: vec![], outputs }.encode();
    let bytes = LitByteStr::new(&bytes, Span::call_site());
    let passing: String = passing
        .map(|passing| match passing {
            Passing::Tensor => "t".to_string(),
            Passing::Scalar => "s".to_string(),
            Passing::Flag => "b".to_string(),
            Passing::Model(tensors) => format!("m{tensors}"),
            Passing::Updated(tensors) => format!("u{tensors}"),
        })
        .collect();
    let result = grouping(result);
    quote!(#bytes #passing #result #(#constants)*)
}

/// `t` for a tensor, `(tt)` for a pair.
fn grouping(result: &ResultType) -> String {
    match result {
        ResultType::Tensor(_) => "t".to_string(),
        ResultType::Tuple(elements) => format!("({})", elements.iter().map(grouping).collect::<String>()),
    }
}

fn grouped(text: &mut std::str::Chars, tensors: &mut impl Iterator<Item = TensorType>) -> Option<ResultType> {
    match text.next()? {
        't' => Some(ResultType::Tensor(tensors.next()?)),
        '(' => {
            let mut elements = vec![];
            while !text.as_str().starts_with(')') {
                elements.push(grouped(text, tensors)?);
            }
            text.next();
            Some(ResultType::Tuple(elements))
        }
        _ => None,
    }
}

/// The payload for a signature with mistakes, which callers do not report again.
pub fn failed_payload() -> TokenStream {
    quote!(failed)
}

/// The payload for a kernel that updates its arguments, which a function cannot call.
pub fn updating_payload() -> TokenStream {
    quote!(updating)
}

/// The payload for a kernel with dtype parameters, which a function cannot call: its graph has one dtype.
pub fn generic_payload() -> TokenStream {
    quote!(generic)
}

/// A callee's signature, unless it has mistakes.
pub struct MaybeCallee(pub Option<Callee>);

impl Parse for MaybeCallee {
    fn parse(input: ParseStream) -> syn::Result<MaybeCallee> {
        Ok(MaybeCallee(match input.parse::<Option<Ident>>()? {
            Some(_) => None,
            None => Some(input.parse()?),
        }))
    }
}

/// `tsm12u3`: a tensor, a scalar, a model of 12 tensors, and one of 3 whose buffers change.
fn read_passing(text: &str) -> Vec<Passing> {
    let mut passing = vec![];
    for c in text.chars() {
        match (c, passing.last_mut()) {
            ('t', _) => passing.push(Passing::Tensor),
            ('s', _) => passing.push(Passing::Scalar),
            ('b', _) => passing.push(Passing::Flag),
            ('m', _) => passing.push(Passing::Model(0)),
            ('u', _) => passing.push(Passing::Updated(0)),
            (digit, Some(Passing::Model(count) | Passing::Updated(count))) => {
                *count = *count * 10 + digit.to_digit(10).unwrap_or(0) as usize
            }
            _ => {}
        }
    }
    passing
}

/// The item that a companion describes.
pub enum Known {
    /// A function or a kernel.
    Function(Box<Callee>),
    /// A struct of tensors.
    Model(Rc<ModelType>),
    /// A kernel that updates its arguments.
    Updating,
    /// A kernel with dtype parameters.
    Generic,
    /// An item with mistakes, which are reported there.
    Failed,
}

impl Parse for Known {
    fn parse(input: ParseStream) -> syn::Result<Known> {
        match input.parse::<Option<Ident>>()? {
            Some(word) if word == "model" => Ok(Known::Model(Rc::new(input.parse()?))),
            Some(word) if word == "updating" => Ok(Known::Updating),
            Some(word) if word == "generic" => Ok(Known::Generic),
            Some(_) => Ok(Known::Failed),
            None => Ok(Known::Function(Box::new(input.parse()?))),
        }
    }
}

impl Parse for Callee {
    fn parse(input: ParseStream) -> syn::Result<Callee> {
        let damaged = || syn::Error::new(Span::call_site(), "the callee was compiled by another version of tinyspec");
        let mut traced = Traced::decode(&input.parse::<LitByteStr>()?.value(), "").map_err(|_| damaged())?;
        let passing = input.parse::<LitStr>()?.value();
        let passing = read_passing(&passing);
        let mut tensors = traced.outputs.iter().map(|&output| TensorType {
            dtype: traced.graph.dtype(output),
            shape: traced.graph.props(output).shape.clone(),
        });
        let grouping = input.parse::<LitStr>()?.value();
        let mut result = grouped(&mut grouping.chars(), &mut tensors).ok_or_else(damaged)?;
        let declared = traced.signature.dims.len();
        let mut of_models = vec![];
        while !input.is_empty() {
            let text = input.parse::<LitStr>()?.value();
            let name = text.strip_prefix(OF_MODEL);
            if name.is_some() {
                of_models.push(traced.signature.dims.len() - declared);
            }
            traced.signature.dims.push(NamedDim::new(name.unwrap_or(&text)));
        }
        let as_dim = |slot: u32| {
            let number = slot.checked_sub(FIRST_CONSTANT)?;
            Some(Dim::named(declared as u32 + number, 1, NamedDim::MAX))
        };
        for input in &mut traced.signature.inputs {
            input.shape = input.shape.iter().map(|dim| dim.substitute(&as_dim)).collect();
        }
        result.substitute(&as_dim);
        Ok(Callee { signature: traced.signature, declared, of_models, passing, result })
    }
}

/// The companion of a function.
pub fn companion(name: &Ident, visibility: &Visibility, what: &str, payload: &TokenStream) -> TokenStream {
    let mangled = mangled(name);
    // Only `pub` items can be reached from other crates.
    let export = matches!(visibility, Visibility::Public(_)).then(|| quote!(#[macro_export]));
    let protocol = format_ident!("{PROTOCOL}");
    let (unlisted, aside, reach) = (editor::unlisted(), editor::aside(name), reach(visibility));
    let refusal = format!("`{name}` is a {what}, not a macro: call it as `{name}(…)`");
    quote! {
        #[doc(hidden)]
        #unlisted
        #export
        #[allow(unused_macros, non_local_definitions)]
        macro_rules! #mangled {
            (@#protocol [$($callback:tt)*] $($rest:tt)*) => { $($callback)* ! { { #payload } $($rest)* } };
            ($($anything:tt)*) => { ::core::compile_error! { #refusal } };
        }
        #[doc(hidden)]
        #[allow(unused_imports)]
        #reach use #mangled as #aside;
    }
}

/// The visibility of the items generated with a function: at least the crate, so that rustc refuses a call of a private
/// function by the function's own name and not by that of a generated item.
pub fn reach(visibility: &Visibility) -> TokenStream {
    match visibility {
        Visibility::Public(_) => quote!(pub),
        Visibility::Restricted(_) | Visibility::Inherited => quote!(pub(crate)),
    }
}

/// A unique name, even if several functions share a name or a line.
pub fn mangled(name: &Ident) -> Ident {
    format_ident!("__tinyspec_{}_{:016x}", name.unraw().to_string(), place_hash(name))
}

/// A hash of a name's location.
pub fn place_hash(name: &Ident) -> u64 {
    let span = name.span();
    let mut hasher = DefaultHasher::new();
    (span.file(), span.start().line, span.start().column, format!("{:?}", Span::call_site())).hash(&mut hasher);
    hasher.finish()
}

/// Calls the first companion in expression position; each calls the next one, and the last one calls `last!`.
pub fn visit(
    callees: &[CalleePath],
    imports: &[syn::ItemUse],
    owner: &str,
    last: &TokenStream,
    state: &TokenStream,
) -> TokenStream {
    let Chain { aliases, call, instead } = chain(callees, owner, last, state);
    // An editor parses a macro that it does not find as a statement, unless it can only be a value.
    let call = if editor::is_asking() { quote!((#call)) } else { call };
    let visited = quote!({ #(#imports)* #aliases #call });
    // Names of the inner block shadow those of the outer one.
    match instead.is_empty() {
        true => visited,
        false => quote!({ #instead #visited }),
    }
}

/// As [`visit`], in item position.
pub fn visit_in_module(callees: &[CalleePath], owner: &str, last: &TokenStream, state: &TokenStream) -> TokenStream {
    let Chain { aliases, call, .. } = chain(callees, owner, last, state);
    quote!(#aliases #call)
}

/// The call of the first companion, and the items that it needs.
#[derive(Default)]
struct Chain {
    /// Imports of the companions that are reached by paths.
    aliases: TokenStream,
    call: TokenStream,
    /// Macros with the aliases' names, for paths without a macro.
    instead: TokenStream,
}

fn chain(callees: &[CalleePath], owner: &str, last: &TokenStream, state: &TokenStream) -> Chain {
    let protocol = format_ident!("{PROTOCOL}");
    let (mut aliases, mut instead) = (TokenStream::new(), TokenStream::new());
    let mut names = vec![];
    for (number, callee) in callees.iter().enumerate() {
        let Some(mut ident) = callee.path.segments.last().map(|segment| segment.ident.clone()) else { continue };
        ident.set_span(callee.span);
        let name = ident.unraw().to_string();
        let is_model = name.starts_with(char::is_uppercase);
        // Importing a single name may be ambiguous where using it is not: with a crate of that name.
        if callee.path.get_ident().is_some() {
            names.push(quote!(#ident));
            continue;
        }
        // rustc quotes the name of an import that is not a macro, so the name says what it should be.
        let is_taken = callees[..number]
            .iter()
            .any(|other| other.path.segments.last().is_some_and(|other| other.ident.unraw() == name));
        let suffix = if is_taken { format!("_{number}") } else { String::new() };
        // In a module, imports need unique names: `owner` is one.
        let what = if is_model { format!("model_for_{owner}") } else { "function".to_string() };
        let alias = Ident::new(&format!("{name}_needs_the_attribute_{what}{suffix}"), callee.span);
        let path = respanned(&callee.path, callee.span);
        aliases
            .extend(quote_spanned!(callee.span=> #[allow(unused_imports, non_camel_case_types)] use #path as #alias;));
        if !is_model && !editor::is_asking() {
            instead.extend(refused(callee, &alias, number));
        }
        names.push(quote!(#alias));
    }
    let Some((first, rest)) = names.split_first() else { return Default::default() };
    let span = callees[0].span;
    let call =
        quote_spanned!(span=> #first ! { @#protocol [::tinyspec::__private::hop] [#([#rest])*] [] [#last] #state });
    Chain { aliases, call, instead }
}

/// The fallback for `alias` where the path of a callee leads to a function without a companion. It fails when
/// evaluated, not when expanded, since rustc itself reports a path that leads nowhere.
fn refused(callee: &CalleePath, alias: &Ident, number: usize) -> TokenStream {
    let path = callee.path.segments.iter().map(|segment| segment.ident.to_string()).collect::<Vec<_>>().join("::");
    let message = format!(
        "`{path}` is not a #[function]: only these are traced. Write `#[function]` before it, with the shapes of its tensors, \
         or call it outside"
    );
    let name = format_ident!("__tinyspec_instead_{number}");
    let refuse = quote_spanned!(callee.span=> ::tinyspec::__private::refuse(#message));
    quote! {
        #[allow(unused_macros)]
        macro_rules! #name {
            ($($anything:tt)*) => { { #refuse; loop {} } };
        }
        #[allow(unused_imports, non_camel_case_types)]
        use #name as #alias;
    }
}

/// A path with another span, so that editors do not take it for the user's.
pub fn respanned(path: &syn::Path, span: Span) -> TokenStream {
    let colon = path.leading_colon.map(|_| quote_spanned!(span=> ::));
    let segments = path.segments.iter().map(|segment| {
        let mut ident = segment.ident.clone();
        ident.set_span(span);
        ident
    });
    quote_spanned!(span=> #colon #(#segments)::*)
}

/// The results of a chain of companions.
pub struct Visited {
    /// The payload of each, in order.
    pub payloads: Vec<TokenStream>,
    /// The state that [`visit`] passed through.
    pub state: TokenStream,
}

impl Visited {
    /// The payloads, parsed.
    ///
    /// # Errors
    /// When a companion is of another version.
    pub fn known(&self) -> syn::Result<Vec<Known>> {
        self.payloads.iter().map(|payload| syn::parse2(payload.clone())).collect()
    }
}

impl Parse for Visited {
    fn parse(input: ParseStream) -> syn::Result<Visited> {
        let known;
        syn::bracketed!(known in input);
        let mut payloads = vec![];
        while !known.is_empty() {
            let payload;
            syn::braced!(payload in known);
            payloads.push(payload.parse()?);
        }
        let state;
        syn::braced!(state in input);
        let _ = input.parse::<Option<Token![,]>>()?;
        Ok(Visited { payloads, state: state.parse()? })
    }
}
