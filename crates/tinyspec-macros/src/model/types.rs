//! The fields of a model, and their encoding in its companion.

use crate::diagnostics::{Diagnostics, Place};
use crate::function::companion::Callee;
use crate::function::signature::{Constants, TensorType, TypeReader, may_be_size};
use crate::function::source::is_model;
use proc_macro2::TokenStream;
use quote::quote;
use std::rc::Rc;
use syn::parse::{Parse, ParseStream};
use syn::{Expr, GenericArgument, Ident, LitBool, LitInt, LitStr, PathArguments, Token, Type};
use tinyspec_ir::function::FIRST_CONSTANT;
use tinyspec_ir::signature::{Input, NamedDim};
use tinyspec_ir::{Dim, Shape};

/// The type of a field.
#[derive(Clone)]
pub enum FieldType {
    /// `Tensor<f32, I, O>`
    Tensor(TensorType),
    /// Another model, with values for its generics.
    Model(Rc<ModelType>, Shape),
    /// An array or a `Vec` of a known length.
    List(Box<FieldType>, usize),
    /// An `Option`, and whether it is `Some`.
    Optional(Box<FieldType>, bool),
    /// `#[model(buffer)]`: all tensors in it are states, whatever its own type says.
    Buffer(Box<FieldType>),
}

/// A struct of tensors and models.
#[derive(Clone)]
pub struct ModelType {
    /// The struct's name.
    pub name: String,
    /// Its generics: sizes.
    pub generics: Vec<String>,
    /// Outer constants in its shapes.
    pub constants: Vec<String>,
    /// Its fields except the skipped ones.
    pub fields: Vec<(String, FieldType)>,
    /// Fields that are not a part of it.
    pub skipped: Vec<String>,
    /// Fields whose types have mistakes.
    pub wrong: Vec<String>,
    /// Its `#[function]` methods.
    pub methods: Vec<(String, Option<Callee>)>,
}

impl ModelType {
    /// Generics as dims of the model's own shapes.
    pub fn dims(generics: &[String]) -> Vec<(String, Dim)> {
        (0..).zip(generics).map(|(slot, name)| (name.clone(), Dim::named(slot, 1, NamedDim::MAX))).collect()
    }
}

impl FieldType {
    /// Collects its tensors in order, and which of them are buffers; `arguments` are the values of the generics in
    /// scope.
    pub fn leaves(&self, name: &str, access: &TokenStream, (arguments, sizes): (&[Dim], &[Dim]), leaves: &mut Leaves) {
        let value = |slot: u32| match slot.checked_sub(FIRST_CONSTANT) {
            Some(number) => sizes.get(number as usize).cloned(),
            None => arguments.get(slot as usize).cloned(),
        };
        let of = (arguments, sizes);
        match self {
            FieldType::Tensor(tensor) => leaves.inputs.push(Input {
                name: name.to_string(),
                dtype: tensor.dtype,
                shape: tensor.shape.iter().map(|dim| dim.substitute(&value)).collect(),
            }),
            FieldType::Buffer(state) => {
                let first = leaves.inputs.len();
                state.leaves(name, access, of, leaves);
                leaves.buffers.retain(|&buffer| buffer < first);
                leaves.buffers.extend(first..leaves.inputs.len());
            }
            FieldType::Model(model, inner) => {
                let inner: Shape = inner.iter().map(|dim| dim.substitute(&value)).collect();
                let own = leaves.sizes_of(model, access);
                for (field, ty) in &model.fields {
                    let ident = crate::diagnostics::ident(field);
                    ty.leaves(&format!("{name}.{field}"), &quote!(#access.#ident), (&inner, &own), leaves);
                }
            }
            FieldType::List(element, count) => {
                for index in 0..*count {
                    element.leaves(&format!("{name}[{index}]"), &quote!(#access[0]), of, leaves);
                }
            }
            FieldType::Optional(element, true) => {
                element.leaves(name, &quote!((*#access.as_ref().unwrap())), of, leaves);
            }
            FieldType::Optional(_, false) => {}
        }
    }

    /// Whether it has a buffer, counting those of an `Option` that is `None`.
    pub fn has_buffers(&self) -> bool {
        match self {
            FieldType::Tensor(_) => false,
            FieldType::Model(model, _) => model.fields.iter().any(|(_, ty)| ty.has_buffers()),
            FieldType::List(element, _) | FieldType::Optional(element, _) => element.has_buffers(),
            FieldType::Buffer(_) => true,
        }
    }
}

/// The tensors of a function's parameters.
#[derive(Default)]
pub struct Leaves {
    /// In order.
    pub inputs: Vec<Input>,
    /// Positions of the buffers.
    pub buffers: Vec<usize>,
    /// The type of the current parameter.
    pub root: TokenStream,
    /// Constants in the shapes of models, after those of the signature.
    pub constants: Constants,
}

impl Leaves {
    /// The constants of a model that is reached from the parameter by `access`.
    fn sizes_of(&mut self, model: &ModelType, access: &TokenStream) -> Shape {
        let root = &self.root;
        let sizes = model.constants.iter().enumerate().map(|(number, constant)| {
            let path = quote!(::tinyspec::__private::field_size(|model: &#root| &#access, #number));
            self.constants.dim(format!("{OF_MODEL}{}::{constant}", model.name), path)
        });
        sizes.collect()
    }
}

/// Prefix of a constant in a model's shapes: callers reach it through the model that they pass.
pub const OF_MODEL: char = '&';

/// The options that `#[model(…)]` gives a field.
#[derive(Clone, Copy, Default)]
pub struct FieldOptions {
    /// Length of a `Vec`.
    pub length: Option<usize>,
    /// An `Option` that is `None`.
    pub absent: bool,
    /// It is a state, which optimisers do not change.
    pub buffer: bool,
}

/// Standard types whose names no model has; for other types rustc reports that they are not models.
const NO_MODELS: &[&str] = &[
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "isize", "str", "u8", "u16", "u32", "u64", "usize", "Arc",
    "BTreeMap", "Duration", "HashMap", "HashSet", "Instant", "PathBuf", "Rc", "String",
];

const NO_FIELD: &str =
    "a field of a model is a `Tensor<…>`, a model, an array, `Vec` or `Option` of them; mark others `#[model(skip)]`";

/// The model inside arrays, `Vec`s and `Option`s; `None` for tensors.
pub fn model_path(ty: &Type) -> Option<&syn::Path> {
    match ty {
        Type::Array(array) => model_path(&array.elem),
        Type::Paren(inner) => model_path(&inner.elem),
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            match (last.ident.to_string().as_str(), inner_type(ty)) {
                ("Vec" | "Option" | "Box", Some(inner)) => model_path(inner),
                ("Tensor", _) => None,
                (name, _) if NO_MODELS.contains(&name) => None,
                _ => Some(&path.path),
            }
        }
        _ => None,
    }
}

/// Whether the innermost element type of arrays, `Vec`s, `Option`s and `Box`es is certainly neither a tensor nor a
/// model.
fn holds_no_model(ty: &Type) -> bool {
    match ty {
        Type::Array(array) => holds_no_model(&array.elem),
        Type::Paren(inner) => holds_no_model(&inner.elem),
        Type::Path(path) => match (path.path.segments.last().map(|last| last.ident.to_string()), inner_type(ty)) {
            (Some(name), Some(inner)) if matches!(name.as_str(), "Vec" | "Option" | "Box") => holds_no_model(inner),
            (Some(name), _) => NO_MODELS.contains(&name.as_str()),
            (None, _) => false,
        },
        _ => true,
    }
}

/// `T` of `Vec<T>`.
pub fn inner_type(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    match &path.path.segments.last()?.arguments {
        PathArguments::AngleBracketed(arguments) => match arguments.args.first()? {
            GenericArgument::Type(inner) => Some(inner),
            _ => None,
        },
        _ => None,
    }
}

/// Reads the type of a field; `child` is the model in it, if there is one.
pub fn field_type(
    ty: &Type,
    options: FieldOptions,
    child: Option<&Rc<ModelType>>,
    reader: &mut TypeReader,
) -> Option<FieldType> {
    if holds_no_model(ty) {
        reader.diagnostics.error(Place::of(ty), NO_FIELD);
        return None;
    }
    let read = inner_field_type(ty, options, child, reader)?;
    Some(if options.buffer { FieldType::Buffer(Box::new(read)) } else { read })
}

fn inner_field_type(
    ty: &Type,
    options: FieldOptions,
    child: Option<&Rc<ModelType>>,
    reader: &mut TypeReader,
) -> Option<FieldType> {
    match ty {
        Type::Paren(inner) => inner_field_type(&inner.elem, options, child, reader),
        Type::Array(array) => {
            let Some(count) = length(&array.len) else {
                let message = "the length of an array of a model is written as a number, such as 6: \
                               while its parameters are counted, constants have no values yet";
                reader.diagnostics.error(Place::of(&array.len), message);
                return None;
            };
            Some(FieldType::List(Box::new(inner_field_type(&array.elem, options, child, reader)?), count))
        }
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            match (last.ident.to_string().as_str(), inner_type(ty)) {
                ("Vec", Some(inner)) => {
                    let Some(count) = options.length else {
                        let message = "how many elements? Write `#[model(len = 6)]` before the field, or use an array";
                        reader.diagnostics.error(Place::of(ty), message);
                        return None;
                    };
                    Some(FieldType::List(Box::new(inner_field_type(inner, options, child, reader)?), count))
                }
                ("Option", Some(inner)) => Some(FieldType::Optional(
                    Box::new(inner_field_type(inner, options, child, reader)?),
                    !options.absent,
                )),
                ("Box", Some(inner)) => inner_field_type(inner, options, child, reader),
                ("Tensor", _) => Some(FieldType::Tensor(reader.tensor(ty)?)),
                _ => {
                    let arguments = match &last.arguments {
                        // Constants among them are numbered before the model is known.
                        PathArguments::AngleBracketed(arguments)
                            if child.is_some() || is_model(&last.ident) || arguments.args.iter().all(may_be_size) =>
                        {
                            reader.dims(arguments.args.iter())?
                        }
                        _ => Shape::new(),
                    };
                    let child = child?;
                    if arguments.len() != child.generics.len() {
                        return None; // rustc counts them.
                    }
                    Some(FieldType::Model(child.clone(), arguments))
                }
            }
        }
        // Refused as a whole.
        _ => None,
    }
}

/// A literal length.
pub fn length(expression: &Expr) -> Option<usize> {
    match expression {
        Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(number), .. }) => number.base10_parse().ok(),
        _ => None,
    }
}

/// A field in the companion's payload.
pub struct FieldPayload<'a> {
    /// Its name.
    pub name: String,
    /// Its options.
    pub options: FieldOptions,
    /// The payload of the model in it.
    pub child: Option<&'a TokenStream>,
    /// As written.
    pub ty: &'a Type,
}

/// The fields of a model as tokens.
pub fn fields_payload(name: &Ident, generics: &[String], skipped: &[String], fields: &[FieldPayload]) -> TokenStream {
    let text = name.to_string();
    let fields = fields.iter().map(|FieldPayload { name, options, child, ty }| {
        let (absent, buffer, length) = (options.absent, options.buffer, options.length.map(|length| quote!(#length)));
        quote!([#name #absent #buffer [#length] { #child } #ty])
    });
    quote!(model #text [#(#generics)*] [#(#skipped)*] { #(#fields)* })
}

/// `["I" "O"]`
fn texts(input: ParseStream) -> syn::Result<Vec<String>> {
    let content;
    syn::bracketed!(content in input);
    let mut texts = vec![];
    while !content.is_empty() {
        texts.push(content.parse::<LitStr>()?.value());
    }
    Ok(texts)
}

impl Parse for ModelType {
    /// Parses what follows the word `model`.
    fn parse(input: ParseStream) -> syn::Result<ModelType> {
        let name = input.parse::<LitStr>()?.value();
        let (names, skipped) = (texts(input)?, texts(input)?);
        let content;
        syn::braced!(content in input);
        let (mut fields, mut wrong) = (vec![], vec![]);
        // The struct's own expansion has reported their mistakes.
        let (mut constants, mut reported) = (Constants::default(), Diagnostics::default());
        let mut reader = TypeReader {
            owner: String::new(),
            parameters: &[],
            names: ModelType::dims(&names),
            constants: &mut constants,
            diagnostics: &mut reported,
        };
        while !content.is_empty() {
            let field;
            syn::bracketed!(field in content);
            let name = field.parse::<LitStr>()?.value();
            let (absent, buffer) = (field.parse::<LitBool>()?.value, field.parse::<LitBool>()?.value);
            let length;
            syn::bracketed!(length in field);
            let length = length.parse::<Option<LitInt>>()?.map(|length| length.base10_parse()).transpose()?;
            let child;
            syn::braced!(child in field);
            let child = match child.parse::<Option<Ident>>()? {
                Some(word) if word == "model" => Some(Rc::new(child.parse::<ModelType>()?)),
                _ => {
                    child.parse::<TokenStream>()?;
                    None
                }
            };
            let ty: Type = field.parse()?;
            match field_type(&ty, FieldOptions { length, absent, buffer }, child.as_ref(), &mut reader) {
                Some(ty) => fields.push((name, ty)),
                None => wrong.push(name),
            }
        }
        let mut methods = vec![];
        if input.peek(syn::token::Brace) {
            let content;
            syn::braced!(content in input);
            while !content.is_empty() {
                let method;
                syn::bracketed!(method in content);
                let name = method.parse::<LitStr>()?.value();
                let payload;
                syn::braced!(payload in method);
                methods.push((name, payload.parse::<crate::function::companion::MaybeCallee>()?.0));
                let _ = content.parse::<Option<Token![,]>>()?;
            }
        }
        // Read in the same order, they get the same numbers.
        let constants = constants.0.into_iter().map(|constant| constant.text).collect();
        Ok(ModelType { name, generics: names, constants, fields, skipped, wrong, methods })
    }
}
