//! The body of a Function: a closed graph over Params.

use super::fits::Fit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use tinyspec_ir::dim::Name;
use tinyspec_ir::function::{function_values, inline, own_gradient};
use tinyspec_ir::gradient::gradient_or_none;
use tinyspec_ir::signature::{NamedDim, Signature};
use tinyspec_ir::{Arg, Builder, ContentHash, DType, Dim, Graph, NodeId, Op, Result, Shape};

/// A closed graph: it refers to Params only.
#[derive(Debug)]
pub struct Body {
    graph: Graph,
    outputs: Vec<NodeId>,
    /// The function's own gradient: over its inputs, a cotangent for each float result, and the named dims.
    gradient: Option<Arc<Body>>,
    hash: ContentHash,
    /// Its named dims that have bounds of their own, by slot.
    ranged: Vec<Name>,
    /// Whether each size needs its own kernels, because kernels for all sizes are impossible.
    specialises: AtomicBool,
    /// The derived gradient of a body without one of its own, cached by [`Body::open`]; `None` if it cannot be
    /// differentiated.
    derived: OnceLock<Option<Box<Body>>>,
    /// The constraints on its dims.
    fits: OnceLock<Vec<Fit>>,
    /// The result of [`Body::work`].
    work: OnceLock<BodyWork>,
    /// Whether it is a method of tensors, whose calls are always inlined.
    is_method: bool,
    /// If it is a gradient, the bodies that were inlined to derive it. A program that calls it inlines them everywhere, so that the
    /// forward pass is not computed twice.
    inlined: Vec<ContentHash>,
}

/// The cost of computing the results of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyWork {
    /// Whether it contains a Reduce or a call.
    pub reduces: bool,
    /// Length of the longest path to a result.
    pub depth: usize,
    /// Whether it moves values between devices.
    pub moves: bool,
}

impl Body {
    /// A body whose results are `outputs`.
    pub fn new(graph: Graph, outputs: Vec<NodeId>) -> Body {
        let hash = graph.content_hash(&outputs);
        let live = graph.reachable(&outputs);
        let dims = live.iter().filter(|&&node| graph.op(node) == Op::Param && graph.dtype(node) == DType::Index);
        let names = dims.filter_map(|&node| graph.props(node).value.as_deref()?.first());
        let mut ranged: Vec<Name> = names.flat_map(Dim::names).filter(|name| name.max < NamedDim::MAX).collect();
        ranged.sort_unstable_by_key(|name| name.slot);
        ranged.dedup();
        let (specialises, derived) = (AtomicBool::new(false), OnceLock::new());
        let (fits, work) = (OnceLock::new(), OnceLock::new());
        let (is_method, inlined) = (false, Vec::new());
        Body { graph, outputs, gradient: None, hash, ranged, specialises, derived, fits, work, is_method, inlined }
    }

    /// The body of a method, whose calls are always inlined.
    pub(crate) fn of_method(self) -> Body {
        Body { is_method: true, ..self }
    }

    /// Whether its calls are always inlined.
    pub(crate) fn is_method(&self) -> bool {
        self.is_method
    }

    /// A gradient for which these bodies were inlined.
    pub(crate) fn derived_by_inlining(self, inlined: Vec<ContentHash>) -> Body {
        Body { inlined, ..self }
    }

    /// The bodies that were inlined to derive it.
    pub(crate) fn inlined(&self) -> &[ContentHash] {
        &self.inlined
    }

    /// The cost of computing its results.
    pub(crate) fn work(&self) -> BodyWork {
        *self.work.get_or_init(|| {
            let graph = &self.graph;
            let mut depths = vec![0; graph.len()];
            let (mut reduces, mut moves) = (false, false);
            for node in graph.reachable_outside_bodies(&self.outputs) {
                let is_call = matches!(graph.op(node), Op::Function | Op::Call);
                moves |= graph.op(node) == Op::Load;
                reduces |= is_call || graph.op(node) == Op::Reduce;
                let sources = &graph.sources(node)[usize::from(is_call)..];
                depths[node.index()] = sources.iter().map(|source| depths[source.index()] + 1).max().unwrap_or(0);
            }
            let depth = self.outputs.iter().map(|output| depths[output.index()]).max().unwrap_or(0);
            BodyWork { reduces, depth, moves }
        })
    }

    /// Its named dims that have bounds of their own: its kernels work for all sizes within them.
    pub(crate) fn ranged(&self) -> &[Name] {
        if self.specialises.load(Ordering::Relaxed) { &[] } else { &self.ranged }
    }

    /// Refuses sizes that it cannot compute with.
    pub(crate) fn fits(&self, signature: &Signature, sizes: &[Dim]) -> Result<()> {
        if signature.dims.is_empty() {
            return Ok(());
        }
        let fits = self.fits.get_or_init(|| Fit::all(&self.graph, &self.outputs));
        fits.iter().try_for_each(|fit| fit.check(signature, sizes))
    }

    /// From now on each size gets kernels of its own.
    pub(crate) fn specialise(&self) {
        self.specialises.store(true, Ordering::Relaxed);
    }

    /// The shape of an input, over its named dims; `None` if the input is unused.
    pub(crate) fn shape(&self, slot: u32) -> Option<&Shape> {
        let is_input = |node: &NodeId| matches!(self.graph.arg(*node), Arg::Param { slot: own, dtype, .. } if *own == slot && *dtype != DType::Index);
        let input = self.graph.reachable(&self.outputs).into_iter().find(is_input)?;
        Some(&self.graph.props(input).shape)
    }

    /// The same values with a gradient of their own.
    pub fn with_gradient(mut self, gradient: Arc<Body>) -> Body {
        self.hash = ContentHash::of(&(self.hash, gradient.hash));
        self.gradient = Some(gradient);
        self
    }

    /// The body of a Function in a graph, with its own gradient if it has one.
    ///
    /// # Errors
    /// None for a graph that [`tinyspec_ir::derive()`] has accepted.
    pub(crate) fn of_function(graph: &Graph, function: NodeId) -> Result<Body> {
        let part = |outputs: &[NodeId]| -> Result<Body> {
            let mut part = Graph::new();
            let outputs = part.import(graph, outputs, |_, _| Ok(None))?;
            Ok(Body::new(part, outputs))
        };
        let body = part(&function_values(graph, function))?;
        Ok(match own_gradient(graph, function) {
            Some(gradient) => body.with_gradient(Arc::new(part(&gradient)?)),
            None => body,
        })
    }

    /// The gradient of its own.
    pub(crate) fn gradient(&self) -> Option<&Arc<Body>> {
        self.gradient.as_ref()
    }

    /// The nodes.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The results.
    pub fn outputs(&self) -> &[NodeId] {
        &self.outputs
    }

    /// Equal for equal bodies.
    pub fn hash(&self) -> ContentHash {
        self.hash
    }

    /// The results in another graph, with each Param replaced by an argument. A body with a gradient of its own stays a
    /// Function until [`tinyspec_ir::function::inline_all`], so that differentiation finds the gradient.
    ///
    /// # Errors
    /// When [`tinyspec_ir::derive()`] refuses the arguments.
    pub fn inline(&self, graph: &mut Graph, arguments: &[NodeId]) -> Result<Vec<NodeId>> {
        match &self.gradient {
            Some(gradient) => self.call_with(gradient, graph, arguments),
            None => inline(graph, &self.graph, &self.outputs, arguments),
        }
    }

    /// As [`Body::inline`], for a gradient: a body that is compiled for all sizes stays a Function whose gradient is, too.
    ///
    /// # Errors
    /// When [`tinyspec_ir::derive()`] refuses the arguments.
    pub(crate) fn open(&self, graph: &mut Graph, arguments: &[NodeId]) -> Result<Vec<NodeId>> {
        let is_fixed =
            |name: &Name| arguments.get(name.slot as usize).is_some_and(|&size| graph.as_int(size).is_some());
        if self.gradient.is_some() || self.ranged().is_empty() || !self.ranged().iter().all(is_fixed) {
            return self.inline(graph, arguments);
        }
        let dtypes = arguments.iter().map(|&argument| graph.dtype(argument));
        let inputs: Vec<DType> = dtypes.take_while(|&dtype| dtype != DType::Index).collect();
        // This may fail at an op that only unrequested gradients flow through: then the body is inlined.
        let derived = self.derived.get_or_init(|| backward(self, &inputs).ok().map(Box::new));
        match derived {
            Some(gradient) => self.call_with(gradient, graph, arguments),
            None => self.inline(graph, arguments),
        }
    }

    /// Its results in another graph, and a gradient of its own if it has one, as the first source of a Function.
    ///
    /// # Errors
    /// None for a body that [`tinyspec_ir::derive()`] has accepted.
    pub(crate) fn tuple_in(&self, graph: &mut Graph) -> Result<NodeId> {
        self.tuple_with(self.gradient.as_deref(), graph)
    }

    fn tuple_with(&self, gradient: Option<&Body>, graph: &mut Graph) -> Result<NodeId> {
        let mut elements = graph.import(&self.graph, &self.outputs, |_, _| Ok(None))?;
        if let Some(gradient) = gradient {
            let gradients = graph.import(&gradient.graph, &gradient.outputs, |_, _| Ok(None))?;
            elements.push(graph.add(Op::Tuple, &gradients, Arg::None)?);
        }
        graph.add(Op::Tuple, &elements, Arg::None)
    }

    /// The results of a Function whose first source is `tuple`.
    ///
    /// # Errors
    /// When [`tinyspec_ir::derive()`] refuses the arguments.
    pub(crate) fn call(&self, graph: &mut Graph, tuple: NodeId, arguments: &[NodeId]) -> Result<Vec<NodeId>> {
        let function = graph.add(Op::Function, &[&[tuple], arguments].concat(), Arg::None)?;
        (0..self.outputs.len() as u32).map(|number| graph.add(Op::GetTuple, &[function], Arg::Number(number))).collect()
    }

    fn call_with(&self, gradient: &Body, graph: &mut Graph, arguments: &[NodeId]) -> Result<Vec<NodeId>> {
        let tuple = self.tuple_with(Some(gradient), graph)?;
        self.call(graph, tuple, arguments)
    }
}

/// The gradient of a body: for each float input, and an index for one that nothing depends on.
fn backward(body: &Body, inputs: &[DType]) -> Result<Body> {
    let is_float = |&&output: &&NodeId| body.graph.dtype(output).is_float();
    let cotangents = body.outputs.iter().filter(is_float).count() as u32;
    // Cotangents stand between the inputs and the named dims.
    let moved = |name: Name| Dim::named(name.slot + cotangents, name.min, name.max);
    let mut graph = Graph::new();
    let mut arguments: Vec<NodeId> = vec![graph.index(0); inputs.len()];
    let mut wanted: Vec<NodeId> = vec![];
    for node in body.graph.reachable_outside_bodies(&body.outputs) {
        let Arg::Param { slot, dtype, device, addrspace } = body.graph.arg(node).clone() else { continue };
        let props = body.graph.props(node);
        let new = match props.value.as_deref() {
            Some([dim]) if dtype == DType::Index => {
                let dim = dim.names().first().map_or(dim.clone(), |&name| moved(name));
                graph.dim(&dim)?
            }
            _ => {
                let named: Vec<Name> = props.shape.iter().flat_map(Dim::names).collect();
                let value = |slot: u32| named.iter().find(|name| name.slot == slot).map(|&name| moved(name));
                let shape: Shape = props.shape.iter().map(|dim| dim.substitute(&value)).collect();
                let shape = graph.shape(&shape)?;
                graph.add(Op::Param, &[shape], Arg::Param { slot, dtype, device, addrspace })?
            }
        };
        if arguments.len() <= slot as usize {
            arguments.resize(slot as usize + 1, new);
        }
        arguments[slot as usize] = new;
        wanted.extend(dtype.is_float().then_some(new));
    }
    let outputs = inline(&mut graph, &body.graph, &body.outputs, &arguments)?;
    let mut pairs: Vec<(NodeId, NodeId)> = vec![];
    for output in outputs {
        let (dtype, shape) = (graph.dtype(output), graph.props(output).shape.clone());
        if dtype.is_float() {
            let shape = graph.shape(&shape)?;
            let slot = (inputs.len() + pairs.len()) as u32;
            let cotangent =
                graph.add(Op::Param, &[shape], Arg::Param { slot, dtype, device: None, addrspace: None })?;
            pairs.push((output, cotangent));
        }
    }
    let found = gradient_or_none(&mut graph, &pairs, &wanted)?;
    let mut gradients: Vec<NodeId> = vec![];
    for (&input, _) in arguments.iter().zip(inputs).filter(|(_, dtype)| dtype.is_float()) {
        let place = wanted.iter().position(|&wanted| wanted == input);
        gradients.push(match place.and_then(|place| found[place]) {
            Some(gradient) => gradient,
            None => graph.index(0),
        });
    }
    Ok(Body::new(graph, gradients))
}
