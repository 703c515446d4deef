//! Signatures: `fn mlp<B>(x: &Tensor<f32, B, 784>, scale: f32) -> Tensor<f32, B, 10>`.

use super::callees::CalleePath;
use super::options::Options;
use crate::diagnostics::source_text;
use crate::diagnostics::{Diagnostics, Place};
use crate::model::text_of_type;
use crate::model::types::{FieldType, ModelType};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use std::collections::HashMap;
use std::rc::Rc;
use syn::{BinOp, Expr, FnArg, GenericArgument, Ident, Lit, Pat, PathArguments, ReturnType, Type};
use tinyspec_ir::dim::Atom;
use tinyspec_ir::function::FIRST_CONSTANT;
use tinyspec_ir::signature::{Input, NamedDim, Signature};
use tinyspec_ir::{DType, Dim, Shape};

/// dtype and shape of a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorType {
    /// Type of the elements.
    pub dtype: DType,
    /// The shape.
    pub shape: Shape,
}

/// How a parameter is passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passing {
    /// `&Tensor<…>`
    Tensor,
    /// `f32`, `i64`, …: a tensor of shape `()` inside the function.
    Scalar,
    /// `&Mlp`: as many tensors.
    Model(usize),
}

/// A parameter as the user wrote it.
pub struct Parameter {
    /// Its name.
    pub ident: Ident,
    /// How it is passed.
    pub passing: Passing,
    /// The type without dtype and dims, for the emitted function.
    pub written: TokenStream,
    /// The path of a model's type, with its generics.
    pub model: Option<syn::Path>,
    /// What the model consists of, once its companion has told.
    pub fields: Option<FieldType>,
}

/// What a signature may refer to beside tensors.
#[derive(Default)]
pub struct Context {
    /// Generics of the `impl` around a method.
    pub generics: Vec<Ident>,
    /// The type of `self`.
    pub self_type: Option<syn::Path>,
    /// Models by the text of their types ([`crate::model::text_of_type`]), as far as they are known.
    pub models: HashMap<String, Rc<ModelType>>,
}

/// What the function returns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ResultType {
    /// One tensor.
    Tensor(TensorType),
    /// A tuple.
    Tuple(Vec<ResultType>),
}

impl ResultType {
    /// The tensors, in order.
    pub fn tensors(&self) -> Vec<&TensorType> {
        match self {
            ResultType::Tensor(tensor) => vec![tensor],
            ResultType::Tuple(elements) => elements.iter().flat_map(ResultType::tensors).collect(),
        }
    }

    /// Replaces named dims by slot.
    pub fn substitute(&mut self, new: &impl Fn(u32) -> Option<Dim>) {
        match self {
            ResultType::Tensor(tensor) => tensor.shape = tensor.shape.iter().map(|dim| dim.substitute(new)).collect(),
            ResultType::Tuple(elements) => elements.iter_mut().for_each(|element| element.substitute(new)),
        }
    }
}

/// A constant of the scope around the function: no macro sees its value.
#[derive(Clone)]
pub struct OuterConstant {
    /// How the user wrote it.
    pub text: String,
    /// How it is reached from here.
    pub path: TokenStream,
    /// The size that a trace takes it for; `const` evaluation compares the two.
    pub assumed: Option<Dim>,
}

/// Outer constants by number.
#[derive(Clone, Default)]
pub struct Constants(pub Vec<OuterConstant>);

impl Constants {
    /// Number of a constant, new or known.
    pub fn number(&mut self, text: String, path: TokenStream) -> usize {
        self.0.iter().position(|known| known.text == text).unwrap_or_else(|| {
            self.0.push(OuterConstant { text, path, assumed: None });
            self.0.len() - 1
        })
    }

    /// A dim in Rust, as an i64, if its value is known once constants are: a named dim's is not.
    pub fn in_rust(&self, dim: &Dim) -> Option<TokenStream> {
        let mut sum = quote!(0i64);
        for (atoms, coefficient) in dim.terms() {
            let mut product = quote!(#coefficient);
            for atom in &atoms {
                let factor = match atom {
                    Atom::Named { slot, .. } => {
                        let path = &self.0.get(slot.checked_sub(FIRST_CONSTANT)? as usize)?.path;
                        quote!((#path as i64))
                    }
                    Atom::Idiv(a, b) | Atom::Mod(a, b) | Atom::Max(a, b) => {
                        let (a, b) = (self.in_rust(a)?, self.in_rust(b)?);
                        match atom {
                            Atom::Idiv(..) => quote!(i64::div_euclid(#a, #b)),
                            Atom::Mod(..) => quote!(i64::rem_euclid(#a, #b)),
                            _ => quote!(if #a > #b { #a } else { #b }),
                        }
                    }
                };
                product = quote!(#product * #factor);
            }
            sum = quote!(#sum + #product);
        }
        Some(quote!((#sum)))
    }

    /// The constant as a dim.
    pub fn dim(&mut self, text: String, path: TokenStream) -> Dim {
        let number = self.number(text, path);
        let assumed = self.0.get(number).and_then(|constant| constant.assumed.clone());
        assumed.unwrap_or_else(|| Dim::named(FIRST_CONSTANT + number as u32, 1, NamedDim::MAX))
    }
}

/// A checked signature.
pub struct FunctionSignature {
    /// The function's name.
    pub ident: Ident,
    /// Declared dims: those of [`Signature::dims`], in its order.
    pub dims: Vec<Ident>,
    /// Dims and inputs; constants among the shapes by [`FIRST_CONSTANT`].
    pub signature: Signature,
    /// Parameters as written.
    pub parameters: Vec<Parameter>,
    /// What is returned; `None` after an error.
    pub result: Option<ResultType>,
    /// The return type without dtypes and dims.
    pub written_result: TokenStream,
    /// Where the return type stands.
    pub result_place: Place,
    /// Constants that the shapes use.
    pub constants: Constants,
    /// Names of all parameters, of those too that could not be read.
    pub names: Vec<String>,
    /// Dims that nothing binds, unless a model does that is not known yet.
    pub unbound: Vec<(Place, String)>,
}

/// Reads types and dims.
pub struct TypeReader<'a> {
    /// Declared dims and what they stand for.
    pub names: Vec<(String, Dim)>,
    /// Outer constants met so far.
    pub constants: &'a mut Constants,
    /// Where mistakes go.
    pub diagnostics: &'a mut Diagnostics,
}

impl TypeReader<'_> {
    /// `Tensor<f32, B, 64>`, and the same without its arguments.
    pub fn tensor(&mut self, written: &Type) -> Option<TensorType> {
        let help = "write `Tensor<f32, B, 64>`: a dtype, then the dims";
        let Type::Path(path) = written else {
            let help = other_type(written).unwrap_or(help);
            self.diagnostics.error(Place::of(written), format!("expected a tensor; {help}"));
            return None;
        };
        let segment = path.path.segments.last()?;
        if segment.ident != "Tensor" {
            let name = source_text(&path.path);
            let help = other_type(written).unwrap_or(help);
            self.diagnostics.error(Place::of(written), format!("`{name}` is no tensor type; {help}"));
            return None;
        }
        let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
            self.diagnostics.error(Place::of(written), format!("this tensor has no dtype and no dims; {help}"));
            return None;
        };
        let mut arguments = arguments.args.iter();
        let dtype = match arguments.next() {
            Some(GenericArgument::Type(Type::Path(path))) => {
                let name = path.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
                let found = DType::from_name(&name).filter(|dtype| !matches!(dtype, DType::Void | DType::Index));
                if found.is_none() {
                    let is_dim = self.names.iter().any(|(dim, _)| *dim == name);
                    let message = match name.as_str() {
                        "double" => "`double` is called `f64`".to_string(),
                        "float" => "`float` is called `f32`".to_string(),
                        "int" => "`int` is called `i32`".to_string(),
                        "half" => "`half` is called `f16`".to_string(),
                        _ if is_dim => format!(
                            "`{name}` is a dim, and the dtype comes first, as in `Tensor<f32, {name}>`: a function of other dtypes is another function"
                        ),
                        _ => format!("`{name}` is no dtype: the first argument of a tensor is one of {}", dtypes()),
                    };
                    self.diagnostics.error(Place::of(path), message);
                }
                found?
            }
            Some(other) => {
                let message = format!("the first argument of a tensor is its dtype, one of {}", dtypes());
                self.diagnostics.error(Place::of(other), message);
                return None;
            }
            None => {
                self.diagnostics.error(Place::of(written), format!("this tensor has no dtype; {help}"));
                return None;
            }
        };
        Some(TensorType { dtype, shape: self.dims(arguments)? })
    }

    /// Generic arguments that are dims.
    pub fn dims<'a>(&mut self, arguments: impl Iterator<Item = &'a GenericArgument>) -> Option<Shape> {
        // Every wrong dim is reported.
        let dims: Vec<Option<Dim>> = arguments
            .map(|argument| match argument {
                GenericArgument::Type(Type::Path(path)) if path.qself.is_none() => {
                    self.dim(&Expr::Path(syn::ExprPath { attrs: vec![], qself: None, path: path.path.clone() }))
                }
                GenericArgument::Const(expression) => self.dim(expression),
                other => {
                    let message = "a dim is a number, a name, or `{ an expression }` over them";
                    self.diagnostics.error(Place::of(other), message);
                    None
                }
            })
            .collect();
        dims.into_iter().collect()
    }

    /// A dim: number, name, outer constant, or an expression over them.
    pub fn dim(&mut self, expression: &Expr) -> Option<Dim> {
        let dim = self.dim_or_none(expression)?;
        if dim.bounds().1 < 1 && dim.as_const() != Some(0) {
            let message = format!("a dim of {dim} elements: a size is not negative");
            self.diagnostics.error(Place::of(expression), message);
            return None;
        }
        Some(dim)
    }

    fn dim_or_none(&mut self, expression: &Expr) -> Option<Dim> {
        match expression {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Int(number) => match number.base10_parse::<i64>() {
                    Ok(number) => return Some(Dim::from(number)),
                    Err(error) => self.diagnostics.error(Place::of(literal), format!("no size: {error}")),
                },
                _ => self.diagnostics.error(Place::of(literal), "a dim is a whole number"),
            },
            Expr::Path(path) => {
                if let Some(name) = path.path.get_ident()
                    && let Some((_, dim)) = self.names.iter().find(|(declared, _)| name == declared)
                {
                    return Some(dim.clone());
                }
                return Some(self.constants.dim(source_text(&path.path), quote!(#path)));
            }
            Expr::Paren(inner) => return self.dim_or_none(&inner.expr),
            Expr::Group(inner) => return self.dim_or_none(&inner.expr),
            Expr::Cast(cast) => return self.dim_or_none(&cast.expr),
            Expr::Block(block) => match block.block.stmts.as_slice() {
                [syn::Stmt::Expr(inner, None)] => return self.dim_or_none(inner),
                _ => self.diagnostics.error(Place::of(block), "a dim is one expression"),
            },
            Expr::Binary(binary) => {
                let (left, right) = (self.dim_or_none(&binary.left), self.dim_or_none(&binary.right));
                let (left, right) = (left?, right?);
                return Some(match binary.op {
                    BinOp::Add(_) => left + right,
                    BinOp::Sub(_) => left - right,
                    BinOp::Mul(_) => left * right,
                    BinOp::Div(_) => left.idiv(&right),
                    BinOp::Rem(_) => left.modulo(&right),
                    _ => {
                        self.diagnostics.error(Place::of(&binary.op), "dims are made with `+`, `-`, `*`, `/` and `%`");
                        return None;
                    }
                });
            }
            other => self.diagnostics.error(
                Place::of(other),
                "a dim is a number, a name, an outer constant, or `+`, `-`, `*`, `/`, `%` of them",
            ),
        }
        None
    }
}

/// What to write instead of a type that is no tensor.
fn other_type(written: &Type) -> Option<&'static str> {
    match written {
        Type::Slice(_) | Type::Array(_) => Some("several tensors are several parameters, or a tuple as the result"),
        Type::ImplTrait(_) | Type::TraitObject(_) | Type::FnPtr(_) => {
            Some("a graph has no functions as values and no traits: call the #[function] by its name")
        }
        Type::Tuple(_) => Some("a parameter is one tensor or number: take the parts as parameters of their own"),
        Type::Path(path) => {
            let name = path.path.segments.last()?.ident.to_string();
            Some(match name.as_str() {
                "Vec" => "several tensors are several parameters, or a tuple as the result",
                "Option" => "what may be missing is a function of its own",
                "str" | "String" | "char" => "words choose while tracing: write a function for each",
                "usize" | "isize" => "a number is a tensor without dims, such as `Tensor<i64>`",
                name if DType::from_name(name).is_some() => "a number is a tensor without dims, `Tensor<f32>`",
                _ => return None,
            })
        }
        _ => None,
    }
}

fn dtypes() -> String {
    let names = "bool i8 i16 i32 i64 u8 u16 u32 u64 f8e4m3 f8e5m2 f16 bf16 f32 f64";
    names.split(' ').map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// A tensor type without its arguments: the run-time `Tensor` has its shape as a value.
pub fn without_arguments(written: &Type) -> TokenStream {
    match written {
        Type::Path(path) => {
            let mut path = path.clone();
            if let Some(segment) = path.path.segments.last_mut() {
                segment.arguments = PathArguments::None;
            }
            quote!(#path)
        }
        Type::Reference(reference) => {
            let (mutability, inner) = (&reference.mutability, without_arguments(&reference.elem));
            quote!(& #mutability #inner)
        }
        Type::Tuple(tuple) => {
            let elements = tuple.elems.iter().map(without_arguments);
            quote!((#(#elements,)*))
        }
        other => quote!(#other),
    }
}

impl FunctionSignature {
    /// Reads a signature. Mistakes are reported; what could be read is kept, so that callers are still checked.
    pub fn read(
        written: &syn::Signature,
        options: &Options,
        context: &Context,
        diagnostics: &mut Diagnostics,
    ) -> FunctionSignature {
        refuse_qualifiers(written, diagnostics);
        let mut declared = context.generics.clone();
        declared.extend(declared_dims(written, diagnostics));
        for (name, (_, _, ident)) in &options.bounds {
            if declared.iter().all(|dim| dim != name) {
                diagnostics.error(Place::of(ident), format!("`{}` declares no dim `{name}`", written.ident));
            }
        }
        let named = |name: &Ident| {
            let mut dim = NamedDim::new(name.to_string());
            if let Some((low, high, _)) = options.bounds.get(&dim.name) {
                (dim.min, dim.max) = (*low, *high);
            }
            dim
        };
        let dims: Vec<NamedDim> = declared.iter().map(named).collect();
        let mut constants = Constants::default();
        let mut reader = TypeReader {
            names: (0..).zip(&dims).map(|(slot, dim)| (dim.name.clone(), Dim::named(slot, dim.min, dim.max))).collect(),
            constants: &mut constants,
            diagnostics,
        };
        let mut parameters: Vec<Parameter> = vec![];
        let mut inputs = vec![];
        for argument in &written.inputs {
            let Some((mut parameter, ty)) = read_parameter(argument, context, &mut reader) else { continue };
            let name = &parameter.ident;
            if parameters.iter().any(|other| other.ident == *name) {
                reader.diagnostics.error(Place::of(name), format!("the parameter `{name}` is declared twice"));
                continue;
            }
            if declared.contains(name) {
                let message = format!("`{name}` is a dim and a parameter: dims are written in capitals, `<B>`");
                reader.diagnostics.error(Place::of(name), message);
                continue;
            }
            let name = parameter.ident.to_string();
            match ty {
                Some(ty) => inputs.push(Input { name, dtype: ty.dtype, shape: ty.shape }),
                None => {
                    let known = inputs.len();
                    let path = parameter.model.clone();
                    parameter.fields = path.and_then(|path| read_model(&path, context, &mut reader));
                    if let Some(fields) = &parameter.fields {
                        fields.leaves(&name, &[], &mut inputs);
                        parameter.passing = Passing::Model(inputs.len() - known);
                    }
                }
            }
            parameters.push(parameter);
        }
        let (result, result_place) = match &written.output {
            ReturnType::Default => {
                let place = Place::of(&written.ident);
                let message = format!(
                    "`{}` returns nothing: a function of tensors returns a `Tensor<…>` or a tuple of them",
                    written.ident
                );
                reader.diagnostics.error(place, message);
                (None, place)
            }
            ReturnType::Type(_, ty) => (read_result(ty, &mut reader), Place::of(ty)),
        };
        let written_result = match &written.output {
            ReturnType::Default => quote!(()),
            ReturnType::Type(_, ty) => match &**ty {
                Type::Reference(reference) => without_arguments(&reference.elem),
                ty => without_arguments(ty),
            },
        };
        let signature = Signature { name: written.ident.to_string(), dims, inputs };
        let mut read = FunctionSignature {
            ident: written.ident.clone(),
            dims: declared,
            signature,
            parameters,
            result,
            written_result,
            result_place,
            constants,
            names: written.inputs.iter().map(name_of).collect(),
            unbound: vec![],
        };
        read.order_dims();
        if !read.has_models() {
            for (place, message) in std::mem::take(&mut read.unbound) {
                diagnostics.error(place, message);
            }
        }
        read
    }

    /// Takes a struct of tensors.
    pub fn has_models(&self) -> bool {
        self.parameters.iter().any(|parameter| parameter.model.is_some())
    }

    /// The types of the models that it takes, each once.
    pub fn models(&self) -> impl Iterator<Item = CalleePath> + use<> {
        let mut models: Vec<CalleePath> = vec![];
        for path in self.parameters.iter().filter_map(|parameter| parameter.model.as_ref()) {
            let model = crate::model::as_callee(path);
            if models.iter().all(|known| known.text != model.text) {
                models.push(model);
            }
        }
        models.into_iter()
    }

    /// The companions of all models have told what they consist of.
    pub fn is_known(&self) -> bool {
        self.parameters.iter().all(|parameter| parameter.model.is_none() || parameter.fields.is_some())
    }

    /// Every type could be read.
    pub fn is_complete(&self) -> bool {
        self.result.is_some() && self.parameters.len() == self.names.len()
    }

    /// Dims in the order in which the inputs name them: that of a trace at run time.
    fn order_dims(&mut self) {
        let mut order: Vec<usize> = vec![];
        let atoms = self.signature.inputs.iter().flat_map(|input| &input.shape);
        for dim in atoms {
            if let Some(Atom::Named { slot, .. }) = dim.as_atom()
                && (*slot as usize) < self.dims.len()
                && !order.contains(&(*slot as usize))
            {
                order.push(*slot as usize);
            }
        }
        for (position, dim) in self.dims.iter().enumerate() {
            if order.contains(&position) {
                continue;
            }
            order.push(position);
            // A parameter that could not be read may have named it.
            if self.parameters.len() == self.names.len() {
                let message =
                    format!("nothing binds the dim `{dim}`: it must stand alone as an axis of some parameter");
                self.unbound.push((Place::of(dim), message));
            }
        }
        let dims = order.iter().map(|&old| self.signature.dims[old].clone()).collect();
        let signature = std::mem::replace(&mut self.signature.dims, dims);
        let new = |slot: u32| {
            let old = signature.get(slot as usize)?;
            let position = order.iter().position(|&other| other == slot as usize)?;
            Some(Dim::named(position as u32, old.min, old.max))
        };
        for input in &mut self.signature.inputs {
            input.shape = input.shape.iter().map(|dim| dim.substitute(&new)).collect();
        }
        if let Some(result) = &mut self.result {
            result.substitute(&new);
        }
        self.dims = order.iter().map(|&old| self.dims[old].clone()).collect();
    }
}

fn name_of(argument: &FnArg) -> String {
    match argument {
        FnArg::Typed(argument) => match &*argument.pat {
            Pat::Ident(name) => name.ident.to_string(),
            _ => "_".to_string(),
        },
        FnArg::Receiver(_) => "self".to_string(),
    }
}

fn refuse_qualifiers(written: &syn::Signature, diagnostics: &mut Diagnostics) {
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
    if let Some(clause) = &written.generics.where_clause {
        diagnostics.error(Place::of(clause), "the names in `<…>` are dims, which have no bounds of types; `#[function(bounds(B: 1..=4096))]` bounds sizes");
    }
}

fn declared_dims(written: &syn::Signature, diagnostics: &mut Diagnostics) -> Vec<Ident> {
    let mut dims: Vec<Ident> = vec![];
    for generic in &written.generics.params {
        match generic {
            syn::GenericParam::Type(parameter) => {
                if !parameter.bounds.is_empty() || parameter.default.is_some() {
                    let message = format!(
                        "`{}` is a dim: it has no bounds of types; `#[function(bounds({}: 1..=4096))]` bounds its size",
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
fn read_parameter(
    argument: &FnArg,
    context: &Context,
    reader: &mut TypeReader,
) -> Option<(Parameter, Option<TensorType>)> {
    let argument = match argument {
        FnArg::Typed(argument) => argument,
        FnArg::Receiver(receiver) if context.self_type.is_some() => {
            if !matches!(receiver.kind, syn::ReceiverKind::Reference(_, _, None)) {
                let message = "a #[function] changes nothing: its methods take `&self`";
                reader.diagnostics.error(Place::of(receiver), message);
            }
            let ident = Ident::new("self", receiver.self_token.span);
            let model = context.self_type.clone();
            let parameter =
                Parameter { ident, passing: Passing::Model(0), written: quote!(&Self), model, fields: None };
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
            if let Some(mutability) = &reference.mutability {
                let message = "a #[function] changes nothing: take `&Tensor<…>` and return the new value";
                reader.diagnostics.error(Place::of(mutability), message);
            }
            if let Type::Path(path) = &*reference.elem
                && path.qself.is_none()
                && path.path.segments.last().is_some_and(|last| last.ident != "Tensor")
                && !is_number(&path.path)
                && !has_dtype(&path.path)
            {
                let mut model = parameter(Passing::Model(0), quote!(&#path));
                model.model = Some(path.path.clone());
                return Some((model, None));
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
                    let message = "tensors are passed by reference: write `&Tensor<…>`";
                    reader.diagnostics.error(place, message);
                    let ty = reader.tensor(&argument.ty)?;
                    let written = without_arguments(&argument.ty);
                    Some((parameter(Passing::Tensor, quote!(&#written)), Some(ty)))
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

/// `Tenser<f32, B>` was meant to be a tensor.
fn has_dtype(path: &syn::Path) -> bool {
    let Some(PathArguments::AngleBracketed(arguments)) = path.segments.last().map(|last| &last.arguments) else {
        return false;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(Type::Path(path))) => is_number(&path.path),
        _ => false,
    }
}

/// What a model's type consists of, with the generics it is written with.
fn read_model(path: &syn::Path, context: &Context, reader: &mut TypeReader) -> Option<FieldType> {
    let model = context.models.get(&text_of_type(path))?;
    let arguments = match &path.segments.last()?.arguments {
        PathArguments::AngleBracketed(arguments) => reader.dims(arguments.args.iter())?,
        _ => Shape::new(),
    };
    // rustc counts them.
    (arguments.len() == model.generics.len()).then(|| FieldType::Model(model.clone(), arguments))
}

fn read_result(written: &Type, reader: &mut TypeReader) -> Option<ResultType> {
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
        Type::Reference(reference) => {
            reader.diagnostics.error(Place::of(written), "a #[function] returns values: write `Tensor<…>` without `&`");
            read_result(&reference.elem, reader)
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

/// The span at which everything generated for a call hangs: its `(`.
pub fn open_span(paren: &syn::token::Paren) -> Span {
    paren.span.open()
}
