//! Signatures: `fn mlp<B>(x: &Tensor<f32, B, 784>, scale: f32) -> Tensor<f32, B, 10>`.

mod facts;
mod parameters;
mod types;

pub use facts::{MadeDim, gcd};
pub use parameters::may_be_size;
pub use types::{TypeReader, mentions, without_arguments};

use super::callees::CalleePath;
use super::options::Options;
use super::trace::erased;
use crate::diagnostics::{Diagnostics, Place, unbound_dim, unbound_generic};
use crate::model::types::{FieldType, Leaves, ModelType};
use parameters::{
    declared_dims, is_updated_tensor, name_of, read_model, read_parameter, read_result, refuse_qualifiers,
};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use std::collections::HashMap;
use std::rc::Rc;
use syn::{Ident, ReturnType, Type};
use tinyspec_ir::dim::Atom;
use tinyspec_ir::function::FIRST_CONSTANT;
use tinyspec_ir::signature::{Input, NamedDim, Signature, linear};
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
    /// `&Mlp`: a model of this many tensors.
    Model(usize),
    /// `&mut Mlp`: a model of this many tensors; its buffers are also results, after the declared ones.
    Updated(usize),
    /// A `bool` that an `if` tests: each value has its own graph.
    Flag,
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
    /// The fields of the model, once its companion has told them.
    pub fields: Option<FieldType>,
}

impl Parameter {
    /// Whether it is a `&mut` model without buffers, so that a call cannot change it.
    pub fn changes_nothing(&self) -> bool {
        matches!(self.passing, Passing::Updated(_)) && self.fields.as_ref().is_some_and(|fields| !fields.has_buffers())
    }
}

/// The names that a signature may refer to besides tensors.
#[derive(Default, Clone)]
pub struct Context {
    /// Generics of the `impl` around a method.
    pub generics: Vec<Ident>,
    /// The type of `self`.
    pub self_type: Option<syn::Path>,
    /// Models by the text of their types ([`crate::model::text_of_type`]), as far as they are known.
    pub models: HashMap<String, Rc<ModelType>>,
}

/// The result type of a function.
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

/// A constant of the scope around the function: macros cannot see its value.
#[derive(Clone)]
pub struct OuterConstant {
    /// How the user wrote it.
    pub text: String,
    /// Its path from here.
    pub path: TokenStream,
    /// The size that a trace assumes for it; `const` evaluation compares the two.
    pub assumed: Option<Dim>,
}

/// Outer constants by number.
#[derive(Clone, Default)]
pub struct Constants(pub Vec<OuterConstant>);

impl Constants {
    /// The number of a constant, new or known. Two callees may have different constants of one name.
    pub fn number(&mut self, text: String, path: TokenStream) -> usize {
        let way = path.to_string();
        self.0.iter().position(|known| known.path.to_string() == way).unwrap_or_else(|| {
            self.0.push(OuterConstant { text, path, assumed: None });
            self.0.len() - 1
        })
    }

    /// The constant of a slot, unless a trace has already assumed its value: each is assumed once, so that retracing
    /// ends.
    pub fn open(&self, slot: u32) -> Option<&OuterConstant> {
        self.0.get(slot.checked_sub(FIRST_CONSTANT)? as usize).filter(|constant| constant.assumed.is_none())
    }

    /// A dim as a Rust expression of type i128, which holds every `usize`; `None` if it contains a named dim, since
    /// only constants have values.
    pub fn in_rust(&self, dim: &Dim) -> Option<TokenStream> {
        let mut sum = quote!(0i128);
        for (atoms, coefficient) in dim.terms() {
            let coefficient = i128::from(coefficient);
            let mut product = quote!(#coefficient);
            for atom in &atoms {
                let factor = match atom {
                    Atom::Named { slot, .. } => {
                        let path = &self.0.get(slot.checked_sub(FIRST_CONSTANT)? as usize)?.path;
                        quote!((#path as i128))
                    }
                    Atom::Idiv(a, b) | Atom::Mod(a, b) | Atom::Max(a, b) => {
                        let (a, b) = (self.in_rust(a)?, self.in_rust(b)?);
                        match atom {
                            Atom::Idiv(..) => quote!(i128::div_euclid(#a, #b)),
                            Atom::Mod(..) => quote!(i128::rem_euclid(#a, #b)),
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
    /// Declared dims in the order of [`Signature::dims`], including the quotients of facts.
    pub dims: Vec<Ident>,
    /// Declared dims that a fact expresses by others: `D` is `H * (D/H)`.
    pub made: Vec<MadeDim>,
    /// Dims and inputs; constants among the shapes by [`FIRST_CONSTANT`].
    pub signature: Signature,
    /// Parameters as written.
    pub parameters: Vec<Parameter>,
    /// The result; `None` after an error.
    pub result: Option<ResultType>,
    /// The return type without dtypes and dims.
    pub written_result: TokenStream,
    /// The place of the return type.
    pub result_place: Place,
    /// Constants that the shapes use.
    pub constants: Constants,
    /// Positions of the inputs that are buffers.
    pub buffers: Vec<usize>,
    /// Positions of the buffers whose new states the function returns, in this order, after its results.
    pub states: Vec<usize>,
    /// Names of all parameters, including those that could not be read.
    pub names: Vec<String>,
    /// A fact about its dims could not be parsed, so its body is not diagnosed.
    pub has_unread_facts: bool,
    /// Errors about dims that nothing binds and `&mut` models without buffers; models not known yet may resolve them.
    pub unbound: Vec<(Place, String)>,
}

impl FunctionSignature {
    /// Reads a signature. Mistakes are reported; what could be read is kept, so that callers are still checked.
    pub fn read(
        written: &syn::Signature,
        options: &Options,
        context: &Context,
        diagnostics: &mut Diagnostics,
    ) -> FunctionSignature {
        let read = FunctionSignature::read_from(&HashMap::new(), written, options, context, diagnostics);
        match read.least_sizes() {
            least if least.is_empty() => read,
            least => FunctionSignature::read_from(&least, written, options, context, diagnostics),
        }
    }

    /// The bounds that the sizes in a signature imply for its dims: `{ N - 2 }` implies that `N` is at least 2.
    fn least_sizes(&self) -> HashMap<String, i64> {
        let mut sizes = HashMap::new();
        let results = self.result.iter().flat_map(ResultType::tensors).map(|tensor| &tensor.shape);
        let shapes = self.signature.inputs.iter().map(|input| &input.shape).chain(results);
        for dim in shapes.flatten() {
            for (slot, named) in (0..).zip(&self.signature.dims) {
                let numbers = linear(dim, slot).and_then(|(factor, rest)| Some((factor.as_const()?, rest.as_const()?)));
                let Some((factor @ 1.., rest)) = numbers else { continue };
                let least = rest.saturating_neg().div_euclid(factor) + i64::from(rest.rem_euclid(factor) != 0);
                if named.min.max(1) < least && least <= named.max {
                    let known = sizes.entry(named.name.clone()).or_insert(least);
                    *known = least.max(*known);
                }
            }
        }
        sizes
    }

    /// As [`FunctionSignature::read`], with these least values of the dims.
    fn read_from(
        least: &HashMap<String, i64>,
        written: &syn::Signature,
        options: &Options,
        context: &Context,
        diagnostics: &mut Diagnostics,
    ) -> FunctionSignature {
        // Constants of the signature are numbered before models are known; those of models follow.
        let mut constants = match context.models.is_empty() {
            true => Constants::default(),
            false => {
                let first = Context { models: HashMap::new(), ..context.clone() };
                FunctionSignature::read(written, options, &first, &mut Diagnostics::default()).constants
            }
        };
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
            dim.implied = least.get(&dim.name).copied().unwrap_or_default();
            dim
        };
        let dims: Vec<NamedDim> = declared.iter().map(named).collect();
        let names: Vec<String> = written.inputs.iter().map(name_of).collect();
        let mut reader = TypeReader {
            owner: format!("fn {}", written.ident),
            parameters: &names,
            names: (0..).zip(&dims).map(|(slot, dim)| (dim.name.clone(), dim.at(slot))).collect(),
            constants: &mut constants,
            diagnostics,
        };
        let (mut dims, mut in_order) = (dims, declared.clone());
        let made = facts::made_dims(&options.facts, &written.ident, &mut dims, &mut in_order, &mut reader);
        let mut parameters: Vec<Parameter> = vec![];
        let (mut leaves, mut states, mut unbound) = (Leaves::default(), vec![], vec![]);
        for argument in &written.inputs {
            let Some((mut parameter, ty)) = read_parameter(argument, &written.ident, context, &mut reader) else {
                continue;
            };
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
            if options.flags.contains(&name) && parameter.passing == Passing::Scalar {
                parameter.passing = Passing::Flag;
                parameters.push(parameter);
                continue;
            }
            match ty {
                Some(ty) => leaves.inputs.push(Input { name, dtype: ty.dtype, shape: ty.shape }),
                None => {
                    let (known, buffers) = (leaves.inputs.len(), leaves.buffers.len());
                    let path = parameter.model.clone();
                    parameter.fields = path.and_then(|path| read_model(&path, context, &mut reader));
                    if let Some(fields) = &parameter.fields {
                        let path = parameter.model.as_ref();
                        leaves.root = path.map(|path| erased(path, &declared)).unwrap_or_default();
                        leaves.constants = std::mem::take(reader.constants);
                        fields.leaves(&name, &quote!((*model)), (&[], &[]), &mut leaves);
                        *reader.constants = std::mem::take(&mut leaves.constants);
                        let count = leaves.inputs.len() - known;
                        parameter.passing = match parameter.passing {
                            Passing::Updated(_) => {
                                if parameter.changes_nothing() {
                                    unbound.push((Place::of(argument), without_buffers(&parameter)));
                                }
                                states.extend(&leaves.buffers[buffers..]);
                                Passing::Updated(count)
                            }
                            _ => Passing::Model(count),
                        };
                    }
                }
            }
            parameters.push(parameter);
        }
        let (result, result_place) = match &written.output {
            ReturnType::Default => {
                let place = Place::of(&written.ident);
                if !written.inputs.iter().any(is_updated_tensor) {
                    let message = format!(
                        "`{}` returns nothing: a function of tensors returns a `Tensor<…>` or a tuple of them",
                        written.ident
                    );
                    reader.diagnostics.error(place, message);
                }
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
        let Leaves { inputs, buffers, .. } = leaves;
        let signature = Signature { name: written.ident.to_string(), dims, inputs };
        let mut read = FunctionSignature {
            ident: written.ident.clone(),
            dims: in_order,
            made,
            signature,
            parameters,
            result,
            written_result,
            result_place,
            constants,
            buffers,
            states,
            names: names.clone(),
            has_unread_facts: options.has_unread_facts,
            unbound,
        };
        read.without_made();
        read.order_dims(&context.generics);
        if !read.has_models() {
            for (place, message) in std::mem::take(&mut read.unbound) {
                diagnostics.error(place, message);
            }
        }
        read
    }

    /// Whether it takes a struct of tensors.
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

    /// The parameters that are flags, in order.
    pub fn flags(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| parameter.passing == Passing::Flag)
    }

    /// Whether the fields of all models are known.
    pub fn is_known(&self) -> bool {
        self.parameters.iter().all(|parameter| parameter.model.is_none() || parameter.fields.is_some())
    }

    /// Whether every type could be read.
    pub fn is_complete(&self) -> bool {
        self.result.is_some() && self.parameters.len() == self.names.len()
    }

    /// Names of all declared dims.
    pub fn dim_names(&self) -> Vec<Ident> {
        let quotients: Vec<&Ident> = self.made.iter().map(|made| &made.quotient).collect();
        let own = self.dims.iter().filter(|dim| !quotients.contains(dim));
        own.chain(self.made.iter().map(|made| &made.ident)).cloned().collect()
    }

    /// Orders dims as the inputs name them, which is the order of a trace at run time.
    fn order_dims(&mut self, of_model: &[Ident]) {
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
        let mut unbound = self.signature.unbound();
        // A dim made of an unbound one gets no further message.
        let is_quotient = |position: &usize| self.made.iter().any(|made| made.quotient == self.dims[*position]);
        if unbound.iter().any(|position| !is_quotient(position)) {
            unbound.retain(|position| !is_quotient(position));
        }
        for (position, dim) in self.dims.iter().enumerate() {
            if order.contains(&position) {
                continue;
            }
            order.push(position);
            // A parameter that could not be read may have named it.
            if unbound.contains(&position) && self.parameters.len() == self.names.len() {
                let quotient = self.made.iter().find(|made| made.quotient == *dim);
                let dim = quotient.map_or(dim, |made| &made.ident);
                let message = if of_model.contains(dim) { unbound_generic(dim) } else { unbound_dim(dim) };
                self.unbound.push((Place::of(dim), message));
            }
        }
        let dims = order.iter().map(|&old| self.signature.dims[old].clone()).collect();
        let signature = std::mem::replace(&mut self.signature.dims, dims);
        let new = |slot: u32| {
            let old = signature.get(slot as usize)?;
            let position = order.iter().position(|&other| other == slot as usize)?;
            Some(old.at(position as u32))
        };
        for input in &mut self.signature.inputs {
            input.shape = input.shape.iter().map(|dim| dim.substitute(&new)).collect();
        }
        if let Some(result) = &mut self.result {
            result.substitute(&new);
        }
        for made in &mut self.made {
            made.dim = made.dim.substitute(&new);
        }
        self.dims = order.iter().map(|&old| self.dims[old].clone()).collect();
    }
}

/// The message for a `&mut` model without buffers.
fn without_buffers(parameter: &Parameter) -> String {
    let model = parameter.model.as_ref().map(crate::diagnostics::source_text).unwrap_or_default();
    let shared = match parameter.ident == "self" {
        true => "&self".to_string(),
        false => format!("{}: &{model}", parameter.ident),
    };
    format!(
        "a #[function] changes only buffers, and `{model}` has none: write `{shared}`, or `#[model(buffer)]` before the field that is to change"
    )
}

/// The span of everything generated for a call: its `(`.
pub fn open_span(paren: &syn::token::Paren) -> Span {
    paren.span.open()
}
