//! Functions that `#[function]` traced at compile time: bytes in the binary, decoded once.

use super::states::Buffer;
use super::{Body, Function, Prepared, rewritten, without_elements};
use crate::lower::functions::LEAST_USES;
use crate::nn::Role;
use crate::tensor::{Element, Scalar, Tensor, become_gradients};
use crate::{Error, Result};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tinyspec_ir::function::{CallSite, Traced};
use tinyspec_ir::rewrite::Permission;
use tinyspec_ir::signature::{Input, Signature};
use tinyspec_ir::{Arg, Builder, Const, DType, Dim, ErrorKind, Graph, NodeId, Op, Shape};

/// A function in the binary: the expansion of a `#[function]`'s body, under the name `FUNCTION` of the function's type.
///
/// It is decoded on first use; callees and constants, which the macro could not see, are filled in then.
pub struct EmbeddedFunction {
    name: &'static str,
    bytes: &'static [u8],
    file: &'static str,
    callees: &'static [&'static EmbeddedFunction],
    /// The length of the longest call chain below. Callers read it in constants, so that rustc refuses recursion.
    #[doc(hidden)]
    pub depth: u32,
    constants: fn() -> Vec<Const>,
    typed: TypedCopy,
    /// The graph depends on constants or flags: the typed copy builds it.
    is_deferred: bool,
    flags: u32,
    /// The same function with other values of its flags.
    flagged: Mutex<BTreeMap<u32, &'static EmbeddedFunction>>,
    gradient: Gradient,
    permissions: &'static [Permission],
    strict: bool,
    /// Positions of the arguments that are buffers of models: they have no gradients.
    buffers: &'static [usize],
    /// Results that are new states of arguments, behind all others: both positions.
    pub(super) states: &'static [(usize, usize)],
    decoded: OnceLock<Result<Function>>,
    derived: OnceLock<Result<Function>>,
}

/// The origin of the backward function.
enum Gradient {
    /// Derived on demand.
    Derived,
    /// Derived at compile time.
    Embedded(&'static EmbeddedFunction),
    /// Written by the user.
    Own(&'static EmbeddedFunction),
}

/// The user's body as Rust code: inputs, named dims and flags, from the lowest bit on, to results.
type TypedCopy = fn(&[Tensor], &[Dim], u32) -> Vec<Tensor>;

impl std::fmt::Debug for EmbeddedFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedFunction")
            .field("name", &self.name)
            .field("file", &self.file)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

impl EmbeddedFunction {
    /// The constructor that the macro emits.
    #[doc(hidden)]
    pub const fn new(
        name: &'static str,
        bytes: &'static [u8],
        file: &'static str,
        callees: &'static [&'static EmbeddedFunction],
        constants: fn() -> Vec<Const>,
        typed: TypedCopy,
    ) -> EmbeddedFunction {
        EmbeddedFunction {
            name,
            bytes,
            file,
            callees,
            depth: 0,
            constants,
            typed,
            is_deferred: false,
            flags: 0,
            flagged: Mutex::new(BTreeMap::new()),
            gradient: Gradient::Derived,
            permissions: &[],
            strict: false,
            buffers: &[],
            states: &[],
            decoded: OnceLock::new(),
            derived: OnceLock::new(),
        }
    }

    /// The same, with a graph that is built on first use.
    #[doc(hidden)]
    pub const fn deferred(mut self) -> EmbeddedFunction {
        self.is_deferred = true;
        self
    }

    /// The function with these values for its flags, the `bool` parameters that its body branches on. Each combination
    /// has its own graph, which is built on first use. Missing values are `false`.
    ///
    /// ```
    /// # use tinyspec_core::function::EmbeddedFunction;
    /// fn prepared(attention: &'static EmbeddedFunction) -> &'static EmbeddedFunction {
    ///     attention.with_flags(&[true])
    /// }
    /// ```
    pub fn with_flags(&'static self, flags: &[bool]) -> &'static EmbeddedFunction {
        let bits = flags.iter().rev().fold(0, |bits, &flag| bits << 1 | u32::from(flag));
        if bits == self.flags {
            return self;
        }
        let mut flagged = self.flagged.lock().unwrap_or_else(PoisonError::into_inner);
        flagged.entry(bits).or_insert_with(|| {
            // Leaks at most one for each combination of flags.
            Box::leak(Box::new(EmbeddedFunction {
                flags: bits,
                flagged: Mutex::new(BTreeMap::new()),
                decoded: OnceLock::new(),
                derived: OnceLock::new(),
                gradient: match self.gradient {
                    Gradient::Own(own) => Gradient::Own(own),
                    Gradient::Derived | Gradient::Embedded(_) => Gradient::Derived,
                },
                ..*self
            }))
        })
    }

    /// The same with callees of these depths.
    #[doc(hidden)]
    pub const fn above(mut self, depths: &[u32]) -> EmbeddedFunction {
        let mut position = 0;
        while position < depths.len() {
            if self.depth <= depths[position] {
                self.depth = depths[position] + 1;
            }
            position += 1;
        }
        self
    }

    /// The same with the backward function that was derived at compile time.
    #[doc(hidden)]
    pub const fn with_backward(mut self, backward: &'static EmbeddedFunction) -> EmbeddedFunction {
        self.gradient = Gradient::Embedded(backward);
        self
    }

    /// The same with the user's own gradient.
    #[doc(hidden)]
    pub const fn with_gradient(mut self, gradient: &'static EmbeddedFunction) -> EmbeddedFunction {
        self.gradient = Gradient::Own(gradient);
        self
    }

    /// The same with permissions for its floats: see [`Function::fast_math`].
    #[doc(hidden)]
    pub const fn fast_math(mut self, permissions: &'static [Permission]) -> EmbeddedFunction {
        self.permissions = permissions;
        self
    }

    /// The same with sums of products of bf16 computed as written: see [`Function::strict`].
    #[doc(hidden)]
    pub const fn strict(mut self) -> EmbeddedFunction {
        self.strict = true;
        self
    }

    /// The same with arguments that are buffers.
    #[doc(hidden)]
    pub const fn with_buffers(mut self, buffers: &'static [usize]) -> EmbeddedFunction {
        self.buffers = buffers;
        self
    }

    /// The same with results that are new states of arguments.
    #[doc(hidden)]
    pub const fn updating(mut self, states: &'static [(usize, usize)]) -> EmbeddedFunction {
        self.states = states;
        self
    }

    /// The placeholder that the macro emits along with its errors.
    #[doc(hidden)]
    pub const fn failed() -> EmbeddedFunction {
        EmbeddedFunction::new("function", b"", "", &[], Vec::new, |_, _, _| vec![])
    }

    /// The function's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The function, ready to be called.
    ///
    /// # Errors
    /// When the bytes are damaged, or the values of outer constants do not fit, as in a shape that depends on them.
    pub fn get(&self) -> Result<&Function> {
        self.decoded.get_or_init(|| self.decode()).as_ref().map_err(Error::clone)
    }

    fn decode(&self) -> Result<Function> {
        let traced = Traced::decode(self.bytes, self.file)?;
        let constants = (self.constants)();
        let signature = traced.signature_with(&constants);
        let closed = if self.is_deferred {
            let function = self.run(signature)?;
            let (graph, outputs) = (function.body().graph().clone(), function.body().outputs().to_vec());
            Traced { signature: function.signature().clone(), graph, calls: vec![], outputs }
        } else {
            let (graph, outputs) = self.resolve(&traced, &constants)?;
            Traced { signature, graph, calls: vec![], outputs }
        };
        let own = match self.gradient {
            Gradient::Own(gradient) => {
                let mut graph = Graph::new();
                let inputs = closed.backward_signature().params(&mut graph)?;
                let outputs = gradient.get()?.inline(&mut graph, &inputs)?;
                let outputs = self.with_gradients_of_buffers(&mut graph, &closed.signature, outputs)?;
                Some(Arc::new(Body::new(graph, outputs)))
            }
            _ => None,
        };
        let (graph, outputs) = rewritten(closed.graph, closed.outputs, self.permissions, self.strict)?;
        let mut body = Body::new(graph, outputs);
        if let Some(own) = own {
            body = body.with_gradient(own);
        }
        Ok(Function::new(closed.signature, Arc::new(body))?)
    }

    /// Inserts zeros among the user's own gradients for inputs that are buffers.
    fn with_gradients_of_buffers(
        &self,
        graph: &mut Graph,
        signature: &Signature,
        gradients: Vec<NodeId>,
    ) -> Result<Vec<NodeId>> {
        let mut own = gradients.into_iter();
        let mut all = vec![];
        let inputs = signature.params(graph)?;
        for (position, &input) in inputs.iter().enumerate() {
            if !graph.dtype(input).is_float() {
                continue;
            }
            if self.buffers.contains(&position) {
                let props = graph.props(input).clone();
                all.push(tinyspec_ir::ops::creation::zeros(graph, &props.shape, props.dtype)?);
            } else {
                all.extend(own.next());
            }
        }
        Ok(all)
    }

    /// The graph with the bodies of its callees and the values of constants. What is called often stays a Function.
    fn resolve(&self, traced: &Traced, constants: &[Const]) -> Result<(Graph, Vec<NodeId>)> {
        let key = |site: &CallSite| (site.callee, site.is_gradient);
        let mut calls: FxHashMap<(u32, bool), usize> = FxHashMap::default();
        traced.calls.iter().for_each(|site| *calls.entry(key(site)).or_default() += 1);
        let mut tuples: FxHashMap<(u32, bool), NodeId> = FxHashMap::default();
        Ok(traced.resolve(constants, |graph, site, arguments| {
            let missing = || tinyspec_ir::Error::new(ErrorKind::Verify, self.name, "a callee is missing");
            let callee = self.callees.get(site.callee as usize).ok_or_else(missing)?;
            let function = if site.is_gradient { callee.gradient() } else { callee.get() };
            let function = function.map_err(|error| match error {
                Error::Graph(error) => error,
                other => tinyspec_ir::Error::new(ErrorKind::Value, callee.name, other.to_string()),
            })?;
            // The gradient of a Function needs its sizes.
            if calls[&key(site)] < LEAST_USES || !function.signature().dims.is_empty() {
                return function.inline(graph, arguments);
            }
            let tuple = match tuples.get(&key(site)) {
                Some(&tuple) => tuple,
                None => *tuples.entry(key(site)).or_insert(function.body().tuple_in(graph)?),
            };
            function.body().call(graph, tuple, arguments)
        })?)
    }

    /// Runs the typed copy over placeholders.
    #[track_caller]
    fn run(&self, signature: Signature) -> Result<Function> {
        // The slots of the signature's dims follow those of the placeholders.
        let first = signature.inputs.len() as u32;
        let dims: Vec<Dim> = (first..).zip(&signature.dims).map(|(slot, dim)| dim.at(slot)).collect();
        Function::trace_signature(signature, |inputs| (self.typed)(inputs, &dims, self.flags))
    }

    /// The backward function: on the inputs and a cotangent for each float result it gives a gradient for each float input.
    ///
    /// # Errors
    /// As [`EmbeddedFunction::get`], and when an op of the body has no gradient.
    pub fn gradient(&self) -> Result<&Function> {
        match self.gradient {
            Gradient::Embedded(backward) | Gradient::Own(backward) => backward.get(),
            Gradient::Derived => {
                let derived = self.derived.get_or_init(|| self.get()?.backward());
                derived.as_ref().map_err(Error::clone)
            }
        }
    }

    /// The results on these arguments, lazily, as many as the function has; errors are carried by the results.
    #[track_caller]
    pub fn call(&self, arguments: &[&Tensor]) -> Vec<Tensor> {
        match self.of_nothing(arguments) {
            Ok(Some(function)) => function.call(arguments),
            Ok(None) => match self.get() {
                Ok(function) => {
                    let results = function.call(arguments);
                    let is_refused = results.first().is_some_and(|result| result.error().is_some());
                    let refusal = if is_refused { self.refusal(function, arguments) } else { None };
                    match refusal {
                        Some(error) => vec![Tensor::failed(error); results.len()],
                        None => results,
                    }
                }
                Err(error) => vec![Tensor::failed(error)],
            },
            Err(error) => vec![Tensor::failed(error.at(Location::caller()))],
        }
    }

    /// The function for arguments in which a named dim is 0. The embedded graph assumes that dims are at least 1, so
    /// the body is traced again for such placeholders. `None` if the function has a gradient of its own.
    #[track_caller]
    fn of_nothing(&self, arguments: &[&Tensor]) -> Result<Option<Function>> {
        let is_empty = |argument: &&Tensor| argument.shape().iter().any(|dim| dim.is(0));
        if !arguments.iter().any(is_empty) || matches!(self.gradient, Gradient::Own(_)) {
            return Ok(None);
        }
        let function = self.get()?;
        let signature = function.signature();
        let found = types(arguments)?;
        let dims = signature.bind_or_empty(&found).map_err(super::first)?;
        // Sizes without a number are those of another function that is being traced.
        let is_known = found.iter().flat_map(|(_, shape)| shape).all(|dim| dim.as_const().is_some());
        if !is_known || !dims.iter().any(|dim| dim.is(0)) {
            return Ok(None);
        }
        let written = without_elements::call(function, &found, &dims)?;
        let sized = written.map_or_else(|| self.of_sizes(function, &found, &dims), Ok)?;
        Ok(Some(sized.rewritten(self.permissions, self.strict)?))
    }

    /// Traces the body again, for inputs of these types and these values of the named dims.
    #[track_caller]
    fn of_sizes(&self, function: &Function, found: &[(DType, Shape)], dims: &[Dim]) -> Result<Function> {
        let signature = function.signature();
        let inputs = signature.inputs.iter().zip(found.iter().cloned());
        let inputs = inputs.map(|(input, (dtype, shape))| Input { name: input.name.clone(), dtype, shape }).collect();
        let signature = Signature { name: signature.name.clone(), dims: vec![], inputs };
        // A ramp of a few elements has a narrower dtype than one of unknown length.
        let dtypes = function.body().outputs().iter().map(|&result| function.body().graph().dtype(result));
        Function::trace_signature(signature, |inputs| {
            let mut results = (self.typed)(inputs, dims, self.flags);
            if results.is_empty() {
                results = written_by_kernel(function, dims);
            }
            // A failed result keeps its own error.
            let cast =
                |(result, dtype): (Tensor, DType)| if result.error().is_some() { result } else { result.cast(dtype) };
            results.into_iter().zip(dtypes).map(cast).collect()
        })
    }

    /// The error of the op in the body that refuses these sizes. The graph for all sizes cannot name it: composed ops are expanded
    /// there.
    #[track_caller]
    fn refusal(&self, function: &Function, arguments: &[&Tensor]) -> Option<Error> {
        let found = types(arguments).ok()?;
        // Bounds implied by sizes such as `{ N - 2 }` are ignored: the op's own message explains more.
        let mut signature = function.signature().clone();
        signature.dims.iter_mut().for_each(|dim| (dim.min, dim.implied) = (0, 0));
        let dims = signature.bind_or_empty(&found).ok()?;
        let Err(Error::Graph(error)) = self.of_sizes(function, &found, &dims) else { return None };
        let sizes = signature.dims.iter().zip(&dims);
        let sizes: Vec<String> = sizes.map(|(dim, size)| format!("`{}` is {size}", dim.name)).collect();
        let place = error.location().map(|location| format!(", at {location}")).unwrap_or_default();
        let message = format!("{} in this call: {}: {}{place}", sizes.join(", "), error.op(), error.message());
        let refused = tinyspec_ir::Error::new(ErrorKind::Shape, self.name, message).at(Location::caller());
        Some(Error::Graph(match error.suggestion() {
            Some(help) => refused.help(help),
            None => refused,
        }))
    }

    /// Plans the function for arguments like these; see [`Function::prepare`]. The buffers of a model that is passed by `&mut`
    /// are states, as with [`Prepared::in_place`]: behind the results, and not passed to the call.
    ///
    /// # Errors
    /// As [`Function::prepare`].
    #[track_caller]
    pub fn prepare(&self, arguments: &[&Tensor]) -> Result<Prepared> {
        let prepared = match self.of_nothing(arguments)? {
            Some(function) => function.prepare(arguments),
            None => self.get()?.prepare(arguments),
        };
        if self.states.is_empty() { prepared } else { prepared?.in_place(self.states) }
    }

    /// Whether the new state number `number` is the unchanged argument.
    pub(super) fn is_unchanged(&self, number: usize) -> bool {
        let Ok(function) = self.get() else { return true };
        let (result, argument) = self.states[number];
        let graph = function.body().graph();
        let mut node = function.body().outputs()[result];
        while graph.op(node) == Op::Detach {
            node = graph.sources(node)[0];
        }
        matches!(graph.arg(node), Arg::Param { slot, .. } if *slot as usize == argument)
    }

    /// Runs the function's Rust code over placeholders: the graph must be the embedded one, node for node.
    ///
    /// This is how the macro is tested.
    ///
    /// # Errors
    /// As [`Function::trace`].
    #[track_caller]
    pub fn retrace(&self) -> Result<Function> {
        self.run(self.get()?.signature().clone())?.rewritten(self.permissions, self.strict)
    }
}

/// The buffers that a kernel, which has no typed copy, writes if some of its `dims` are 0: empty ones if they have no
/// elements.
fn written_by_kernel(kernel: &Function, dims: &[Dim]) -> Vec<Tensor> {
    let (signature, graph) = (kernel.signature(), kernel.body().graph());
    let first = signature.inputs.len() as u32;
    let size = |slot: u32| dims.get(slot.checked_sub(first)? as usize).cloned();
    let written = kernel.body().outputs().iter().map(|&result| {
        let props = graph.props(result);
        let shape: Shape = props.shape.iter().map(|dim| dim.substitute(&size)).collect();
        if shape.iter().any(|dim| dim.is(0)) {
            return Tensor::full_of(shape, 0, props.dtype);
        }
        let message = format!("there is no result of {}", tinyspec_ir::dim::show(&shape));
        let help = "check the sizes before the call: by the signature of the kernel they need to be larger";
        Tensor::failed(tinyspec_ir::Error::new(ErrorKind::Shape, &signature.name, message).help(help))
    });
    written.collect()
}

/// The result of a `#[function]`: one tensor, or a tuple of them.
pub trait Results: Sized {
    /// How many tensors.
    const COUNT: usize;

    /// From [`COUNT`](Results::COUNT) tensors.
    fn from_tensors(tensors: Vec<Tensor>) -> Self;

    /// As a list.
    fn into_tensors(self) -> Vec<Tensor>;
}

impl Results for Tensor {
    const COUNT: usize = 1;

    fn from_tensors(mut tensors: Vec<Tensor>) -> Tensor {
        tensors.pop().unwrap_or_else(|| unreachable!("the count was checked"))
    }

    fn into_tensors(self) -> Vec<Tensor> {
        vec![self]
    }
}

macro_rules! tuples {
    ($($count:literal: $($name:ident)*;)*) => { $(
        impl<$($name: Results),*> Results for ($($name,)*) {
            const COUNT: usize = 0 $(+ $name::COUNT)*;

            fn from_tensors(tensors: Vec<Tensor>) -> Self {
                let mut tensors = tensors.into_iter();
                ($($name::from_tensors(tensors.by_ref().take($name::COUNT).collect()),)*)
            }

            #[allow(non_snake_case, reason = "a variable for each type")]
            fn into_tensors(self) -> Vec<Tensor> {
                let ($($name,)*) = self;
                let mut tensors = Vec::with_capacity(Self::COUNT);
                $(tensors.extend($name.into_tensors());)*
                tensors
            }
        }
    )* };
}
tuples! {
    1: A; 2: A B; 3: A B C; 4: A B C D; 5: A B C D E; 6: A B C D E F; 7: A B C D E F G; 8: A B C D E F G H;
    9: A B C D E F G H I; 10: A B C D E F G H I J; 11: A B C D E F G H I J K; 12: A B C D E F G H I J K L;
}

/// The body of every function that `#[function]` emits.
#[doc(hidden)]
#[track_caller]
pub fn call<R: Results>(function: &'static EmbeddedFunction, arguments: &[&Tensor]) -> R {
    let mut results = function.call(arguments);
    if results.len() != R::COUNT {
        // A function that cannot be decoded has one result, its error.
        let error = results.pop();
        results = error.into_iter().cycle().take(R::COUNT).collect();
    }
    R::from_tensors(results)
}

/// Calls the backward function, with a cotangent for each float result.
#[doc(hidden)]
#[track_caller]
pub fn gradients(function: &'static EmbeddedFunction, arguments: &[&Tensor], cotangents: &[&Tensor]) -> Vec<Tensor> {
    // Neither new states nor buffers have a gradient.
    let floats = |argument: &usize| arguments.get(*argument).is_some_and(|argument| argument.dtype().is_float());
    let states = function.states.iter().map(|(_, argument)| *argument).filter(floats);
    let zeros: Vec<Tensor> = states.map(|argument| arguments[argument].zeros_like()).collect();
    let mut all = [arguments, cotangents].concat();
    all.extend(&zeros);
    let results = match function.of_nothing(arguments) {
        Ok(Some(empty)) => empty.backward().map(|gradient| gradient.call(&all)),
        Ok(None) => function.gradient().map(|gradient| gradient.call(&all)),
        Err(error) => Err(error.at(Location::caller())),
    };
    let results = results.unwrap_or_else(|error| vec![Tensor::failed(error)]);
    if function.buffers.is_empty() || results.len() == 1 && results[0].error().is_some() {
        return results;
    }
    let positions = (0..arguments.len()).filter(floats);
    let wanted = positions.zip(results).filter(|(position, _)| !function.buffers.contains(position));
    wanted.map(|(_, gradient)| gradient).collect()
}

/// As [`gradients`], where their number is known.
#[doc(hidden)]
#[track_caller]
pub fn call_gradient<const COUNT: usize>(
    function: &'static EmbeddedFunction,
    arguments: &[&Tensor],
    cotangents: &[&Tensor],
) -> [Tensor; COUNT] {
    let results = gradients(function, arguments, cotangents);
    become_gradients(results.iter(), std::iter::empty());
    std::array::from_fn(|number| {
        let result = results.get(number).or(results.first()).cloned();
        result.unwrap_or_else(|| Tensor::failed(Error::refused(ErrorKind::Gradient, function.name, "no float input")))
    })
}

/// Dtypes and shapes.
fn types(arguments: &[&Tensor]) -> Result<Vec<(DType, Shape)>> {
    let of = |argument: &&Tensor| {
        let props = &argument.node()?.props;
        Ok((props.dtype, props.shape.clone()))
    };
    arguments.iter().map(of).collect()
}

/// Stands for the depth of a callee if there is none.
#[doc(hidden)]
pub static NO_FUNCTION: EmbeddedFunction = EmbeddedFunction::failed();

/// The next placeholder for a tensor of a model.
#[doc(hidden)]
#[track_caller]
pub fn next_input(inputs: &mut std::slice::Iter<Tensor>, role: Role) -> Result<Tensor> {
    let missing = || Error::refused(ErrorKind::Arity, "function", "a model has more tensors than inputs");
    let mut input = inputs.next().cloned().ok_or_else(missing)?;
    if role == Role::Buffer {
        input.without_gradient();
    }
    Ok(input)
}

/// An argument for a scalar parameter of a `#[function]`: a number of its type, or a tensor of shape `()`.
#[diagnostic::on_unimplemented(
    message = "expected a number of the type `{T}`, found `{Self}`",
    label = "expected `{T}`, or a tensor of shape `()`"
)]
pub trait ScalarArgument<T> {
    /// As a tensor.
    fn into_tensor(self) -> Tensor;
}

impl<T: Element + Scalar> ScalarArgument<T> for T {
    #[track_caller]
    fn into_tensor(self) -> Tensor {
        Tensor::scalar(self)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> ScalarArgument<T> for Tensor {
    fn into_tensor(self) -> Tensor {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> ScalarArgument<T> for &Tensor {
    fn into_tensor(self) -> Tensor {
        self.clone()
    }
}

/// The default for models without a `#[function] impl`.
#[doc(hidden)]
pub trait NoFunctions {
    /// An `impl` has a constant of its own, which takes precedence. rustc refuses a second `impl` by this name.
    const ONE_FUNCTION_IMPL_HOLDS_ALL_METHODS: bool = false;
}

impl<T> NoFunctions for T {}

/// A bound on the gradients of functions without `grad`. Nothing implements it, so rustc rejects their calls with this message.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no gradient",
    label = "write `#[function(grad)]` before `{Self}`"
)]
pub trait HasGradient<'a> {}

/// A model with a `#[function]` method, whose name `NAME` is a hash of.
#[doc(hidden)]
pub trait HasFunction<const NAME: u64> {
    /// The method.
    const FUNCTION: &'static EmbeddedFunction;
    /// Constants of the scope around it that its shapes name.
    const SIZES: &'static [usize] = &[];
}

/// The method `NAME` of the type that a path of fields leads to, which may not be nameable here.
#[doc(hidden)]
pub const fn method<S, T: HasFunction<NAME>, const NAME: u64>(_path: fn(&S) -> &T) -> &'static EmbeddedFunction {
    T::FUNCTION
}

/// A constant that the shapes of such a method name, for whoever calls it.
#[doc(hidden)]
pub const fn method_size<S, T: HasFunction<NAME>, const NAME: u64>(_path: fn(&S) -> &T, position: usize) -> usize {
    T::SIZES[position]
}

/// The value of an outer constant.
#[doc(hidden)]
pub fn constant<S: Outer>(value: S) -> Const {
    value.value()
}

/// Types that a constant outside a function may have.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a constant in a #[function] is a number, found `{Self}`",
    label = "expected a number"
)]
pub trait Outer {
    /// Its exact value.
    fn value(self) -> Const;
}

macro_rules! outer {
    ($dtype:ident $make:ident: $($type:ty)*) => { $(impl Outer for $type {
        fn value(self) -> Const {
            Const::$make(DType::$dtype, self as _)
        }
    })* };
}
outer!(F64 float: f32 f64);
outer!(I64 int: i8 i16 i32 i64 isize bool);
outer!(U64 int: u8 u16 u32 u64 usize);

impl Function {
    /// The results in `graph` for arguments that are nodes of it.
    pub(crate) fn inline(&self, graph: &mut Graph, arguments: &[NodeId]) -> tinyspec_ir::Result<Vec<NodeId>> {
        let found: Vec<(DType, Shape)> =
            arguments.iter().map(|&node| (graph.dtype(node), graph.props(node).shape.clone())).collect();
        let dims = self.signature().bind(&found).map_err(super::first)?;
        let mut nodes = arguments.to_vec();
        for dim in &dims {
            nodes.push(graph.dim(dim)?);
        }
        self.body().inline(graph, &nodes)
    }
}
