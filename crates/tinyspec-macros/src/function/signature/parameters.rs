//! Parameters, named dims and results as they are written.

use super::types::{TypeReader, other_type, without_arguments};
use super::{Context, Parameter, Passing, ResultType, TensorType};
use crate::diagnostics::{Diagnostics, Place, source_text};
use crate::function::source::is_plain;
use crate::model::text_of_type;
use crate::model::types::FieldType;
use quote::quote;
use syn::visit::{self, Visit};
use syn::{FnArg, GenericArgument, Ident, Pat, PathArguments, Type};
use tinyspec_ir::{DType, Shape};

/// Whether this is `x: &mut Tensor<…>`, which is refused together with the result it would return.
pub fn is_updated_tensor(argument: &FnArg) -> bool {
    let FnArg::Typed(argument) = argument else { return false };
    let Type::Reference(reference) = &*argument.ty else { return false };
    let Type::Path(path) = &*reference.elem else { return false };
    reference.mutability.is_some() && path.path.segments.last().is_some_and(|last| last.ident == "Tensor")
}

pub fn name_of(argument: &FnArg) -> String {
    match argument {
        FnArg::Typed(argument) => match &*argument.pat {
            Pat::Ident(name) => name.ident.to_string(),
            _ => "_".to_string(),
        },
        FnArg::Receiver(_) => "self".to_string(),
    }
}

pub fn refuse_qualifiers(written: &syn::Signature, diagnostics: &mut Diagnostics) {
    let mut refuse = |place: Place, what: &str| {
        diagnostics.error(place, format!("a #[function] is a graph: it cannot be {what}"));
    };
    if let Some(token) = &written.constness {
        refuse(Place::of(token), "`const`");
    }
    if let Some(token) = &written.asyncness {
        refuse(Place::of(token), "`async`");
    }
    if let syn::Safety::Unsafe(token) = &written.safety {
        refuse(Place::of(token), "`unsafe`");
    }
    if let Some(abi) = &written.abi {
        refuse(Place::of(abi), "`extern`");
    }
    if let Some(variadic) = &written.variadic {
        refuse(Place::of(variadic), "variadic");
    }
    if let Some(clause) = &written.generics.where_clause
        && !written.generics.type_params().any(|parameter| is_dtype(written, &parameter.ident))
    {
        diagnostics.error(Place::of(clause), "the names in `<…>` are dims, which cannot have type bounds; `#[function(bounds(B: 1..=4096))]` bounds sizes");
    }
}

/// Whether a generic is used as the dtype of a tensor, which is refused there.
fn is_dtype(written: &syn::Signature, generic: &Ident) -> bool {
    struct Dtypes<'a>(&'a Ident, bool);
    impl<'ast> Visit<'ast> for Dtypes<'_> {
        fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
            if let ("Tensor", PathArguments::AngleBracketed(arguments)) =
                (segment.ident.to_string().as_str(), &segment.arguments)
                && let Some(GenericArgument::Type(Type::Path(dtype))) = arguments.args.first()
            {
                self.1 |= dtype.path.is_ident(self.0);
            }
            visit::visit_path_segment(self, segment);
        }
    }
    let mut dtypes = Dtypes(generic, false);
    written.inputs.iter().for_each(|input| dtypes.visit_fn_arg(input));
    dtypes.visit_return_type(&written.output);
    dtypes.1
}

pub fn declared_dims(written: &syn::Signature, diagnostics: &mut Diagnostics) -> Vec<Ident> {
    let mut dims: Vec<Ident> = vec![];
    for generic in &written.generics.params {
        match generic {
            syn::GenericParam::Type(parameter) => {
                if (!parameter.bounds.is_empty() || parameter.default.is_some()) && !is_dtype(written, &parameter.ident)
                {
                    let message = format!(
                        "`{}` is a dim: it cannot have type bounds; `#[function(bounds({}: 1..=4096))]` bounds its size",
                        parameter.ident, parameter.ident
                    );
                    diagnostics.error(Place::of(parameter), message);
                }
                if dims.contains(&parameter.ident) {
                    diagnostics.error(Place::of(parameter), format!("the dim `{}` is declared twice", parameter.ident));
                } else {
                    dims.push(parameter.ident.clone());
                }
            }
            syn::GenericParam::Const(parameter) => {
                let message = format!("write `<{}>`: every name in `<…>` is a dim", parameter.ident);
                diagnostics.error(Place::of(parameter), message);
                dims.push(parameter.ident.clone());
            }
            syn::GenericParam::Lifetime(lifetime) => {
                diagnostics.error(Place::of(lifetime), "a #[function] needs no lifetimes: parameters are `&Tensor<…>`");
            }
        }
    }
    dims
}

/// A parameter and its type; a model's type comes from its companion.
pub fn read_parameter(
    argument: &FnArg,
    function: &Ident,
    context: &Context,
    reader: &mut TypeReader,
) -> Option<(Parameter, Option<TensorType>)> {
    let argument = match argument {
        FnArg::Typed(argument) => argument,
        FnArg::Receiver(receiver) if context.self_type.is_some() => {
            let is_updated = matches!(receiver.kind, syn::ReceiverKind::Reference(_, _, Some(_)));
            if !is_updated && !matches!(receiver.kind, syn::ReceiverKind::Reference(_, _, None)) {
                let message = "a method of a #[function] impl takes `&self`, or `&mut self` where it changes buffers";
                reader.diagnostics.error(Place::of(receiver), message);
            }
            let ident = Ident::new("self", receiver.self_token.span);
            let model = context.self_type.clone();
            let (passing, written) =
                if is_updated { (Passing::Updated(0), quote!(&mut Self)) } else { (Passing::Model(0), quote!(&Self)) };
            let parameter = Parameter { ident, passing, written, model, fields: None };
            return Some((parameter, None));
        }
        FnArg::Receiver(receiver) => {
            let message = "`self` needs a #[model] struct and `#[function] impl` around its methods";
            reader.diagnostics.error(Place::of(receiver), message);
            return None;
        }
    };
    let Pat::Ident(name) = &*argument.pat else {
        reader
            .diagnostics
            .error(Place::of(&argument.pat), "a parameter is a plain name; take tuples apart in the body");
        return None;
    };
    if let Some(mutability) = &name.mutability {
        let message =
            format!("parameters are values: write `let mut {0} = {0}.clone();` in the body to rebind it", name.ident);
        reader.diagnostics.error(Place::of(mutability), message);
    }
    let place = Place::of(&argument.ty);
    let parameter =
        |passing, written| Parameter { ident: name.ident.clone(), passing, written, model: None, fields: None };
    match &*argument.ty {
        Type::Reference(reference) => {
            if let Type::Path(path) = &*reference.elem
                && path.qself.is_none()
                && path.path.segments.last().is_some_and(|last| last.ident != "Tensor")
                && !is_number(&path.path)
                && !has_dtype(&path.path)
            {
                if let Some(name) = path.path.get_ident()
                    && is_plain(function, name)
                {
                    let message = format!(
                        "`{name}` is not a #[model], and a #[function] takes tensors, numbers and models: write `#[model]` before its definition, or pass its tensors"
                    );
                    reader.diagnostics.error(place, message);
                    return None;
                }
                let mut model = match &reference.mutability {
                    Some(_) => parameter(Passing::Updated(0), quote!(&mut #path)),
                    None => parameter(Passing::Model(0), quote!(&#path)),
                };
                model.model = Some(path.path.clone());
                return Some((model, None));
            }
            if let Some(mutability) = &reference.mutability {
                let message = "a #[function] changes the buffers of a `&mut` model, and nothing else: take `&Tensor<…>` and return the new value";
                reader.diagnostics.error(Place::of(mutability), message);
                return None;
            }
            let ty = reader.tensor(&reference.elem)?;
            let inner = without_arguments(&reference.elem);
            Some((parameter(Passing::Tensor, quote!(&#inner)), Some(ty)))
        }
        Type::Path(path) => {
            let name = path.path.get_ident().map(Ident::to_string).unwrap_or_default();
            match DType::from_name(&name).filter(|dtype| !matches!(dtype, DType::Void | DType::Index)) {
                Some(dtype) => {
                    let ty = TensorType { dtype, shape: Shape::new() };
                    Some((parameter(Passing::Scalar, quote!(#path)), Some(ty)))
                }
                None if path.path.segments.last().is_some_and(|last| last.ident == "Tensor") => {
                    let ty = reader.tensor(&argument.ty)?;
                    reader.diagnostics.error(place, "tensors are passed by reference: write `&Tensor<…>`");
                    let written = without_arguments(&argument.ty);
                    Some((parameter(Passing::Tensor, quote!(&#written)), Some(ty)))
                }
                None if other_type(&argument.ty).is_none()
                    && path.qself.is_none()
                    && path
                        .path
                        .segments
                        .last()
                        .is_some_and(|last| last.ident.to_string().starts_with(char::is_uppercase)) =>
                {
                    // It may not be a model at all, so its companion is not requested.
                    let shown = source_text(&path.path);
                    let message = format!(
                        "`{shown}` is passed by value: a model is passed by reference, `&{shown}`; where an enum would choose between graphs, write a function for each"
                    );
                    reader.diagnostics.error(place, message);
                    None
                }
                None => {
                    let shown = source_text(&path.path);
                    let help = match other_type(&argument.ty) {
                        Some(_) if name == "usize" || name == "isize" => {
                            "a size is a named dim, a number has a dtype such as `i64`"
                        }
                        Some(help) => help,
                        None => "a parameter is `&Tensor<f32, B, 64>` or a number such as `f32`",
                    };
                    let message = format!("`{shown}` cannot be passed: {help}");
                    reader.diagnostics.error(place, message);
                    None
                }
            }
        }
        other => {
            let usual = "a parameter is `&Tensor<f32, B, 64>` or a number such as `f32`";
            reader.diagnostics.error(Place::of(other), other_type(other).unwrap_or(usual));
            None
        }
    }
}

fn is_number(path: &syn::Path) -> bool {
    let name = path.get_ident().map(Ident::to_string).unwrap_or_default();
    DType::from_name(&name).is_some() || matches!(name.as_str(), "str" | "String" | "usize" | "isize")
}

/// Whether the first argument is a dtype: `Tenser<f32, B>` was meant to be a tensor.
fn has_dtype(path: &syn::Path) -> bool {
    let Some(PathArguments::AngleBracketed(arguments)) = path.segments.last().map(|last| &last.arguments) else {
        return false;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(Type::Path(path))) => is_number(&path.path),
        _ => false,
    }
}

/// A number, or a name in capitals that is not a type of `std`.
pub fn may_be_size(argument: &GenericArgument) -> bool {
    match argument {
        GenericArgument::Const(_) => true,
        GenericArgument::Type(Type::Path(path)) => path.path.segments.last().is_some_and(|last| {
            let name = last.ident.to_string();
            last.arguments.is_none() && name.to_uppercase() == name
        }),
        _ => false,
    }
}

/// The fields of a model's type, with the generics it is written with.
pub fn read_model(path: &syn::Path, context: &Context, reader: &mut TypeReader) -> Option<FieldType> {
    let model = context.models.get(&text_of_type(path));
    let arguments = match &path.segments.last()?.arguments {
        // Constants among them are numbered before the model is known.
        PathArguments::AngleBracketed(arguments) if model.is_some() || arguments.args.iter().all(may_be_size) => {
            reader.dims(arguments.args.iter())?
        }
        _ => Shape::new(),
    };
    let model = model?;
    // rustc reports a wrong number.
    (arguments.len() == model.generics.len()).then(|| FieldType::Model(model.clone(), arguments))
}

pub fn read_result(written: &Type, reader: &mut TypeReader) -> Option<ResultType> {
    match written {
        Type::Tuple(tuple) => {
            if tuple.elems.is_empty() || tuple.elems.len() > 12 {
                let message = "a #[function] returns a tensor, or a tuple of 1 to 12";
                reader.diagnostics.error(Place::of(written), message);
                return None;
            }
            let elements: Vec<_> = tuple.elems.iter().map(|element| read_result(element, reader)).collect();
            Some(ResultType::Tuple(elements.into_iter().collect::<Option<_>>()?))
        }
        Type::Paren(inner) => read_result(&inner.elem, reader),
        Type::Reference(_) => {
            reader.diagnostics.error(Place::of(written), "a #[function] returns values: write `Tensor<…>` without `&`");
            None
        }
        Type::Path(path)
            if path.path.segments.last().is_some_and(|last| last.ident == "Result" || last.ident == "Option") =>
        {
            let message = "a #[function] always returns tensors: a mistake in shapes is a compile error, and a tensor carries what goes wrong at run time";
            reader.diagnostics.error(Place::of(written), message);
            None
        }
        other => reader.tensor(other).map(ResultType::Tensor),
    }
}
