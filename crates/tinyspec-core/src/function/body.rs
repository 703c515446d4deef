//! The body of a Function: a closed graph over Params.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tinyspec_ir::dim::Name;
use tinyspec_ir::function::{function_values, inline, own_gradient};
use tinyspec_ir::signature::NamedDim;
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
    /// Kernels for all sizes cannot be made.
    specialises: AtomicBool,
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
        Body { graph, outputs, gradient: None, hash, ranged, specialises: AtomicBool::new(false) }
    }

    /// Its named dims that have bounds of their own: kernels are made for all sizes within.
    pub(crate) fn ranged(&self) -> &[Name] {
        if self.specialises.load(Ordering::Relaxed) { &[] } else { &self.ranged }
    }

    /// From now on each size has kernels of its own.
    pub(crate) fn specialise(&self) {
        self.specialises.store(true, Ordering::Relaxed);
    }

    /// The shape of an input that it uses, over its named dims.
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

    /// The body of a Function in a graph, with the gradient that it brings.
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

    /// The results in another graph, with each Param replaced by an argument. With a gradient of its own the body stays a
    /// Function, so that whoever takes the gradient finds it; [`tinyspec_ir::function::inline_all`] opens it.
    ///
    /// # Errors
    /// What derive refuses of the arguments.
    pub fn inline(&self, graph: &mut Graph, arguments: &[NodeId]) -> Result<Vec<NodeId>> {
        let Some(gradient) = &self.gradient else { return inline(graph, &self.graph, &self.outputs, arguments) };
        let mut elements = graph.import(&self.graph, &self.outputs, |_, _| Ok(None))?;
        let gradients = graph.import(&gradient.graph, &gradient.outputs, |_, _| Ok(None))?;
        elements.push(graph.add(Op::Tuple, &gradients, Arg::None)?);
        let tuple = graph.add(Op::Tuple, &elements, Arg::None)?;
        let function = graph.add(Op::Function, &[&[tuple], arguments].concat(), Arg::None)?;
        (0..self.outputs.len() as u32).map(|number| graph.add(Op::GetTuple, &[function], Arg::Number(number))).collect()
    }
}
