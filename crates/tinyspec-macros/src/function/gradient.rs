//! `#[function(grad)]`: the backward function, derived while rustc compiles; `#[function(gradient = path)]`: the user's own.

use super::callees::CalleePath;
use super::companion::Callee;
use super::emit::{Parameters, local};
use super::options::Options;
use super::signature::{FunctionSignature, Passing, ResultType, TensorType};
use crate::diagnostics::{Diagnostics, Place, source_text};
use crate::editor;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{LitByteStr, Visibility};
use tinyspec_ir::dim;
use tinyspec_ir::function::Traced;
use tinyspec_ir::signature::{Input, show_type};

/// The user's own gradient: an ordinary callee, whose signature must fit.
pub fn own(options: &Options, signature: &FunctionSignature, diagnostics: &mut Diagnostics) -> Option<CalleePath> {
    let path = options.gradient.as_ref()?;
    if let Some(parameter) =
        signature.parameters.iter().find(|parameter| matches!(parameter.passing, Passing::Updated(_)))
    {
        let message = format!(
            "only a function that changes nothing can have a gradient of its own: take `{}` by `&`, and return the new states",
            parameter.ident
        );
        diagnostics.error(Place::of(path), message);
        return None;
    }
    if let Some(grad) = options.grad {
        let message = "`grad` derives the gradient, `gradient = …` names your own: choose one";
        diagnostics.error(Place::between(grad, grad), message);
    }
    if path.get_ident() == Some(&signature.ident) {
        diagnostics.error(Place::of(path), format!("`{}` is not its own gradient", signature.ident));
        return None;
    }
    let span = path.segments.last().map_or_else(Span::call_site, |last| last.ident.span());
    Some(CalleePath { path: path.clone(), text: format!("the gradient {}", source_text(path)), span })
}

/// Gradients exist for float results, with respect to float inputs.
pub fn check_floats(options: &Options, signature: &FunctionSignature, diagnostics: &mut Diagnostics) {
    let (Some(grad), Some(result)) = (options.grad, &signature.result) else { return };
    let name = &signature.ident;
    let message = if result.tensors().iter().all(|tensor| !tensor.dtype.is_float()) {
        format!("`{name}` has no gradient: it returns no floats")
    } else if !signature.has_models() && signature.signature.inputs.iter().all(|input| !input.dtype.is_float()) {
        format!("`{name}` has no gradient: no parameter is a float")
    } else {
        return;
    };
    if signature.is_complete() {
        diagnostics.error(Place::between(grad, grad), message);
    }
}

/// The gradient takes the inputs and a cotangent for each float result, and returns a tensor for each float input.
pub fn check(signature: &FunctionSignature, gradient: &Callee, path: &syn::Path, diagnostics: &mut Diagnostics) {
    let Some(result) = &signature.result else { return };
    let inputs = signature.signature.inputs.iter().map(|input| (input.dtype, input.shape.clone()));
    let cotangents = result.tensors().into_iter().filter(|tensor| tensor.dtype.is_float());
    let given: Vec<_> = inputs.chain(cotangents.map(|tensor| (tensor.dtype, tensor.shape.clone()))).collect();
    let names: Vec<(u32, String)> = (0..).zip(signature.signature.dims.iter().map(|dim| dim.name.clone())).collect();
    let (name, place) = (source_text(path), Place::of(path));
    let types = |types: &[(tinyspec_ir::DType, tinyspec_ir::Shape)]| {
        let shown: Vec<String> =
            dim::with_names(&names, || types.iter().map(|(dtype, shape)| show_type(*dtype, shape)).collect());
        shown.join(", ")
    };
    let takes =
        format!("the gradient of `{}` takes its parameters and a cotangent for each float result", signature.ident);
    let bound = match dim::with_names(&names, || gradient.signature.bind(&given)) {
        Ok(bound) => bound,
        Err(mismatches) => {
            let why: Vec<String> =
                mismatches.iter().map(|mismatch| format!("\n  {}", mismatch.error.message())).collect();
            let message = format!("`{name}` does not fit: {takes}, ({}){}", types(&given), why.concat());
            return diagnostics.error(place, message);
        }
    };
    let value = |slot: u32| bound.get(slot as usize).cloned();
    let returned: Vec<_> = gradient
        .result
        .tensors()
        .into_iter()
        .map(|tensor| (tensor.dtype, tensor.shape.iter().map(|dim| dim.substitute(&value)).collect()))
        .collect();
    let inputs = signature.signature.inputs.iter().enumerate();
    let floats = inputs.filter(|(number, input)| input.dtype.is_float() && !signature.buffers.contains(number));
    let floats = floats.map(|(_, input)| input);
    let wanted: Vec<_> = floats.map(|input| (input.dtype, input.shape.clone())).collect();
    if returned != wanted {
        let message = format!(
            "`{name}` does not fit: the gradient of `{}` returns a tensor for each float parameter, ({}), found ({})",
            signature.ident,
            types(&wanted),
            types(&returned)
        );
        diagnostics.error(place, message);
    }
}

/// `.with_backward(…)`, if it is asked for.
pub fn backward(
    name: &syn::Ident,
    traced: Option<&Traced>,
    shared: &TokenStream,
    options: &Options,
    diagnostics: &mut Diagnostics,
) -> Option<TokenStream> {
    let grad = options.grad.filter(|_| options.gradient.is_none())?;
    let backward = match traced?.backward() {
        Ok(backward) => backward,
        Err(error) => {
            let mut message = format!("`{name}` has no gradient: {}: {}", error.op(), error.message());
            if let Some(help) = error.suggestion() {
                message += &format!("\n  help: {help}");
            }
            diagnostics.error(Place::between(grad, grad), message);
            return None;
        }
    };
    let permissions = super::permissions(options);
    let (text, bytes) = (format!("{name}::grad"), LitByteStr::new(&backward.encode(), Span::call_site()));
    Some(quote! {
        .with_backward({
            static BACKWARD: ::tinyspec::function::EmbeddedFunction =
                ::tinyspec::__private::EmbeddedFunction::new(#text, #bytes, #shared |_, _, _| ::std::vec![])
                    #permissions;
            &BACKWARD
        })
    })
}

/// The names of a gradient's functions, and the function they belong to.
pub struct Named<'a> {
    /// `grad`
    pub grad: syn::Ident,
    /// `backward`
    pub backward: syn::Ident,
    /// The path of the graph.
    pub function: &'a TokenStream,
}

/// The results that have cotangents.
fn float_results(result: &ResultType) -> Vec<&TensorType> {
    result.tensors().into_iter().filter(|tensor| tensor.dtype.is_float()).collect()
}

/// The inputs that have gradients, unless models are among the parameters.
fn float_inputs(signature: &FunctionSignature) -> impl Iterator<Item = &Input> {
    signature.signature.inputs.iter().filter(|input| input.dtype.is_float())
}

/// A float of shape `()`: its cotangent is 1.
fn is_loss(result: &ResultType) -> bool {
    matches!(result.tensors()[..], [one] if one.dtype.is_float() && one.shape.is_empty())
}

/// The inputs that have gradients, in words.
fn wanted(signature: &FunctionSignature) -> String {
    if signature.has_models() {
        return "every float tensor but buffers, in order".to_string();
    }
    float_inputs(signature).map(|input| format!("`{}`", input.name)).collect::<Vec<_>>().join(", ")
}

/// A paragraph for the documentation of a function, because its gradients have no page of their own.
pub fn described(signature: &FunctionSignature, options: &Options) -> String {
    let Some(result) = signature.result.as_ref().filter(|_| signature.is_complete()) else { return String::new() };
    if !options.has_gradient() {
        return String::new();
    }
    let (name, parameters, wanted) = (&signature.ident, signature.names.join(", "), wanted(signature));
    let cotangents: String = match float_results(result).len() {
        1 => ", cotangent".to_string(),
        count => (0..count).map(|number| format!(", cotangent_{number}")).collect(),
    };
    let grad = match is_loss(result) {
        true => format!("`{name}::grad({parameters})`; with a cotangent: "),
        false => String::new(),
    };
    format!("\n\nGradients with respect to {wanted}: {grad}`{name}::backward({parameters}{cotangents})`")
}

/// `mlp::grad` and `mlp::backward`, for a method `loss_grad` and `loss_backward`. Without `grad` they
/// exist only so that rustc rejects calls with a message that says what to write.
pub fn functions(
    signature: &FunctionSignature,
    options: &Options,
    named: &Named,
    parameters: &Parameters,
    generics: &TokenStream,
    visibility: &Visibility,
) -> Option<TokenStream> {
    let result = signature.result.as_ref().filter(|_| signature.is_complete())?;
    let Named { grad: grad_name, backward, function } = named;
    let (floats, wanted) = (float_results(result), wanted(signature));
    let is_absent = !options.has_gradient();
    if is_absent && (floats.is_empty() || !signature.has_models() && float_inputs(signature).next().is_none()) {
        return None;
    }
    // rustc refuses a bound without a lifetime at the definition, not at the use.
    let bound = is_absent.then(|| quote!(where for<'a> Self: ::tinyspec::__private::HasGradient<'a>));
    let unlisted = is_absent.then(|| {
        let unlisted = editor::unlisted();
        quote!(#[doc(hidden)] #unlisted)
    });
    let (gradients, call) = if signature.has_models() {
        // The number of tensors of a model is not known here.
        (quote!(::std::vec::Vec<::tinyspec::Tensor>), quote!(gradients))
    } else {
        let count = float_inputs(signature).count();
        (quote!([::tinyspec::Tensor; #count]), quote!(call_gradient))
    };
    let Parameters { shared, arguments, flags, .. } = parameters;
    let prelude = parameters.prelude(function);
    let grad = is_loss(result).then(|| {
        let documentation = format!("The gradients of the loss with respect to {wanted}.");
        let (one, dtype) = (local("one"), quote::format_ident!("{}", format!("{:?}", floats[0].dtype)));
        quote! {
            #[doc = #documentation]
            #unlisted
            #[track_caller]
            #visibility fn #grad_name #generics (#(#shared),*) -> #gradients #bound {
                let #one = ::tinyspec::Tensor::full_of((), 1, ::tinyspec::DType::#dtype);
                #prelude
                ::tinyspec::__private::#call(#function #flags, #arguments, &[&#one])
            }
        }
    });
    let cotangents: Vec<syn::Ident> = (0..floats.len()).map(|number| local(&format!("cotangent_{number}"))).collect();
    let documentation =
        format!("The gradients with respect to {wanted}, given a cotangent for each float result: the backward pass.");
    Some(quote! {
        #grad
        #[doc = #documentation]
        #unlisted
        #[allow(clippy::too_many_arguments)]
        #[track_caller]
        #visibility fn #backward #generics (
            #(#shared,)* #(#cotangents: &::tinyspec::Tensor),*
        ) -> #gradients #bound {
            #prelude
            ::tinyspec::__private::#call(#function #flags, #arguments, &[#(#cotangents),*])
        }
    })
}
