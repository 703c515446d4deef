//! Functions without a body: `#[function] fn gemm<M, K, N>(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N>;`
//! declares what a custom function takes and returns. Its graph is the call; a program registers the code under its name.

use super::options::Options;
use super::signature::{FunctionSignature, Passing, ResultType, TensorType};
use super::trace::Outcome;
use super::ungroup;
use crate::diagnostics::{Diagnostics, Place};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{Block, ForeignItemFn, ItemFn, Stmt, parse_quote};
use tinyspec_ir::custom_function::CustomFunction;
use tinyspec_ir::function::Traced;
use tinyspec_ir::{DType, Dim, Graph, Result, Shape};

/// The whole body of a function that has none, on its way through the expansions.
const NO_BODY: &str = "__tinyspec_no_body";

/// Parses a function declared without a body, and gives it a marker as its body. `None` for other items.
pub fn parse(item: TokenStream) -> Option<ItemFn> {
    let ForeignItemFn { attrs, vis, modifiers, sig, .. } = syn::parse2(item).ok()?;
    // Methods of traits are not declarations.
    sig.receiver().is_none().then_some(())?;
    let no_body = format_ident!("{NO_BODY}");
    let mut function = ItemFn { attrs, vis, modifiers, sig, block: parse_quote!({ #no_body }) };
    ungroup::Item::ungroup(&mut function);
    Some(function)
}

/// Whether a body says that there is none.
pub fn is_declared(body: &Block) -> bool {
    matches!(&body.stmts[..], [Stmt::Expr(syn::Expr::Path(path), None)] if path.path.is_ident(NO_BODY))
}

/// Reports options that do not fit the body or its absence.
pub fn check(options: &Options, signature: &FunctionSignature, is_declared: bool, diagnostics: &mut Diagnostics) {
    if !is_declared {
        if let Some(place) = options.custom.as_ref().map(Place::of).or(options.in_place.first().map(Place::of)) {
            diagnostics.error(
                place,
                "`custom` and `in_place` are for functions without a body, whose code is registered: `fn f(…) -> Tensor<…>;`",
            );
        }
        return;
    }
    let name = &signature.ident;
    if let Some(grad) = options.grad {
        let message = format!(
            "what `{name}` computes is not known here: `gradient = path` names a #[function], or the program registers its gradient"
        );
        diagnostics.error(Place::between(grad, grad), message);
    }
    if options.strict || !options.fast_math.is_empty() {
        diagnostics.error(
            Place::of(name),
            format!("what `{name}` computes is not known here: it has no `fast_math` or `strict`"),
        );
    }
    for parameter in &signature.parameters {
        if !is_passed(parameter.passing) {
            let message = format!("`{name}` has no body: it takes tensors and numbers, not `{}`", parameter.ident);
            diagnostics.error(Place::of(&parameter.ident), message);
        }
    }
    let Some(result) = signature.result.as_ref().filter(|_| signature.is_complete()) else { return };
    let results = result.tensors();
    for (number, updated) in options.in_place.iter().enumerate() {
        let parameter = signature.parameters.get(number).filter(|parameter| updated.is_ident(&parameter.ident));
        if parameter.is_none() {
            let first: Vec<String> = signature
                .parameters
                .iter()
                .map(|parameter| format!("`{}`", parameter.ident))
                .take(number + 1)
                .collect();
            let message = format!("`in_place` names the first parameters, in order: {}", first.join(", "));
            diagnostics.error(Place::of(updated), message);
            continue;
        }
        let of_input = signature.signature.inputs.get(number);
        let place = (results.len() + number).checked_sub(options.in_place.len());
        let is_returned = of_input.zip(place.and_then(|place| results.get(place)));
        if !is_returned.is_some_and(|(input, result)| input.dtype == result.dtype && input.shape == result.shape) {
            let count = options.in_place.len();
            let message = format!(
                "`{name}` returns what `in_place` updates: its last {} the type{} of its first {}",
                if count == 1 { "result has".to_string() } else { format!("{count} results have") },
                if count == 1 { "" } else { "s" },
                if count == 1 { "parameter".to_string() } else { format!("{count} parameters") },
            );
            diagnostics.error(Place::of(updated), message);
        }
    }
}

/// Whether a custom function can take such a parameter.
fn is_passed(passing: Passing) -> bool {
    matches!(passing, Passing::Tensor | Passing::Scalar)
}

/// The name under which the code is registered.
fn registered(options: &Options, signature: &FunctionSignature) -> String {
    options.custom.as_ref().map_or_else(|| signature.ident.unraw().to_string(), syn::LitStr::value)
}

/// The call as a graph, in place of the trace of a body.
pub fn outcome(options: &Options, signature: &FunctionSignature, diagnostics: &mut Diagnostics) -> Outcome {
    let traced = match signature.result.as_ref().filter(|_| signature.is_complete() && diagnostics.is_empty()) {
        Some(result) => match call(options, signature, result) {
            Ok(traced) => Some(traced),
            Err(error) => {
                diagnostics.error(Place::of(&signature.ident), format!("{}: {}", error.op(), error.message()));
                None
            }
        },
        None => None,
    };
    let constants = signature.constants.clone();
    Outcome { checks: vec![], traced, constants, methods: vec![], is_deferred: false, open: None }
}

fn call(options: &Options, signature: &FunctionSignature, result: &ResultType) -> Result<Traced> {
    let mut graph = Graph::new();
    let arguments = signature.signature.params(&mut graph)?;
    let first = arguments.len() as u32;
    let dims = &signature.signature.dims;
    let in_graph = |dim: &Dim| dim.substitute(&|slot| dims.get(slot as usize).map(|dim| dim.at(first + slot)));
    let described = |TensorType { dtype, shape }: &TensorType| (*dtype, shape.iter().map(in_graph).collect::<Shape>());
    let updated = options.in_place.len();
    let mut made: Vec<(DType, Shape)> = result.tensors().into_iter().map(described).collect();
    made.truncate(made.len().saturating_sub(updated));
    let name = registered(options, signature).as_str().into();
    let function = CustomFunction { name, made: made.len(), updated, meta: vec![] };
    let outputs = function.call(&mut graph, &made, &arguments)?;
    Ok(Traced { signature: signature.signature.clone(), graph, calls: vec![], outputs })
}

/// The typed copy: the same call at run time.
pub fn typed(options: &Options, signature: &FunctionSignature) -> Block {
    let is_plain = signature.parameters.iter().all(|parameter| is_passed(parameter.passing));
    let Some(result) = signature.result.as_ref().filter(|_| signature.is_complete() && is_plain) else {
        return parse_quote!({ ::tinyspec::__private::wrong_results() });
    };
    let name = registered(options, signature);
    let arguments = signature.parameters.iter().map(|parameter| &parameter.ident);
    let numbers = 0..result.tensors().len();
    let names: Vec<syn::Ident> = numbers.map(|number| super::emit::local(&format!("result{number}"))).collect();
    let value = grouped(result, &mut names.iter());
    parse_quote!({
        let [#(#names),*] = ::tinyspec::call_function(#name, &[], &[#(#arguments),*]);
        #value
    })
}

/// Names in the tuples of a result.
fn grouped<'n>(result: &ResultType, names: &mut impl Iterator<Item = &'n syn::Ident>) -> TokenStream {
    match result {
        ResultType::Tensor(_) => {
            let name = names.next();
            quote!(#name)
        }
        ResultType::Tuple(elements) => {
            let elements: Vec<TokenStream> = elements.iter().map(|element| grouped(element, names)).collect();
            quote!((#(#elements,)*))
        }
    }
}
