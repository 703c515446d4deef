//! The tracer: runs the body of a `#[function]` on symbolic tensors with the builders that the run time uses, and
//! collects all mistakes.
//!
//! Inputs have the first slots, named dims the next. Constants of the scope around the function and results of calls
//! are Params from `FIRST_CONSTANT` and `FIRST_RESULT` on, until the program decodes the graph (`Traced::resolve`).

mod assign;
mod assume;
mod branch;
mod call;
mod constants;
mod control;
mod decide;
mod elsewhere;
mod expression;
mod inference;
mod method;
mod numbers;
mod options;
mod pick;
mod results;
mod stand_in;
mod state;
mod statement;
mod value;
mod words;

pub use constants::known_number;
pub use statement::names_of;
pub use value::{ModelValue, Value};

use super::Told;
use super::signature::{Constants, FunctionSignature, OuterConstant, Passing, TensorType, TypeReader};
use crate::diagnostics::{Diagnostics, Place};
use crate::model::types::{FieldType, OF_MODEL};
use decide::{Alternative, Decided, Decision, MOST_ALTERNATIVES, MOST_NUMBERS};
use inference::Inference;
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use state::Buffer;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use syn::ext::IdentExt;
use tinyspec_ir::function::{CallSite, FIRST_CONSTANT, FIRST_RESULT, Traced};
use tinyspec_ir::signature::{Signature, show_type};
use tinyspec_ir::{Arg, Builder, DType, Dim, Graph, Location, NodeId, Op, Shape, dim};

/// A model's type with arbitrary sizes for the declared dims, where only the type matters.
pub fn erased(path: &syn::Path, dims: &[syn::Ident]) -> TokenStream {
    let mut path = path.clone();
    if let Some(last) = path.segments.last_mut()
        && let syn::PathArguments::AngleBracketed(arguments) = &mut last.arguments
    {
        for argument in &mut arguments.args {
            let text = quote!(#argument).to_string();
            let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            if words.any(|word| dims.iter().any(|dim| dim.unraw() == word)) {
                *argument = syn::parse_quote!(0);
            }
        }
    }
    quote!(#path)
}

/// The state of a trace.
pub struct Tracer<'a> {
    signature: &'a FunctionSignature,
    /// By the path as written; `None` while a signature is not known yet.
    callees: &'a Told,
    /// Paths of the model methods that are called, numbered after the callees.
    methods: Vec<TokenStream>,
    graph: Graph,
    calls: Vec<CallSite>,
    results: u32,
    scopes: Vec<HashMap<String, Value>>,
    constants: Constants,
    checks: Vec<Check>,
    /// Trip counts of loops with constant bounds, which `const` evaluation checks.
    counts: Vec<TokenStream>,
    /// The types of numbers.
    inference: Inference,
    /// The assumptions of the next trace.
    assumed: Vec<Check>,
    /// The equalities that this trace assumed.
    equalities: Vec<Check>,
    /// Arithmetic on constants that `const` evaluation has to accept.
    computed: Vec<TokenStream>,
    /// Buffers of the models among the parameters.
    buffers: Vec<Buffer>,
    /// The first expression without a value that was not refused: rustc reports its mistake.
    open: Option<Place>,
    /// Some callee has mistakes.
    waits: bool,
    /// The decisions of constants and flags in this alternative.
    decided: Decided,
    /// Constants used as numbers are tried up to this value.
    most_number: i64,
    /// The first decision that is still open.
    undecided: Option<Decision>,
    /// Names of flags and loop indices, whose values are known only when the body runs.
    open_names: Vec<String>,
    /// The graph is made when the function is first used, where the constants are known.
    is_deferred: bool,
    /// Where mistakes go.
    diagnostics: &'a mut Diagnostics,
}

/// An equality that only constants decide, for `const` evaluation.
#[derive(Clone)]
pub struct Check {
    /// The argument it is about.
    pub place: Place,
    /// The start of the message, before the two values.
    pub what: String,
    /// The constant as written, unless the message names it.
    pub constant: Option<String>,
    /// The constant.
    pub expected: TokenStream,
    /// The other size, as written.
    pub found: String,
    /// The same as a Rust expression.
    pub value: TokenStream,
}

impl Check {
    /// A constant whose evaluation fails unless the values are equal.
    pub fn to_tokens(&self) -> TokenStream {
        self.to_tokens_when(None)
    }

    /// The same, under a condition.
    fn to_tokens_when(&self, condition: Option<&TokenStream>) -> TokenStream {
        let Check { place, what, constant, expected, found, value } = self;
        let check = if let Some(constant) = constant {
            let call = quote_spanned!(place.start=> ::tinyspec::__private::check_equal);
            quote_spanned!(place.end=> #call (#what, #constant, #expected as i128, #found, #value))
        } else {
            let call = quote_spanned!(place.start=> ::tinyspec::__private::check_size);
            quote_spanned!(place.end=> #call (#what, #expected as i128, #found, #value))
        };
        match condition {
            None => quote_spanned!(place.end=> const _: () = #check;),
            Some(condition) => quote_spanned!(place.end=> const _: () = if #condition { #check };),
        }
    }
}

/// The result of a trace.
pub struct Outcome {
    /// Checks by rustc: equalities of constants, and whether methods exist.
    pub checks: Vec<TokenStream>,
    /// The graph, unless there were mistakes.
    pub traced: Option<Traced>,
    /// Outer constants by number.
    pub constants: Constants,
    /// Callees after those with a path: methods of models.
    pub methods: Vec<TokenStream>,
    /// The typed copy makes the graph when the function is first used, because constants and flags decide what it is.
    pub is_deferred: bool,
    /// An expression without a value, though nothing was refused. If rustc finds no mistake either, this must not be
    /// ignored.
    pub open: Option<Place>,
}

/// Traces `body` on the inputs of `signature`.
pub fn trace(
    signature: &FunctionSignature,
    body: &syn::Block,
    callees: &Told,
    diagnostics: &mut Diagnostics,
) -> Outcome {
    let mut alternatives = Alternatives::default();
    for most in MOST_NUMBERS {
        match all_alternatives(signature, body, callees, most) {
            Ok(all) => {
                alternatives = all;
                break;
            }
            Err(question) if Some(&most) == MOST_NUMBERS.last() => {
                let message = format!(
                    "`{}` is one constant too many to decide here: a body is traced in at most {MOST_ALTERNATIVES} ways; make some of them `const`s inside the function",
                    question.text
                );
                diagnostics.error(question.place, message);
            }
            Err(_) => {}
        }
    }
    let Alternatives { alternatives, covered } = alternatives;
    if signature.has_unread_facts {
        // It is unknown which dims divide which.
        let mut found = Diagnostics::default();
        let outcome = decide::joined(alternatives, covered, &mut found);
        diagnostics.extend(found.without_errors());
        return Outcome { checks: vec![], traced: None, open: None, ..outcome };
    }
    let is_right = diagnostics.is_empty();
    if alternatives.is_empty() {
        return Outcome {
            checks: vec![],
            traced: None,
            constants: signature.constants.clone(),
            methods: vec![],
            is_deferred: true,
            open: None,
        };
    }
    let outcome = decide::joined(alternatives, covered, diagnostics);
    let (traced, open) = (outcome.traced.filter(|_| is_right), outcome.open.filter(|_| is_right));
    Outcome { traced, open, ..outcome }
}

/// The traces of all alternatives.
#[derive(Default)]
struct Alternatives {
    alternatives: Vec<Alternative>,
    /// Checks for `const` evaluation that there is no other alternative.
    covered: Vec<TokenStream>,
}

/// Traces all alternatives; `Err` is the decision that makes them too many.
fn all_alternatives(
    signature: &FunctionSignature,
    body: &syn::Block,
    callees: &Told,
    most_number: i64,
) -> Result<Alternatives, Box<Decision>> {
    let mut open: Vec<Vec<(Decision, i64)>> = vec![vec![]];
    let (mut alternatives, mut covered) = (vec![], vec![]);
    while let Some(decisions) = open.pop() {
        match trace_alternative(signature, body, callees, (&decisions, most_number)) {
            Ok(alternative) => alternatives.push(alternative),
            Err(question) if open.len() + alternatives.len() + question.values.len() > MOST_ALTERNATIVES => {
                return Err(question);
            }
            Err(question) => {
                covered.extend(decide::covered(&question, &decisions));
                for &value in question.values.iter().rev() {
                    let mut decisions = decisions.clone();
                    decisions.push(((*question).clone(), value));
                    open.push(decisions);
                }
            }
        }
    }
    Ok(Alternatives { alternatives, covered })
}

/// Traces `body` with these decisions; `Err` is the next open decision.
fn trace_alternative(
    signature: &FunctionSignature,
    body: &syn::Block,
    callees: &Told,
    (decisions, most_number): (&[(Decision, i64)], i64),
) -> Result<Alternative, Box<Decision>> {
    let decided: Decided = decisions.iter().map(|(decision, value)| (decision.path.to_string(), *value)).collect();
    let mut known = (signature.constants.clone(), vec![]);
    let mut inference = Inference::default();
    loop {
        let mut found = Diagnostics::default();
        let constants = known.0.clone();
        let assuming = Assuming { constants, inference, decided: decided.clone(), most_number };
        let (outcome, Taken { assumed, equalities, computed }, inferred) =
            trace_assuming(signature, body, callees, assuming, &mut found)?;
        let is_inferred = !inferred.is_wrong();
        inference = inferred.retraced();
        if !assumed.is_empty() {
            known.0 = outcome.constants;
            known.1.extend(assumed);
            continue;
        }
        if !is_inferred {
            // The next trace starts with the types of literals that this one found.
            continue;
        }
        let is_right = found.is_empty();
        let (traced, open) = (outcome.traced.filter(|_| is_right), outcome.open.filter(|_| is_right));
        let is_deferred = outcome.is_deferred || !decisions.is_empty();
        let outcome = Outcome { traced, open, is_deferred, ..outcome };
        known.1.extend(equalities);
        return Ok(Alternative { decisions: decisions.to_vec(), outcome, found, checks: known.1, computed });
    }
}

/// The findings of the previous traces.
struct Assuming {
    constants: Constants,
    inference: Inference,
    decided: Decided,
    most_number: i64,
}

/// The assumptions of a trace about constants.
struct Taken {
    /// Sizes of constants for the next trace.
    assumed: Vec<Check>,
    /// The rest.
    equalities: Vec<Check>,
    /// Arithmetic on constants that `const` evaluation has to accept.
    computed: Vec<TokenStream>,
}

/// One trace under the assumptions of the previous ones, and the assumptions for the next.
fn trace_assuming(
    signature: &FunctionSignature,
    body: &syn::Block,
    callees: &Told,
    Assuming { constants, inference, decided, most_number }: Assuming,
    diagnostics: &mut Diagnostics,
) -> Result<(Outcome, Taken, Inference), Box<Decision>> {
    let mut tracer = Tracer {
        signature,
        callees,
        methods: vec![],
        graph: Graph::new(),
        calls: vec![],
        results: 0,
        scopes: vec![HashMap::new()],
        constants,
        checks: vec![],
        counts: vec![],
        inference,
        assumed: vec![],
        equalities: vec![],
        computed: vec![],
        buffers: vec![],
        open: None,
        waits: false,
        decided,
        most_number,
        undecided: None,
        open_names: signature.flags().map(|flag| flag.ident.to_string()).collect(),
        is_deferred: signature.flags().next().is_some(),
        diagnostics,
    };
    tracer.bind_inputs();
    let value = tracer.block(body);
    let mut outputs = tracer.outputs(body, value);
    if let Some(outputs) = &mut outputs {
        outputs.extend(tracer.states());
    }
    if outputs.is_none() && tracer.diagnostics.is_empty() {
        let place = body.stmts.last().map_or_else(|| Place::of(&signature.ident), Place::of);
        tracer.open.get_or_insert(place);
    }
    if let Some(question) = tracer.undecided {
        return Err(Box::new(question));
    }
    let assumed_signature = tracer.assumed_signature();
    let Tracer {
        graph,
        calls,
        constants,
        checks,
        counts,
        assumed,
        equalities,
        computed,
        open,
        waits,
        methods,
        diagnostics,
        inference,
        is_deferred,
        ..
    } = tracer;
    for (place, value, ty) in inference.overflows() {
        diagnostics.error(place, numbers::overflow(value, ty));
    }
    // Reported already, or elsewhere.
    let is_reported = !diagnostics.is_empty() || waits;
    let checks = checks.iter().map(Check::to_tokens).chain(counts).collect();
    let traced = outputs.filter(|_| diagnostics.is_empty() && open.is_none()).map(|outputs| Traced {
        signature: assumed_signature,
        graph,
        calls,
        outputs,
    });
    let open = open.filter(|_| !is_reported);
    let taken = Taken { assumed, equalities, computed };
    Ok((Outcome { traced, constants, checks, methods, is_deferred, open }, taken, inference))
}

/// The parameter that a model is or belongs to.
#[derive(Clone, Copy)]
struct Owner<'a> {
    /// Its type.
    root: &'a Rc<TokenStream>,
    /// Its name.
    parameter: &'a str,
    /// It is `&mut`.
    is_updated: bool,
}

impl Tracer<'_> {
    fn bind_inputs(&mut self) {
        let signature = self.signature;
        for name in &signature.names {
            self.declare(name, Value::Wrong);
        }
        let params = match self.assumed_signature().params(&mut self.graph) {
            Ok(params) => params,
            Err(error) => return self.diagnostics.error(Place::of(&signature.ident), error.message()),
        };
        let mut params = params.into_iter();
        for parameter in &signature.parameters {
            let name = parameter.ident.to_string();
            if parameter.passing == Passing::Flag {
                let path = crate::diagnostics::ident(&name);
                let value = Value::Constant { text: name.clone(), path: quote!(#path), kind: None, size: None };
                self.declare(&name, value);
                continue;
            }
            let value = match (&parameter.fields, &parameter.model) {
                (Some(fields), Some(path)) => {
                    let root = Rc::new(erased(path, &signature.dim_names()));
                    let is_updated = matches!(parameter.passing, Passing::Updated(_));
                    let owner = Owner { root: &root, parameter: &name, is_updated };
                    self.model_value(fields, (owner, false), &quote!((*model)), &mut params)
                }
                (_, Some(_)) => {
                    self.waits = true;
                    Value::Unseen
                }
                _ => params.next().map_or(Value::Unknown, Value::Tensor),
            };
            self.declare(&name, value);
        }
        for position in 0..signature.dims.len() {
            let (name, dim) = (signature.dims[position].to_string(), self.in_graph(&signature.signature.dim(position)));
            self.declare(&name, Value::Dim(dim));
        }
        for made in &signature.made {
            let dim = self.in_graph(&made.dim);
            self.declare(&made.ident.to_string(), Value::Dim(dim));
        }
    }

    /// A model as nested values over its tensors; `access` is the path to it from its owner, in a closure over `model`.
    fn model_value(
        &mut self,
        ty: &FieldType,
        (owner, is_buffer): (Owner, bool),
        access: &TokenStream,
        nodes: &mut impl Iterator<Item = NodeId>,
    ) -> Value {
        let of = (owner, is_buffer);
        match ty {
            FieldType::Tensor(_) => match nodes.next() {
                Some(node) if is_buffer => self.new_buffer(node, owner.parameter, owner.is_updated),
                Some(node) => Value::Tensor(node),
                None => Value::Unknown,
            },
            FieldType::Buffer(state) => self.model_value(state, (owner, true), access, nodes),
            FieldType::Model(model, _) => {
                let fields = model
                    .fields
                    .iter()
                    .map(|(name, ty)| {
                        let ident = crate::diagnostics::ident(name);
                        (name.clone(), self.model_value(ty, of, &quote!(#access.#ident), nodes))
                    })
                    .collect();
                Value::Model(Rc::new(ModelValue {
                    model: model.clone(),
                    fields,
                    root: owner.root.clone(),
                    access: access.clone(),
                }))
            }
            FieldType::List(element, count) => {
                Value::List((0..*count).map(|_| self.model_value(element, of, &quote!(#access[0]), nodes)).collect())
            }
            FieldType::Optional(element, true) => {
                let some = quote!((*#access.as_ref().unwrap()));
                Value::Optional(Some(Box::new(self.model_value(element, of, &some, nodes))))
            }
            FieldType::Optional(_, false) => Value::Optional(None),
        }
    }

    /// A dim of the signature in the graph's numbering: the slots of named dims follow the inputs.
    fn in_graph(&self, dim: &Dim) -> Dim {
        let first = self.signature.signature.inputs.len() as u32;
        let dims = &self.signature.signature.dims;
        let dim = dim.substitute(&|slot| dims.get(slot as usize).map(|dim| dim.at(first + slot)));
        self.as_assumed(&dim)
    }

    /// The signature with the assumed sizes of constants, as in the graph's Params.
    fn assumed_signature(&self) -> Signature {
        let mut assumed = self.signature.signature.clone();
        for input in &mut assumed.inputs {
            input.shape = input.shape.iter().map(|dim| self.as_assumed(dim)).collect();
        }
        assumed
    }

    /// A dim with the assumed sizes of constants.
    fn as_assumed(&self, dim: &Dim) -> Dim {
        dim.substitute(&|slot| self.constants.0.get(slot.checked_sub(FIRST_CONSTANT)? as usize)?.assumed.clone())
    }

    fn declare(&mut self, name: &str, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_string(), value);
        }
    }

    fn lookup(&self, name: &str) -> Option<&Value> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// Builds nodes for the code at `span`, with the user's names in messages.
    fn build<T>(
        &mut self,
        span: Span,
        build: impl FnOnce(&mut Graph) -> tinyspec_ir::Result<T>,
    ) -> tinyspec_ir::Result<T> {
        let (names, known) = (self.names(), self.graph.len());
        let result = dim::with_names(&names, || build(&mut self.graph));
        let start = span.start();
        let location = Location { file: Arc::from(""), line: start.line as u32, column: start.column as u32 + 1 };
        for node in known..self.graph.len() {
            self.graph.locate(NodeId(node as u32), location.clone());
        }
        result
    }

    fn names(&self) -> Vec<(u32, String)> {
        let first = self.signature.signature.inputs.len() as u32;
        let dims = (first..).zip(self.signature.signature.dims.iter().map(|dim| dim.name.clone()));
        let text = |constant: &OuterConstant| constant.text.trim_start_matches(OF_MODEL).to_string();
        let constants = (FIRST_CONSTANT..).zip(self.constants.0.iter().map(text));
        dims.chain(constants).collect()
    }

    /// `Tensor<f32, B, 64>`
    fn type_of(&self, node: NodeId) -> String {
        let (dtype, shape) = (self.graph.dtype(node), &self.graph.props(node).shape);
        dim::with_names(&self.names(), || show_type(dtype, shape))
    }

    fn tensor_type(&self, node: NodeId) -> TensorType {
        TensorType { dtype: self.graph.dtype(node), shape: self.graph.props(node).shape.clone() }
    }

    /// A line of help: how to convert one type into the other.
    fn difference(&self, found: &TensorType, wanted: &TensorType) -> String {
        let without_ones =
            |shape: &Shape| shape.iter().filter(|dim| dim.as_const() != Some(1)).cloned().collect::<Shape>();
        let help = if found.shape == wanted.shape {
            format!("`.cast::<{}>()` converts", wanted.dtype)
        } else if found.shape.len() != wanted.shape.len() && without_ones(&found.shape) == without_ones(&wanted.shape) {
            "an axis of size 1 goes with `keepdim` = `false` or `.squeeze(axis)`, and comes with `true` or `.unsqueeze(axis)`".to_string()
        } else if found.shape.len() == 2 && found.shape.iter().eq(wanted.shape.iter().rev()) {
            "`.transpose(0, 1)` swaps the axes".to_string()
        } else {
            return String::new();
        };
        format!("\n  help: {help}")
    }

    fn show_type(&self, ty: &TensorType) -> String {
        dim::with_names(&self.names(), || show_type(ty.dtype, &ty.shape))
    }

    /// Reports a builder's error with the operands' types and the origin of their dims.
    fn refused(&mut self, place: Place, error: &tinyspec_ir::Error, operands: &[(String, Value)]) -> Value {
        let mut message = format!("{}: {}", error.op(), error.message());
        let mut shown = vec![];
        for (text, value) in operands {
            if let Value::Tensor(node) = value {
                let line = format!("`{text}` is {}", self.type_of(*node));
                if !shown.contains(&line) {
                    shown.push(line);
                }
            }
        }
        if !shown.is_empty() {
            message += &format!("\n  {}", shown.join(", "));
        }
        for line in self.origins(&message) {
            message += &format!("\n  {line}");
        }
        if let Some(help) = error.suggestion() {
            message += &format!("\n  help: {help}");
        }
        self.diagnostics.error(place, message);
        Value::Wrong
    }

    /// For each named dim in a message, the axis and the parameter that it comes from.
    fn origins(&self, message: &str) -> Vec<String> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let words: Vec<&str> = message.split(|c| !is_word(c)).collect();
        let mut lines = vec![];
        for (position, dim) in self.signature.dims.iter().enumerate() {
            let name = dim.to_string();
            if !words.contains(&name.as_str()) {
                continue;
            }
            let wanted = self.signature.signature.dim(position);
            let place = self.signature.signature.inputs.iter().find_map(|input| {
                let axis = input.shape.iter().position(|dim| *dim == wanted)?;
                Some(format!("`{name}` is axis {axis} of `{}`", input.name))
            });
            lines.extend(place);
        }
        lines
    }

    /// Reads a type of the body.
    fn type_reader(&mut self) -> TypeReader<'_> {
        let dims = self
            .scopes
            .iter()
            .flatten()
            .filter_map(|(name, value)| match value {
                Value::Dim(dim) => Some((name.clone(), dim.clone())),
                _ => None,
            })
            .collect();
        let owner = format!("fn {}", self.signature.ident);
        TypeReader {
            owner,
            parameters: &[],
            names: dims,
            constants: &mut self.constants,
            diagnostics: self.diagnostics,
        }
    }

    /// A Param for result number `results` of a call.
    fn result(&mut self, span: Span, ty: &TensorType) -> tinyspec_ir::Result<NodeId> {
        let slot = FIRST_RESULT + self.results;
        self.results += 1;
        let arg = Arg::Param { slot, dtype: ty.dtype, device: None, addrspace: None };
        self.build(span, |graph| {
            let shape = graph.shape(&ty.shape)?;
            graph.add(Op::Param, &[shape], arg)
        })
    }

    fn dtype_of(&self, value: &Value) -> DType {
        match value {
            Value::Tensor(node) => self.graph.dtype(*node),
            _ => DType::Void,
        }
    }
}
