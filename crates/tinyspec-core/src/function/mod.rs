//! Functions traced at run time: a body runs once over placeholders and becomes a reusable graph ("The @function
//! Decorator").

mod callable;
mod check;
mod commands;
mod custom_function;
mod embedded;
mod kernel;
mod model_argument;
mod prepare;
mod program;
mod states;
mod text;
mod typed;
mod without_elements;

pub use crate::custom_function::{DeviceBuffer, DeviceCall, Failure, HostCall, HostInput, HostOutput};
pub use crate::lazy::Body;
#[doc(hidden)]
pub use crate::tensor::Left;
pub use callable::Prepare;
#[doc(hidden)]
pub use check::{check_equal, check_functions, check_size, refuse};
pub use custom_function::{CustomFunction, call_function, register_function};
pub use embedded::{EmbeddedFunction, Results, ScalarArgument};
#[doc(hidden)]
pub use embedded::{
    HasFunction, HasGradient, NO_FUNCTION, NoFunctions, call, call_gradient, constant, gradients, method, method_size,
    next_input,
};
#[doc(hidden)]
pub use kernel::{KernelArgument, call_kernel, call_kernel_of, kernel_constant};
#[doc(hidden)]
pub use model_argument::push_model;
pub use prepare::Prepared;
pub use program::Program;
#[doc(hidden)]
pub use states::{Buffer, call_updating, field_size, push_buffers, update};
#[doc(hidden)]
pub use typed::{array, size, size_as, whole, wrong, wrong_results};

pub use tinyspec_ir::custom_function::Meta;

use crate::Result;
use crate::lazy::{LazyBuilder, Node, Sources, Tracing, Walk};
use crate::tensor::{Tensor, apply_many};
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::dim::Name;
use tinyspec_ir::function::Traced;
use tinyspec_ir::rewrite::{Permission, Rewriter};
use tinyspec_ir::signature::{Input, Mismatch, NamedDim, Signature};
use tinyspec_ir::{Arg, Builder, DType, Dim, ErrorKind, Graph, NodeId, Op, Shape, dim, rules};

/// dtype and shape of an input of a [`Function`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Spec {
    /// Type of the elements.
    pub dtype: DType,
    /// The shape; dims made by [`named`] are bound when the function is called.
    pub shape: Shape,
}

impl Spec {
    /// An input of this dtype and shape.
    pub fn new(dtype: DType, shape: impl crate::IntoShape) -> Spec {
        Spec { dtype, shape: shape.into_shape() }
    }

    /// An input like this tensor.
    pub fn of(tensor: &Tensor) -> Spec {
        Spec { dtype: tensor.dtype(), shape: tensor.shape().into() }
    }
}

/// The named dim number `number` of a function, between 1 and `max`.
pub fn named(number: u32, max: i64) -> Dim {
    Dim::named(number, 1, max)
}

/// A graph over placeholders, called any number of times.
///
/// ```
/// # use tinyspec_core::{Function, Spec, Tensor};
/// # use tinyspec_ir::DType;
/// let double = Function::trace(&[Spec::new(DType::F32, [3])], |inputs| vec![&inputs[0] + &inputs[0]])?;
/// # Ok::<(), tinyspec_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Function {
    signature: Arc<Signature>,
    body: Arc<Body>,
    tuple: Arc<Node>,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Function").field("signature", &self.signature).field("hash", &self.body.hash()).finish()
    }
}

impl Function {
    /// A function from a body whose slots are those of the inputs, then those of the named dims.
    fn new(signature: Signature, body: Arc<Body>) -> tinyspec_ir::Result<Function> {
        Ok(Function { signature: Arc::new(signature), tuple: Node::tuple(body.clone())?, body })
    }

    /// Runs `body` once over placeholders and keeps the graph it builds. Numbers that the body writes, as with
    /// [`Tensor::from_slice`], are constants of the graph, of at most 1 MiB each.
    ///
    /// ```
    /// # use tinyspec_core::{Function, Spec, Tensor};
    /// # use tinyspec_ir::DType;
    /// let weigh = Function::trace(&[Spec::new(DType::F32, [2])], |inputs| {
    ///     vec![&inputs[0] * Tensor::from_slice(&[0.5f32, 2.0], [2])]
    /// })?;
    /// assert_eq!(weigh.call(&[&Tensor::ones([2])])[0].to_vec::<f32>()?, [0.5, 2.0]);
    /// # Ok::<(), tinyspec_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error among the results, or that the body uses a tensor made outside of it that is not an input.
    #[track_caller]
    pub fn trace(inputs: &[Spec], body: impl FnOnce(&[Tensor]) -> Vec<Tensor>) -> Result<Function> {
        let dims = named_dims(inputs);
        let position = |slot: u32| dims.iter().position(|name| name.slot == slot);
        let inputs = inputs.iter().enumerate().map(|(number, spec)| Input {
            name: format!("argument {number}"),
            dtype: spec.dtype,
            shape: spec
                .shape
                .iter()
                .map(|dim| rename(dim, &dims, &|name| position(name).map(|at| at as u32)))
                .collect(),
        });
        let inputs = inputs.collect();
        let dims =
            dims.iter().map(|&Name { slot, min, max }| NamedDim { min, max, ..NamedDim::new(format!("d{slot}")) });
        let dims = dims.collect();
        Function::trace_signature(Signature { name: "function".into(), dims, inputs }, body)
    }

    /// As [`Function::trace`], with names for the inputs and their dims.
    ///
    /// # Errors
    /// As [`Function::trace`].
    #[track_caller]
    pub fn trace_signature(signature: Signature, body: impl FnOnce(&[Tensor]) -> Vec<Tensor>) -> Result<Function> {
        let location = Location::caller();
        let placeholders = apply_many(location, &[], |builder, _| signature.params(builder))?;
        let results = {
            let _tracing = Tracing::begin();
            let names = (signature.inputs.len() as u32..).zip(signature.dims.iter().map(|dim| dim.name.clone()));
            dim::with_names(&names.collect::<Vec<_>>(), || body(&placeholders))
        };
        let roots = results.iter().map(|result| result.node().cloned()).collect::<Result<Vec<_>>>()?;
        let walk = Walk::of(&roots);
        if let Some(leaf) = walk.leaf_nodes().next() {
            return Err(captured(&signature.name, leaf).at(walk.reader(leaf).unwrap_or(location)).into());
        }
        // The gradient of a Function needs its sizes.
        let callified = if signature.dims.is_empty() { walk.build()? } else { walk.build_inlined()? };
        Ok(Function::new(signature, Arc::new(Body::new(callified.graph, callified.outputs)))?)
    }

    /// The function with fast-math permissions, which also apply to the functions that it calls.
    ///
    /// ```
    /// # use tinyspec_core::{Function, Permission, Spec};
    /// # use tinyspec_ir::DType;
    /// let axpy = Function::trace(&[Spec::new(DType::F32, [3])], |inputs| vec![&inputs[0] * 0.1 + 3.0])?;
    /// let fast = axpy.fast_math(&[Permission::Contract])?; // one rounding an element
    /// # Ok::<(), tinyspec_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// None for a function that was traced without errors.
    pub fn fast_math(&self, permissions: &[Permission]) -> Result<Function> {
        self.rewritten(permissions, false)
    }

    /// The function with sums of products of bf16 computed in f32 as written; `TINYSPEC_STRICT=1` does this for all
    /// functions. Otherwise a target's dot instruction may compute them, which adds pairs before rounding and flushes
    /// subnormal numbers to 0.
    ///
    /// ```
    /// # use tinyspec_core::{Function, Spec};
    /// # use tinyspec_ir::DType;
    /// let specs = [Spec::new(DType::BF16, [64, 64]), Spec::new(DType::BF16, [64, 64])];
    /// let product = Function::trace(&specs, |inputs| vec![inputs[0].matmul(&inputs[1])])?;
    /// let exact = product.strict()?;
    /// # Ok::<(), tinyspec_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// None for a function that was traced without errors.
    pub fn strict(&self) -> Result<Function> {
        self.rewritten(&[], true)
    }

    fn rewritten(&self, permissions: &[Permission], strict: bool) -> Result<Function> {
        let (graph, outputs) = rewritten(self.body.graph().clone(), self.body.outputs().to_vec(), permissions, strict)?;
        let mut body = Body::new(graph, outputs);
        if let Some(gradient) = self.body.gradient() {
            body = body.with_gradient(gradient.clone());
        }
        Ok(Function::new((*self.signature).clone(), Arc::new(body))?)
    }

    /// Name, named dims and inputs.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The graph over Params.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The backward function: on the inputs and a cotangent for each float result it gives a gradient for each float input,
    /// zeros where nothing depends on it.
    ///
    /// # Errors
    /// When an op of the body has no gradient.
    pub fn backward(&self) -> Result<Function> {
        let (graph, outputs) = (self.body.graph().clone(), self.body.outputs().to_vec());
        let traced = Traced { signature: Signature::clone(&self.signature), graph, calls: vec![], outputs };
        let backward = traced.backward()?;
        Ok(Function::new(backward.signature, Arc::new(Body::new(backward.graph, backward.outputs)))?)
    }

    /// The results on these arguments, lazily. If the arguments are invalid, every result carries the error.
    #[track_caller]
    pub fn call(&self, arguments: &[&Tensor]) -> Vec<Tensor> {
        let location = Location::caller();
        match self.try_call(location, arguments) {
            Ok(results) => results,
            Err(error) => {
                let error = error.at(location);
                self.body.outputs().iter().map(|_| Tensor::failed(error.clone())).collect()
            }
        }
    }

    fn try_call(&self, location: &'static Location<'static>, arguments: &[&Tensor]) -> Result<Vec<Tensor>> {
        let bound = self.bind(arguments)?;
        let mut sources: Sources = Sources::new();
        sources.push(self.tuple.clone());
        Function::pass(arguments, &bound, location, &mut sources)?;
        let call = Node::lazy(Op::Function, sources, Arg::None, Some(location))?;
        (0..self.body.outputs().len() as u32)
            .map(|number| {
                let sources = Sources::from_iter([call.clone()]);
                Ok(Tensor::from_node(Node::lazy(Op::GetTuple, sources, Arg::Number(number), Some(location))?))
            })
            .collect()
    }

    /// Plans the function for arguments like these: calls of the result neither allocate nor build a graph.
    ///
    /// # Errors
    /// When the arguments do not fit, or a kernel cannot be compiled.
    #[track_caller]
    pub fn prepare(&self, arguments: &[&Tensor]) -> Result<Prepared> {
        Prepared::new(self, arguments, Location::caller())
    }

    /// The operands of a call after the body: its arguments, then the values of the named dims.
    fn pass(
        arguments: &[&Tensor],
        bound: &[Dim],
        location: &'static Location<'static>,
        sources: &mut Sources,
    ) -> Result<()> {
        let mut builder = LazyBuilder::new(location);
        for argument in arguments {
            builder.import(argument.node()?.clone());
        }
        builder.place_numbers()?;
        sources.extend(builder.nodes().iter().cloned());
        builder.replicate_operands(Op::Function, sources)?;
        for dim in bound {
            let value = builder.dim(dim)?;
            sources.push(builder.node(value));
        }
        Ok(())
    }

    /// Values of the named dims, checked for agreement between arguments.
    fn bind(&self, arguments: &[&Tensor]) -> Result<Vec<Dim>> {
        let Signature { inputs, dims, .. } = &*self.signature;
        let is_exact = |(argument, input): (&&Tensor, &Input)| {
            argument.node().is_ok_and(|node| node.props.dtype == input.dtype && node.props.shape == input.shape)
        };
        if dims.is_empty() && arguments.len() == inputs.len() && arguments.iter().zip(inputs).all(is_exact) {
            return Ok(Vec::new());
        }
        let mut found = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let props = &argument.node()?.props;
            found.push((props.dtype, props.shape.clone()));
        }
        let sizes = self.signature.bind(&found).map_err(first)?;
        self.body.fits(&self.signature, &sizes)?;
        Ok(sizes)
    }
}

/// The error of a body that reads this tensor, which is not an input.
fn captured(name: &str, leaf: &Node) -> tinyspec_ir::Error {
    let (dtype, shape) = (leaf.props.dtype, dim::show(&leaf.props.shape));
    let made = leaf.location.map_or_else(String::new, |location| format!(", made at {location},"));
    let message = format!("the body uses a tensor of {dtype} {shape}{made} that is not one of its inputs");
    let help =
        "pass it as an input; a random tensor holds a key, which is drawn when the tensor is made, so make it outside";
    tinyspec_ir::Error::new(ErrorKind::Unsupported, name, message).help(help)
}

/// The graph rewritten by the permitted rules and, for strict functions, by theirs.
fn rewritten(
    mut graph: Graph,
    outputs: Vec<NodeId>,
    permissions: &[Permission],
    strict: bool,
) -> tinyspec_ir::Result<(Graph, Vec<NodeId>)> {
    let mut sets: Vec<_> = permissions.iter().map(|&permission| rules::permitted(permission)).collect();
    sets.extend(strict.then_some(&rules::STRICT));
    if sets.is_empty() {
        return Ok((graph, outputs));
    }
    let outputs = Rewriter::new(&sets).rewrite(&mut graph, &outputs)?;
    Ok((graph, outputs))
}

/// At run time only the first mismatch is reported.
fn first(mismatches: Vec<Mismatch>) -> tinyspec_ir::Error {
    let first = mismatches.into_iter().next();
    first.map_or_else(|| unreachable!("a refusal has a reason"), |mismatch| mismatch.error)
}

/// Names in the inputs' shapes with their bounds, in order of appearance.
fn named_dims(inputs: &[Spec]) -> Vec<Name> {
    let mut names: Vec<Name> = vec![];
    for name in inputs.iter().flat_map(|spec| &spec.shape).flat_map(Dim::names) {
        if names.iter().all(|other| other.slot != name.slot) {
            names.push(name);
        }
    }
    names
}

fn rename(dim: &Dim, dims: &[Name], slot_of: &impl Fn(u32) -> Option<u32>) -> Dim {
    dim.substitute(&|slot| {
        let name = dims.iter().find(|name| name.slot == slot)?;
        Some(Dim::named(slot_of(slot)?, name.min, name.max))
    })
}
