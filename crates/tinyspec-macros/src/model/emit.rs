//! The struct without shapes, and its `Model` implementation.

use super::types::inner_type;
use super::{ModelField, ModelStruct};
use crate::diagnostics::ident;
use crate::function::signature::without_arguments;
use crate::{documentation, editor};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{GenericArgument, Ident, PathArguments, Type};

/// The struct at run time: shapes are values, generics are sizes.
pub fn plain_struct(model: &ModelStruct) -> TokenStream {
    let item = &model.item;
    let (visibility, name) = (&item.vis, &item.ident);
    let attributes = documentation::with(&item.attrs, &documentation::of_struct(item), "");
    let generics = own_generics(model);
    let fields = model.fields.iter().map(|ModelField { field, skip, .. }| {
        let (visibility, name, written) = (&field.vis, &field.ident, &field.ty);
        let (ty, attributes) = if *skip {
            let attributes = &field.attrs;
            (quote!(#written), quote!(#(#attributes)*))
        } else {
            (plain_type(written), documentation::with(&field.attrs, &documentation::of_field(field), ""))
        };
        quote!(#attributes #visibility #name: #ty)
    });
    quote! {
        #attributes
        #visibility struct #name #generics { #(#fields),* }
    }
}

/// `<const I: usize, const O: usize>`
pub fn const_generics(names: &[String]) -> TokenStream {
    let names: Vec<Ident> = names.iter().map(|name| ident(name)).collect();
    if names.is_empty() { TokenStream::new() } else { quote!(<#(const #names: usize),*>) }
}

/// The generics of a struct, with the user's spans for editors, since fields link to them.
fn own_generics(model: &ModelStruct) -> TokenStream {
    if !editor::is_asking() || model.generics.is_empty() {
        return const_generics(&model.generics);
    }
    let names = model.item.generics.type_params().map(|parameter| &parameter.ident);
    quote!(<#(const #names: usize),*>)
}

/// Tensors without dims inside arrays, `Vec`s and `Option`s.
fn plain_type(ty: &Type) -> TokenStream {
    match ty {
        Type::Array(array) => {
            let (element, length) = (plain_type(&array.elem), &array.len);
            quote!([#element; #length])
        }
        Type::Paren(inner) => plain_type(&inner.elem),
        // Refused, but users of the field see the type that was meant.
        Type::Reference(inner) => plain_type(&inner.elem),
        Type::Tuple(tuple) => {
            let elements = tuple.elems.iter().map(plain_type);
            quote!((#(#elements,)*))
        }
        Type::Path(path) => {
            match (path.path.segments.last().map(|last| last.ident.to_string()).as_deref(), inner_type(ty)) {
                (Some("Tensor"), _) => without_arguments(ty),
                (Some("Vec" | "Option" | "Box"), Some(inner)) => {
                    let inner = plain_type(inner);
                    let mut outer = path.path.clone();
                    if let Some(last) = outer.segments.last_mut() {
                        last.arguments = PathArguments::None;
                    }
                    quote!(#outer<#inner>)
                }
                _ => quote!(#ty),
            }
        }
        other => quote!(#other),
    }
}

/// The struct after mistakes: it is still a model, so that its users get no further errors.
pub fn failed(model: &ModelStruct) -> TokenStream {
    let (plain, name) = (plain_struct(model), editor::aside(&model.item.ident));
    let generics = const_generics(&model.generics);
    let names: Vec<Ident> = model.generics.iter().map(|name| ident(name)).collect();
    let arguments = if names.is_empty() { TokenStream::new() } else { quote!(<#(#names),*>) };
    quote! {
        #plain
        impl #generics ::tinyspec::nn::Model for #name #arguments {
            fn visit<'a>(
                &'a self,
                _: &::tinyspec::nn::Name,
                _: &mut dyn ::core::ops::FnMut(&::tinyspec::nn::Name, ::tinyspec::nn::Role, &'a ::tinyspec::Tensor),
            ) {}
            fn visit_mut<'a>(
                &'a mut self,
                _: &::tinyspec::nn::Name,
                _: &mut dyn ::core::ops::FnMut(&::tinyspec::nn::Name, ::tinyspec::nn::Role, &'a mut ::tinyspec::Tensor),
            ) {}
            fn build(
                _: &::tinyspec::nn::Name,
                _: &mut dyn ::core::ops::FnMut(::tinyspec::nn::Parameter) -> ::tinyspec::Result<::tinyspec::Tensor>,
            ) -> ::tinyspec::Result<Self> {
                ::core::unreachable!()
            }
        }
    }
}

/// The struct and its `Model` implementation.
pub fn emit(model: &ModelStruct) -> TokenStream {
    let (plain, name) = (plain_struct(model), editor::aside(&model.item.ident));
    let generics = own_generics(model);
    let names: Vec<Ident> = model.generics.iter().map(|name| ident(name)).collect();
    let arguments = if names.is_empty() { TokenStream::new() } else { quote!(<#(#names),*>) };
    let parts = || model.fields.iter().filter(|field| !field.skip);
    let visits = |reference: &TokenStream, method: &Ident| -> Vec<TokenStream> {
        parts()
            .map(|field| {
                let (ident, text) = (editor::aside(&field.name), field.name.unraw().to_string());
                let visit = visit(&field.field.ty, &quote!(#reference self.#ident), (reference, method), field);
                quote!({ let name = model.field(#text); #visit })
            })
            .collect()
    };
    let shared = visits(&quote!(&), &format_ident!("visit"));
    let mutable = visits(&quote!(&mut), &format_ident!("visit_mut"));
    let built = model.fields.iter().map(|field| {
        let (ident, text) = (editor::aside(&field.name), field.name.unraw().to_string());
        if field.skip {
            return quote!(#ident: ::core::default::Default::default());
        }
        let build = build(&field.field.ty, field);
        quote!(#ident: { let name = model.field(#text); #build })
    });
    // Fields whose types are no models have been reported.
    let (parts, made) = (
        quote!(
            #[allow(unused_imports)]
            use ::tinyspec::__private::NoPart as _;
        ),
        quote!(
            #[allow(unused_imports)]
            use ::tinyspec::__private::NotMade as _;
        ),
    );
    let constants = &model.constants;
    let sizes = (!constants.is_empty()).then(|| quote!(const SIZES: &'static [usize] = &[#(#constants),*];));
    quote! {
        #plain
        #[allow(unused_variables)]
        impl #generics ::tinyspec::nn::Model for #name #arguments {
            #sizes
            fn visit<'a>(
                &'a self,
                model: &::tinyspec::nn::Name,
                visit: &mut dyn ::core::ops::FnMut(&::tinyspec::nn::Name, ::tinyspec::nn::Role, &'a ::tinyspec::Tensor),
            ) {
                #parts
                #(#shared)*
            }
            fn visit_mut<'a>(
                &'a mut self,
                model: &::tinyspec::nn::Name,
                visit: &mut dyn ::core::ops::FnMut(&::tinyspec::nn::Name, ::tinyspec::nn::Role, &'a mut ::tinyspec::Tensor),
            ) {
                #parts
                #(#mutable)*
            }
            fn build(
                model: &::tinyspec::nn::Name,
                make: &mut dyn ::core::ops::FnMut(::tinyspec::nn::Parameter) -> ::tinyspec::Result<::tinyspec::Tensor>,
            ) -> ::tinyspec::Result<Self> {
                #made
                ::core::result::Result::Ok(Self { #(#built),* })
            }
        }
    }
}

/// A check that a struct with `#[model(functions)]` has a `#[function] impl`.
pub fn needs_functions(model: &ModelStruct) -> TokenStream {
    let name = &model.item.ident;
    // Arbitrary sizes.
    let sizes = model.generics.iter().map(|_| quote!(0));
    let message = format!(
        "`{name}` announces functions: write `#[function] impl {name} {{ … }}` in its module, or leave out `functions`"
    );
    let (place, aside) = (editor::aside_of(name.span()), editor::aside(name));
    let check = quote_spanned!(place=> ::tinyspec::__private::check_functions);
    let check = quote_spanned!(place=> #check(<#aside<#(#sizes),*>>::ONE_FUNCTION_IMPL_HOLDS_ALL_METHODS, #message));
    quote! {
        const _: () = {
            #[allow(unused_imports)]
            use ::tinyspec::__private::NoFunctions as _;
            #check;
        };
    }
}

/// Visits the value at `place`, named by the variable `name`.
fn visit(
    ty: &Type,
    place: &TokenStream,
    (reference, method): (&TokenStream, &Ident),
    field: &ModelField,
) -> TokenStream {
    let is_mutable = method == "visit_mut";
    let list = |inner: &Type| {
        let each = visit(inner, &quote!(item), (reference, method), field);
        let items = if is_mutable { quote!((#place).iter_mut()) } else { quote!((#place).iter()) };
        let items = quote!(::core::iter::Iterator::enumerate(#items));
        quote! {
            for (index, item) in #items {
                let name = name.item(index);
                #each
            }
        }
    };
    match ty {
        Type::Array(array) => list(&array.elem),
        Type::Paren(inner) => visit(&inner.elem, place, (reference, method), field),
        Type::Path(path) => {
            match (path.path.segments.last().map(|last| last.ident.to_string()).as_deref(), inner_type(ty)) {
                (Some("Tensor"), _) => {
                    let role = role(field);
                    quote!(visit(&name, #role, #place);)
                }
                (Some("Vec"), Some(inner)) => list(inner),
                (Some("Option"), Some(inner)) => {
                    let some = visit(inner, &quote!(item), (reference, method), field);
                    quote!(if let ::core::option::Option::Some(item) = #place { #some })
                }
                (Some("Box"), Some(inner)) => visit(inner, &quote!(#reference **(#place)), (reference, method), field),
                _ if field.options.buffer => {
                    let role = role(field);
                    quote! {
                        ::tinyspec::__private::Part(#place)
                            .#method(&name, &mut |name: &::tinyspec::nn::Name, _: ::tinyspec::nn::Role, tensor| visit(name, #role, tensor));
                    }
                }
                _ => quote!(::tinyspec::__private::Part(#place).#method(&name, visit);),
            }
        }
        _ => TokenStream::new(),
    }
}

/// The role of a field's tensors.
fn role(field: &ModelField) -> TokenStream {
    if field.options.buffer { quote!(::tinyspec::nn::Role::Buffer) } else { quote!(::tinyspec::nn::Role::Parameter) }
}

/// Builds a value of this type, named by the variable `name`.
fn build(ty: &Type, field: &ModelField) -> TokenStream {
    let list = |inner: &Type, length: TokenStream| {
        let each = build(inner, field);
        quote! {
            ::core::iter::Iterator::collect::<::tinyspec::Result<::std::vec::Vec<_>>>(
                ::core::iter::Iterator::map(0..#length, |index| {
                    let name = name.item(index);
                    let made = #each;
                    ::core::result::Result::Ok(made)
                })
            )?
        }
    };
    match ty {
        Type::Array(array) => {
            let length = &array.len;
            let list = list(&array.elem, quote!(#length));
            quote! {
                match ::core::convert::TryInto::try_into(#list) {
                    ::core::result::Result::Ok(array) => array,
                    ::core::result::Result::Err(_) => ::core::unreachable!("as many as the array has"),
                }
            }
        }
        Type::Paren(inner) => build(&inner.elem, field),
        Type::Path(path) => {
            match (path.path.segments.last().map(|last| last.ident.to_string()).as_deref(), inner_type(ty)) {
                (Some("Tensor"), _) => tensor(ty, field),
                (Some("Vec"), Some(inner)) => {
                    list(inner, field.options.length.map(|length| quote!(#length)).unwrap_or(quote!(0)))
                }
                (Some("Option"), Some(_)) if field.options.absent => quote!(::core::option::Option::None),
                (Some("Option"), Some(inner)) => {
                    let some = build(inner, field);
                    quote!(::core::option::Option::Some(#some))
                }
                (Some("Box"), Some(inner)) => {
                    let inner = build(inner, field);
                    quote!(::std::boxed::Box::new(#inner))
                }
                _ if field.options.buffer => {
                    let (role, ty) = (role(field), editor::aside(ty));
                    quote! {
                        ::tinyspec::__private::Made::<#ty>::new().build(
                            &name,
                            &mut |parameter: ::tinyspec::nn::Parameter| {
                                make(::tinyspec::nn::Parameter { role: #role, ..parameter })
                            },
                        )?
                    }
                }
                _ => {
                    let ty = editor::aside(ty);
                    quote!(::tinyspec::__private::Made::<#ty>::new().build(&name, make)?)
                }
            }
        }
        _ => quote!(::core::unreachable!()),
    }
}

fn tensor(ty: &Type, field: &ModelField) -> TokenStream {
    let Type::Path(path) = ty else { return TokenStream::new() };
    let Some(PathArguments::AngleBracketed(arguments)) = path.path.segments.last().map(|last| &last.arguments) else {
        return TokenStream::new();
    };
    let mut arguments = arguments.args.iter();
    let dtype = match arguments.next() {
        Some(GenericArgument::Type(Type::Path(path))) => {
            let name = path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
            tinyspec_ir::DType::from_name(&name).map(|dtype| format_ident!("{}", format!("{dtype:?}")))
        }
        _ => None,
    };
    let dims: Vec<_> = arguments.collect();
    let init = match field.init.to_string().as_str() {
        // Matrices and filters start at random; vectors are biases and start at zero.
        "default" if dims.len() >= 2 && !field.options.buffer => quote!(::tinyspec::nn::Init::Xavier),
        "default" => quote!(::tinyspec::nn::Init::Zeros),
        _ => field.init.clone(),
    };
    let role = role(field);
    let sizes = dims.iter().map(|dim| match dim {
        GenericArgument::Type(ty) => quote!(#ty),
        other => quote!(#other),
    });
    quote! {
        make(::tinyspec::nn::Parameter {
            name: &name,
            dtype: ::tinyspec::DType::#dtype,
            shape: &[#(#sizes),*],
            init: #init,
            role: #role,
        })?
    }
}
