//! The expansion of a kernel: a function to call, and, under its name, the graph of the call as a `FUNCTION` like those
//! of `#[function]`, so that each can be called from the other's body.

use super::syntax::{Kernel, Parameter, ParameterKind};
use super::trace::Traced;
use crate::diagnostics::Diagnostics;
use crate::function::companion;
use crate::function::signature::{Passing, ResultType, TensorType};
use crate::{documentation, editor};
use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use std::sync::Arc;
use tinyspec_ir::function::FIRST_CONSTANT;
use tinyspec_ir::kernel::WrittenKernel;
use tinyspec_ir::signature::{Input, NamedDim, Signature};
use tinyspec_ir::{Arg, Builder, DType, Dim, Graph, Location, NodeId, Result, Shape, ops};

/// The items of one kernel, given for each choice of its dtypes. They are emitted without a graph too, so that callers
/// get no second error.
pub fn emit(variants: &[(&Kernel, Option<&Traced>)], diagnostics: &mut Diagnostics) -> TokenStream {
    let &[(kernel, traced), ..] = variants else { return TokenStream::new() };
    let gradient = kernel.gradient.as_ref().map(|path| quote!(.with_gradient(#path::FUNCTION)));
    let (name, visibility, unlisted) = (&kernel.name, &kernel.visibility, editor::unlisted());
    let aside = editor::aside(name);
    let attributes = documentation::with(&kernel.attributes, &kernel.written, "");
    let mut graphs = variants.iter().map(|&(kernel, traced)| embedded(kernel, traced, diagnostics));
    let first = graphs.next();
    let others: Vec<TokenStream> = graphs.collect();
    let constants = traced.map_or(&[][..], |traced| &traced.constants);
    let mut parameters = Vec::new();
    let mut arguments = Vec::new();
    let mut updates = Vec::new();
    let mut results = Vec::new();
    for (position, Parameter { name, dtype, kind, .. }) in kernel.parameters.iter().enumerate() {
        if kernel.parameters[..position].iter().any(|other| other.name == *name) {
            continue;
        }
        let (value, aside) = (format_ident!("__tinyspec_{position}"), editor::aside(name));
        match kind {
            ParameterKind::Input(_) => {
                parameters.push(quote!(#name: &::tinyspec::Tensor));
                arguments.push(quote!(#aside));
            }
            ParameterKind::Updated(_) => {
                parameters.push(quote!(#name: &mut ::tinyspec::Tensor));
                arguments.push(quote!(&*#aside));
                updates.push((aside, value));
            }
            ParameterKind::Result(_) | ParameterKind::RefusedResult => results.push(value),
            ParameterKind::Scalar => {
                let rust = rust_type(*dtype).unwrap_or_else(anything);
                parameters.push(quote!(#name: #rust));
                arguments.push(quote!(&#aside));
            }
            ParameterKind::Refused => {
                let value = format_ident!("__tinyspec_{position}", span = name.span());
                let anything = anything();
                parameters.push(quote!(#value: #anything));
            }
        }
    }
    let written: Vec<_> = updates.iter().map(|(_, value)| value).chain(&results).collect();
    let assignments = updates.iter().map(|(name, value)| quote!(*#name = #value;));
    let result_type = match results.as_slice() {
        [] => quote!(),
        [_] => quote!(-> ::tinyspec::Tensor),
        results => {
            let tensors = results.iter().map(|_| quote!(::tinyspec::Tensor));
            quote!(-> (#(#tensors),*))
        }
    };
    let result = match results.as_slice() {
        [one] => quote!(#one),
        results => quote!((#(#results),*)),
    };
    let result = if results.is_empty() { quote!() } else { result };
    let (callee, of_each) = match others.as_slice() {
        [] => (quote!(::tinyspec::__private::call_kernel), quote!(#aside::FUNCTION)),
        _ => (quote!(::tinyspec::__private::call_kernel_of), quote!(#aside::OF_EACH_DTYPE)),
    };
    let call = match kernel.parameters.iter().any(Parameter::is_refused) {
        true => quote!(::core::unreachable!()),
        false => quote! {
            let [#(#written),*] = #callee(#of_each, &[#(#arguments),*]);
            #(#assignments)*
            #result
        },
    };
    let unused = kernel.parameters.iter().any(Parameter::is_refused).then(|| quote!(#[allow(unused_variables)]));
    let of_each = (!others.is_empty()).then(|| {
        quote! {
            #[doc(hidden)]
            #unlisted
            pub const OF_EACH_DTYPE: &'static [&'static ::tinyspec::__private::EmbeddedFunction] =
                &[#aside::FUNCTION, #({ static KERNEL: ::tinyspec::__private::EmbeddedFunction = #others; &KERNEL }),*];
        }
    });
    let dims = constants.iter().enumerate().map(|(position, path)| {
        let name = format_ident!("DIM_{position}");
        quote!(#[doc(hidden)] #unlisted pub const #name: usize = (#path) as usize;)
    });
    let (companion, reach) = (companion(kernel, traced, !others.is_empty()), companion::reach(&kernel.visibility));
    quote! {
        #attributes
        #[track_caller]
        #[allow(clippy::too_many_arguments)]
        #unused
        #visibility fn #name(#(#parameters),*) #result_type { #call }

        #[doc(hidden)]
        #unlisted
        #[allow(non_camel_case_types, dead_code)]
        #reach enum #aside {}

        #[allow(dead_code)]
        impl #aside {
            /// The graph of a call.
            pub const FUNCTION: &'static ::tinyspec::__private::EmbeddedFunction = {
                static KERNEL: ::tinyspec::__private::EmbeddedFunction = #first #gradient;
                &KERNEL
            };
            #of_each
            #(#dims)*
        }

        #companion
    }
}

/// The static's value for one kernel.
fn embedded(kernel: &Kernel, traced: Option<&Traced>, diagnostics: &mut Diagnostics) -> TokenStream {
    let bytes = match traced.map(|traced| function(kernel, traced)) {
        Some(Ok(function)) => function.encode(),
        Some(Err(error)) => {
            diagnostics.error(kernel.name.span(), format!("{}: {}", error.op(), error.message()));
            vec![]
        }
        None => vec![],
    };
    let (text, bytes) = (kernel.name.to_string(), Literal::byte_string(&bytes));
    let constants = traced.map_or(&[][..], |traced| &traced.constants);
    let values = constants.iter().map(|path| {
        let span = path.segments.last().map_or_else(proc_macro2::Span::call_site, |segment| segment.ident.span());
        quote_spanned!(span => ::tinyspec::__private::kernel_constant(#path))
    });
    quote! {
        ::tinyspec::__private::EmbeddedFunction::new(
            #text, #bytes, ::core::file!(), &[], || ::std::vec![#(#values),*], |_, _, _| ::std::vec![],
        )
    }
}

/// The type of a parameter that could not be read; it accepts anything, so that callers get no second error.
fn anything() -> TokenStream {
    quote!(impl ::core::marker::Sized)
}

/// The scalar type of Rust that holds a dtype.
pub fn rust_type(dtype: DType) -> Option<TokenStream> {
    Some(match dtype {
        DType::F32 => quote!(f32),
        DType::F64 => quote!(f64),
        DType::I8 => quote!(i8),
        DType::I16 => quote!(i16),
        DType::I32 => quote!(i32),
        DType::I64 => quote!(i64),
        DType::U8 => quote!(u8),
        DType::U16 => quote!(u16),
        DType::U32 => quote!(u32),
        DType::U64 => quote!(u64),
        DType::Bool => quote!(bool),
        _ => return None,
    })
}

/// The companion for `#[function]`s that call the kernel.
fn companion(kernel: &Kernel, traced: Option<&Traced>, has_dtypes: bool) -> TokenStream {
    let payload = match traced {
        Some(_) if has_dtypes => companion::generic_payload(),
        Some(traced)
            if kernel.parameters.iter().all(|parameter| !matches!(parameter.kind, ParameterKind::Updated(_))) =>
        {
            let signature = signature(kernel, traced);
            let passing = kernel.parameters.iter().filter_map(|parameter| match parameter.kind {
                ParameterKind::Scalar => Some(Passing::Scalar),
                ParameterKind::Result(_) | ParameterKind::RefusedResult => None,
                _ => Some(Passing::Tensor),
            });
            let mut results: Vec<ResultType> = kernel
                .parameters
                .iter()
                .zip(&traced.shapes)
                .filter(|(parameter, _)| matches!(parameter.kind, ParameterKind::Result(_)))
                .map(|(parameter, shape)| {
                    let shape = renamed(kernel, shape, 0);
                    ResultType::Tensor(TensorType { dtype: parameter.dtype, shape })
                })
                .collect();
            let result = match results.len() {
                1 => results.remove(0),
                _ => ResultType::Tuple(results),
            };
            let constants: Vec<String> =
                traced.constants.iter().map(|path| quote!(#path).to_string().replace(' ', "")).collect();
            let constants: Vec<&str> = constants.iter().map(String::as_str).collect();
            companion::payload_of(&signature, passing, &result, &constants)
        }
        Some(_) => companion::updating_payload(),
        None => companion::failed_payload(),
    };
    companion::companion(&kernel.name, &kernel.visibility, "kernel", &payload)
}

/// Dims of the kernel's graph in another numbering: `first` is the slot of the first named dim.
fn renamed(kernel: &Kernel, shape: &Shape, first: u32) -> Shape {
    let (buffers, dims) = (kernel.parameters.len() as u32, kernel.dims.len() as u32);
    let rename = |slot: u32| {
        let position = slot - buffers;
        let slot = if position < dims { first + position } else { FIRST_CONSTANT + position - dims };
        Some(Dim::named(slot, 1, NamedDim::MAX))
    };
    shape.iter().map(|dim| dim.substitute(&rename)).collect()
}

fn is_result(parameter: &Parameter) -> bool {
    matches!(parameter.kind, ParameterKind::Result(_) | ParameterKind::RefusedResult)
}

/// Name, dims and inputs.
pub fn signature(kernel: &Kernel, traced: &Traced) -> Signature {
    let inputs = kernel.parameters.iter().zip(&traced.shapes).filter(|(parameter, _)| !is_result(parameter));
    Signature {
        name: kernel.name.to_string(),
        dims: kernel.dims.iter().map(|dim| NamedDim::new(dim.to_string())).collect(),
        inputs: inputs
            .map(|(parameter, shape)| Input {
                name: parameter.name.to_string(),
                dtype: parameter.dtype,
                shape: renamed(kernel, shape, 0),
            })
            .collect(),
    }
}

/// The call of a kernel as a function on tensors: its inputs, then its named dims; results are allocated by shape.
pub fn function(kernel: &Kernel, traced: &Traced) -> Result<tinyspec_ir::function::Traced> {
    let inputs: Vec<usize> = (0..kernel.parameters.len()).filter(|&at| !is_result(&kernel.parameters[at])).collect();
    let (dim_count, signature) = (kernel.dims.len() as u32, signature(kernel, traced));
    let first = inputs.len() as u32;
    let mut graph = Graph::new();
    let mut arguments: Vec<Option<NodeId>> = vec![None; kernel.parameters.len()];
    for (position, parameter) in kernel.parameters.iter().enumerate() {
        let shape = renamed(kernel, &traced.shapes[position], first);
        let node = match inputs.iter().position(|&input| input == position) {
            Some(slot) => {
                let shape = graph.shape(&shape)?;
                let arg = Arg::Param { slot: slot as u32, dtype: parameter.dtype, device: None, addrspace: None };
                graph.add(tinyspec_ir::Op::Param, &[shape], arg)?
            }
            None => ops::creation::zeros(&mut graph, &shape, parameter.dtype)?,
        };
        arguments[traced.slots[position] as usize] = Some(node);
    }
    let mut arguments: Vec<NodeId> = arguments.into_iter().flatten().collect();
    for position in 0..dim_count {
        arguments.push(graph.dim(&Dim::named(first + position, 1, NamedDim::MAX))?);
    }
    for constant in 0..traced.constants.len() as u32 {
        arguments.push(graph.dim(&Dim::named(FIRST_CONSTANT + constant, 1, NamedDim::MAX))?);
    }
    let mut buffers: Vec<(u32, String)> = kernel
        .parameters
        .iter()
        .zip(&traced.slots)
        .map(|(parameter, &slot)| (slot, parameter.name.to_string()))
        .collect();
    buffers.sort();
    let written = WrittenKernel {
        name: kernel.name.to_string(),
        outputs: kernel.parameters.iter().filter(|parameter| parameter.is_written()).count(),
        buffers: buffers.into_iter().map(|(_, name)| name).collect(),
        vouched: traced.vouched,
        graph: traced.graph.clone(),
        sink: traced.sink,
    };
    let outputs = written.call(&mut graph, &arguments)?;
    // Errors of a launch say where the kernel was written and where it was called.
    let start = kernel.name.span().start();
    let location = Location { file: Arc::from(""), line: start.line as u32, column: start.column as u32 + 1 };
    if let Some(&result) = outputs.first() {
        graph.locate(graph.source(result, 1), location);
    }
    Ok(tinyspec_ir::function::Traced { signature, graph, calls: vec![], outputs })
}
