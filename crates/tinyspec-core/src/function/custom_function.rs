//! Custom functions, as users register and call them.

use super::{Function, Spec, named_dims};
use crate::custom_function::{
    self as registry, Code, Described, DeviceBody, DeviceCall, Failure, HostBody, HostCall, HostInput, HostOutput,
};
use crate::tensor::{Element, Tensor, apply_many};
use crate::{Error, Result};
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::custom_function::{self as graphs, Differentiated, GradientRule, Meta};
use tinyspec_ir::{Builder, DType, Dim, ErrorKind, Graph, NodeId, function::inline};

/// From the arguments, the results and the gradient of each float result to the gradient of each argument.
type Gradient = dyn Fn(&[Tensor], &[Tensor], &[Tensor]) -> Vec<Option<Tensor>> + Send + Sync;

/// Code from outside of the language under a name: a library's routine, a decoder, a printed probe (the spec's CustomFunction).
/// [`register_function`] makes it known to the process; [`call_function`] calls it, as does a `#[function]` without a body that
/// bears its name. A call is part of the graph: it runs in order with the kernels that make its arguments and with those that
/// read its results, and nothing is fused with it.
///
/// ```
/// # use tinyspec_core::function::{CustomFunction, call_function, register_function};
/// # use tinyspec_core::{Spec, Tensor, grad};
/// register_function(
///     // The result has the dtype and shape of the argument.
///     CustomFunction::new("doc::cube", |arguments, _| Ok(vec![arguments[0].clone()]))
///         .host(|mut call| {
///             let x = call.inputs[0].as_slice::<f32>()?;
///             for (y, x) in call.outputs[0].as_mut_slice::<f32>()?.iter_mut().zip(x) {
///                 *y = x.powi(3);
///             }
///             Ok(())
///         })
///         .gradient(|arguments, _, gradients| vec![Some(&arguments[0] * &arguments[0] * 3.0 * &gradients[0])]),
/// )?;
/// let x = Tensor::from_slice(&[1f32, 2.0, 3.0], [3]);
/// let [y] = call_function("doc::cube", &[], &[&(&x + 1.0)]);
/// assert_eq!((&y * 2.0).to_vec::<f32>()?, [16.0, 54.0, 128.0]);
/// assert_eq!(grad(&y.sum(.., false), &[&x])?[0].to_vec::<f32>()?, [12.0, 27.0, 48.0]);
/// # Ok::<(), tinyspec_core::Error>(())
/// ```
///
/// **It is a function of its arguments.** Equal calls with equal arguments are one node of the graph and run once for a read; a
/// gradient that recomputes the forward pass may run it again, and a call whose results nobody reads does not run. So a source
/// of batches takes what distinguishes them as an argument, and a probe returns the value that it prints.
///
/// **Errors.** What a body returns as an error, and panics in it, are the error of the read that needs its results.
pub struct CustomFunction {
    code: Code,
    gradient: Option<Box<Gradient>>,
}

impl std::fmt::Debug for CustomFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CustomFunction").field("name", &self.code.name).finish_non_exhaustive()
    }
}

impl CustomFunction {
    /// A function of this name. The rule maps the dtypes and shapes of the arguments and the parameters of a call to the dtypes and
    /// shapes of the results, or says why it refuses them. Where a graph has named dims, the shapes contain
    /// them: a rule that calculates with [`Dim`]s serves all sizes.
    pub fn new(
        name: &str,
        rule: impl Fn(&[Spec], &[Meta]) -> Result<Vec<Spec>, Failure> + Send + Sync + 'static,
    ) -> CustomFunction {
        let rule = move |arguments: &[Described], meta: &[Meta]| {
            let spec = |(dtype, shape): &Described| Spec { dtype: *dtype, shape: shape.clone() };
            let arguments: Vec<Spec> = arguments.iter().map(spec).collect();
            Ok(rule(&arguments, meta)?.into_iter().map(|Spec { dtype, shape }| (dtype, shape)).collect())
        };
        let (host, interpreter, devices) = (None, None, Vec::new());
        let code = Code { name: name.into(), updated: 0, rule: Box::new(rule), host, interpreter, devices };
        CustomFunction { code, gradient: None }
    }

    /// Its code on the host, for every device that has no other: where the device's memory is not that of the host, arguments
    /// are copied there and results back.
    #[must_use]
    pub fn host(self, body: impl Fn(HostCall) -> Result<(), Failure> + Send + Sync + 'static) -> CustomFunction {
        let host: Arc<HostBody> = Arc::new(body);
        CustomFunction { code: Code { host: Some(host), ..self.code }, ..self }
    }

    /// Its code on the interpreter, such as a slow and simple form; without it, the host's.
    #[must_use]
    pub fn interpreter(self, body: impl Fn(HostCall) -> Result<(), Failure> + Send + Sync + 'static) -> CustomFunction {
        let interpreter: Arc<HostBody> = Arc::new(body);
        CustomFunction { code: Code { interpreter: Some(interpreter), ..self.code }, ..self }
    }

    /// Its code on a device, `cuda:1`, or on all devices of a kind, `cuda`. It gets addresses of the device's memory.
    #[must_use]
    pub fn device(
        mut self,
        name: &str,
        body: impl Fn(DeviceCall) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> CustomFunction {
        let body: Arc<DeviceBody> = Arc::new(body);
        self.code.devices.push((name.into(), body));
        self
    }

    /// Lets it update its first `count` arguments in place: their new values are results, after those that it makes. A tensor is a
    /// value, so the function gets a copy of an argument that has other uses.
    ///
    /// ```
    /// # use tinyspec_core::function::{CustomFunction, call_function, register_function};
    /// # use tinyspec_core::Tensor;
    /// let probe = CustomFunction::new("doc::probe", |_, _| Ok(vec![])).updates(1).host(|call| {
    ///     println!("{:?}: {:?}", call.meta, call.outputs[0].as_slice::<f32>()?);
    ///     Ok(())
    /// });
    /// register_function(probe)?;
    /// let x = Tensor::from_slice(&[1f32, 2.0], [2]);
    /// let [y] = call_function("doc::probe", &["twice".into()], &[&(x * 2.0)]);
    /// assert_eq!((y + 1.0).to_vec::<f32>()?, [3.0, 5.0]);
    /// # Ok::<(), tinyspec_core::Error>(())
    /// ```
    #[must_use]
    pub fn updates(self, count: usize) -> CustomFunction {
        CustomFunction { code: Code { updated: count, ..self.code }, ..self }
    }

    /// Its gradient: from the arguments, the results, and the gradient of each result that is a float, to the gradient of each
    /// argument, `None` for one without. It is traced, so it sees no values.
    #[must_use]
    pub fn gradient(
        self,
        rule: impl Fn(&[Tensor], &[Tensor], &[Tensor]) -> Vec<Option<Tensor>> + Send + Sync + 'static,
    ) -> CustomFunction {
        CustomFunction { gradient: Some(Box::new(rule)), ..self }
    }
}

/// Makes a custom function known to the process.
///
/// # Errors
/// When one of this name is registered, or the name is empty.
#[track_caller]
pub fn register_function(function: CustomFunction) -> Result<()> {
    let location = Location::caller();
    let CustomFunction { code, gradient } = function;
    let name = code.name.clone();
    let also = || {
        if let Some(gradient) = gradient {
            let rule: Arc<GradientRule> =
                Arc::new(move |graph: &mut Graph, call: &Differentiated| differentiated(graph, call, &*gradient));
            graphs::set_gradient(&name, rule);
        }
    };
    registry::register(code, also).map_err(|error| error.at(location))
}

/// The results of a registered function on these arguments, lazily; `meta` are parameters, which become part of the graph. If the
/// function is not registered or refuses the arguments, each result carries the error.
#[track_caller]
pub fn call_function<const COUNT: usize>(name: &str, meta: &[Meta], arguments: &[&Tensor]) -> [Tensor; COUNT] {
    let location = Location::caller();
    match called(name, meta, arguments, COUNT, location) {
        Ok(results) => std::array::from_fn(|number| results[number].clone()),
        Err(error) => {
            let error = error.at(location);
            std::array::from_fn(|_| Tensor::failed(error.clone()))
        }
    }
}

fn called(
    name: &str,
    meta: &[Meta],
    arguments: &[&Tensor],
    count: usize,
    location: &'static Location<'static>,
) -> Result<Vec<Tensor>> {
    let code = registry::find(name)?;
    let mut described = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let props = &argument.node()?.props;
        described.push((props.dtype, props.shape.clone()));
    }
    let made = code.made(&described, meta)?;
    let function =
        graphs::CustomFunction { name: name.into(), made: made.len(), updated: code.updated, meta: meta.to_vec() };
    if function.written() != count {
        let message = format!("gives {} results, the caller takes {count}", function.written());
        return Err(Error::refused(ErrorKind::Arity, name, message));
    }
    apply_many(location, arguments, |builder, nodes| {
        function.call(builder, &made, nodes).map_err(|error| error.in_op(name))
    })
}

/// Traces the gradient over placeholders, and adds it to a graph.
fn differentiated(
    graph: &mut Graph,
    call: &Differentiated,
    rule: &Gradient,
) -> tinyspec_ir::Result<Vec<Option<NodeId>>> {
    let Differentiated { function, arguments, results, gradients } = call;
    let nodes: Vec<NodeId> = arguments.iter().chain(*results).chain(gradients.iter().flatten()).copied().collect();
    let specs: Vec<Spec> =
        nodes.iter().map(|&node| Spec { dtype: graph.dtype(node), shape: graph.props(node).shape.clone() }).collect();
    let mut given = Vec::new();
    let traced = Function::trace(&specs, |inputs| {
        let (before, gradients) = inputs.split_at(arguments.len() + results.len());
        let (arguments, results) = before.split_at(arguments.len());
        let found = rule(arguments, results, gradients);
        given = found.iter().map(Option::is_some).collect();
        found.into_iter().flatten().collect()
    });
    let traced = traced.map_err(|error| match error {
        Error::Graph(error) => error,
        error => tinyspec_ir::Error::new(ErrorKind::Gradient, &*function.name, error.to_string()),
    })?;
    let mut nodes = nodes;
    for name in named_dims(&specs) {
        nodes.push(graph.dim(&Dim::named(name.slot, name.min, name.max))?);
    }
    let mut found = inline(graph, traced.body().graph(), traced.body().outputs(), &nodes)?.into_iter();
    Ok(given.into_iter().map(|is_given: bool| if is_given { found.next() } else { None }).collect())
}

/// # Errors
/// When the elements are not of this type.
fn check<T: Element>(dtype: DType) -> Result<(), Failure> {
    match dtype == T::DTYPE {
        true => Ok(()),
        false => Err(format!("a buffer of {dtype} was asked for as {}", T::DTYPE).into()),
    }
}

/// Memory that a text wrote down, or another function filled byte by byte, may be anything.
fn unusable<T: Element>() -> Failure {
    let why = if T::DTYPE == DType::Bool { "a bool is neither 0 nor 1" } else { "it is not aligned" };
    format!("a buffer holds no elements of {}: {why}", T::DTYPE).into()
}

impl HostInput<'_> {
    /// Type of its elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Its shape; elements are in row-major order.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Its memory.
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// Its elements.
    ///
    /// # Errors
    /// When they are of another type.
    pub fn as_slice<T: Element>(&self) -> Result<&[T], Failure> {
        check::<T>(self.dtype)?;
        T::elements(self.bytes).ok_or_else(unusable::<T>)
    }
}

impl HostOutput<'_> {
    /// Type of its elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Its shape; elements are in row-major order.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Its memory. In a `bool`, a byte is 0 or 1.
    pub fn bytes(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// Its elements.
    ///
    /// # Errors
    /// When they are of another type.
    pub fn as_slice<T: Element>(&self) -> Result<&[T], Failure> {
        check::<T>(self.dtype)?;
        T::elements(self.bytes).ok_or_else(unusable::<T>)
    }

    /// Its elements, to be written.
    ///
    /// # Errors
    /// When they are of another type.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T], Failure> {
        check::<T>(self.dtype)?;
        T::elements_mut(self.bytes).ok_or_else(unusable::<T>)
    }
}
